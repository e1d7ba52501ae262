"""From CUDA sources to an executable, by the real nvcc, in the jail that programs run in."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from sandbox import jail, native
from sandbox.cancellation import Cancellation
from sandbox.emulator.client import warm
from sandbox.errors import Cancelled, TaskProblem
from sandbox.home import scratch
from sandbox.program.libraries import headers
from sandbox.program.nvcc import adapt, explain
from sandbox.toolchain import find_toolkit
from sandbox.types import Problem

_LOG_BYTES = 1 << 20  # kept of what nvcc says
#: What nvcc takes by the end of its name.
_SUFFIXES = frozenset(
    (".cu", ".c", ".cc", ".cxx", ".cpp", ".C", ".ptx", ".cubin", ".fatbin", ".o", ".obj", ".a", ".so")
)
_NOT_FOUND = re.compile(r"^([^\s:]+):\d+(?::\d+)?: fatal error: (\S+): No such file", re.MULTILINE)
_ELF = b"\x7fELF"


class BuildFailed(TaskProblem):
    """nvcc refused. Its words have been on stderr; `log` has them, too."""

    def __init__(self, problem: Problem, log: str) -> None:
        super().__init__(problem)
        self.log = log


@dataclass(frozen=True)
class Built:
    executable: Path
    log: str  # nvcc's
    seconds: float


@contextlib.contextmanager
def build(
    files: Sequence[Path],
    *,
    nvcc_args: Sequence[str] = (),
    target: str,
    keep: Path | None = None,
    cancel: Cancellation,
) -> Iterator[Built]:
    """The executable of `files`, or the one they are; gone afterwards unless `keep` says where it stays.

    Raises BuildFailed; TaskProblem for no such file; ToolchainMissing, JailUnavailable, Cancelled.
    """
    for file in files:
        hint = f"if it is for the program: {files[0]} -- {file}" if file != files[0] else ""
        if not file.is_file():
            message = f"there is no file {file}" if not file.exists() else f"{file} is no file"
            raise _problem("no_file", message, hint)
        single = len(files) == 1 and _is_executable(file)
        if not single and file.suffix not in _SUFFIXES and "-x" not in nvcc_args:
            message = f"{file} is no source, object file or library that nvcc knows by its name"
            message += ", and no executable" if len(files) == 1 else ""
            raise _problem("no_program", message, hint or f"known are {' '.join(sorted(_SUFFIXES))}")
    if len(files) == 1 and _is_executable(files[0]):
        _require_our_runtime(files[0])
        yield Built(files[0].resolve(), "", 0.0)
        return
    with scratch("program") as folder:
        product = folder / "product"
        built = _compile(files, nvcc_args, target, product, cancel)
        # Programs find out by their own name what they are; and people see it in lists of processes.
        named = folder / files[0].stem
        if keep is not None:
            named = keep.absolute()
            _keep(product, named)
        else:
            product.rename(named)
        yield Built(named, built.log, built.seconds)


def _compile(
    files: Sequence[Path], nvcc_args: Sequence[str], target: str, product: Path, cancel: Cancellation
) -> Built:
    began = time.monotonic()
    toolkit = find_toolkit()
    warm()
    more = headers()
    line = adapt([*nvcc_args, *map(str, files)], target=target, product=native.path, headers=more)
    environment = {**os.environ, "PATH": f"{toolkit.nvcc.parent}:{os.environ.get('PATH', '/usr/bin:/bin')}"}
    folders = _named_folders(nvcc_args)
    sources = [file.absolute() for file in files]
    with _told() as log:
        ended = jail.run_live(
            [str(toolkit.nvcc), *line.arguments, "-o", str(product)],
            cwd=Path.cwd(),
            writable=[product.parent],
            # The files too: of what lies in /tmp itself nothing else is seen.
            visible=[toolkit.root, *more, *folders, *sources, *(file.parent for file in sources)],
            stdin=log.nothing,
            stdout=log.entrance,
            stderr=log.entrance,
            env=environment,
            cancel=cancel,
        )
    if ended.reason == "cancelled":
        raise Cancelled
    if ended.status != 0 or not product.is_file():
        explained = [*explain(log.text, line), *_unseen(log.text, folders)]
        message = "; ".join(explained) or f"nvcc could not build {files[0].name}; its words are above"
        raise BuildFailed(Problem(kind="compile_error", message=message), log.text)
    return Built(product, log.text, time.monotonic() - began)


def _named_folders(arguments: Sequence[str]) -> list[Path]:
    """Folders of -I, -isystem and -L, so that a build sees them also where they lie in /tmp."""
    words = [*arguments, ""]
    named = [after for word, after in pairwise(words) if word in ("-I", "-isystem", "-L")]
    named += [word[2:].lstrip("=") for word in arguments if word[:2] in ("-I", "-L") and len(word) > 2]
    return [Path(name).absolute() for name in named if name and Path(name).is_dir()]


def _unseen(log: str, folders: Sequence[Path]) -> list[str]:
    """A sentence for every header that is there, but in what the jail hides of /tmp."""
    sentences = []
    for includer, header in dict.fromkeys(_NOT_FOUND.findall(log)):
        places = [Path(includer).absolute().parent, *folders]
        there = next((file for place in places if (file := place / header).is_file()), None)
        if there is not None:
            file = Path(os.path.normpath(there))
            above = os.path.commonpath([file.parent, Path.cwd()])
            sentences.append(
                f"{file} is there, but a build in /tmp sees the current folder and its sources alone: "
                f"run the command in {above}, or name the header's folder with --nvcc-args -I..."
            )
    return sentences


class _Log:
    """What comes through a pipe: on stderr at once, and kept."""

    def __init__(self) -> None:
        self.text = ""
        self.nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._exit, self.entrance = os.pipe()
        self._reader = threading.Thread(target=self._read, name="nvcc-log", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        kept = bytearray()
        while chunk := os.read(self._exit, 1 << 16):
            sys.stderr.write(chunk.decode(errors="replace"))
            sys.stderr.flush()
            kept += chunk[: _LOG_BYTES - len(kept)]
        self.text = kept.decode(errors="replace")

    def end(self) -> None:
        os.close(self.entrance)
        self._reader.join()
        os.close(self._exit)
        os.close(self.nothing)


@contextlib.contextmanager
def _told() -> Iterator[_Log]:
    log = _Log()
    try:
        yield log
    finally:
        log.end()


def _is_executable(file: Path) -> bool:
    with file.open("rb") as opened:
        head = opened.read(20)
    # The type of an ELF file: 2 an executable, 3 a position-independent one. Object files are for nvcc.
    runs = (head[:4] == _ELF and head[16] in (2, 3)) or head[:2] == b"#!"
    return runs and os.access(file, os.X_OK)


def _require_our_runtime(executable: Path) -> None:
    """A program with NVIDIA's runtime inside would look for a GPU, find none, and say so in its own words."""
    content = executable.read_bytes()
    wanted = set(re.findall(rb"libcudart\.so\.(\d+)", content))
    how = "build it with -cudart shared -compress-mode=none, or with `kernelwright nvcc` in place of nvcc"
    if b"cudaLaunchKernel" in content and not wanted:
        raise _problem("static_runtime", f"{executable} has NVIDIA's CUDA runtime linked into it", how)
    if wanted and b"13" not in wanted:
        versions = ", ".join(sorted(version.decode() for version in wanted))
        raise _problem("other_runtime", f"{executable} was built with CUDA {versions}; 13 is needed", how)


def _keep(product: Path, wanted: Path) -> None:
    try:
        wanted.write_bytes(product.read_bytes())
        wanted.chmod(0o755)
    except OSError as error:
        raise _problem("no_output", f"cannot write {wanted}: {error.strerror}") from error


def _problem(kind: str, message: str, hint: str = "") -> TaskProblem:
    return TaskProblem(Problem(kind=kind, message=message, hint=hint))
