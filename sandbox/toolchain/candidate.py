"""One candidate through nvcc: host shared object, PTX, cubin and resource use from one run in the jail."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sandbox import jail, native
from sandbox.cancellation import Cancellation
from sandbox.errors import Cancelled, Judged
from sandbox.home import cache, scratch, store
from sandbox.limits import COMPILE, MIB, Limits
from sandbox.toolchain.diagnostics import SOURCE, Lines, parse
from sandbox.toolchain.find import Toolkit, find_host_compiler, find_toolkit
from sandbox.toolchain.resources import kernels
from sandbox.types import Compilation, Diagnostic

MAX_SOURCE_BYTES = MIB
_MAX_PTX_BYTES = 64 * MIB
_MAX_OBJECT_BYTES = 128 * MIB
_FORMAT = 2  # of cache entries
_WORK = Path("/candidate")
_RUNTIME = Path("/cudart")

_FLAGS = (
    "-shared",
    "-Xcompiler=-fPIC",
    "-cudart=shared",
    "-cudadevrt=none",  # only relocatable device code needs it, and the PyPI packages keep it elsewhere
    f"-L{_RUNTIME}",
    "--no-device-link",  # nothing is relocatable device code, and it costs a fifth of the time
    "--compress-mode=none",
    "-lineinfo",
    "--keep",
    "-Xptxas=-v",
    "-std=c++17",
    "-O3",
    "-Xlinker=--no-undefined",
    "-Xlinker=--require-defined=launch",
)
#: nvcc; then what ptxas alone says of the kernels, since warnings may put any words into nvcc's log; then the
#: kernels' names as people write them.
_SCRIPT = r"""
target=$1; shift
"$@" || exit 1
ptxas -v -lineinfo -arch="$target" candidate.ptx -o /dev/null 2> resources || exit 1
sed -n 's/^.*\.entry[[:space:]]*\([^( ]*\).*$/\1/p' candidate.ptx > symbols
c++filt -p < symbols > names
"""


@dataclass(frozen=True)
class Compiled:
    """A candidate after nvcc. Everything in it was written by hostile code's compiler: data, not truth."""

    compilation: Compilation
    ok: bool
    target: str  # "sm_90"
    ptx: list[str]  # by module, in the order in which the host object registers them
    host_object: (
        Path | None
    )  # shared object with `launch`, linked against libcudart.so.13; never load it outside
    cubin: Path | None  # machine code of module 0


def compile_candidate(
    source: str,
    *,
    target: str,
    cancel: Cancellation,
    on_log: Callable[[str], None] = lambda text: None,
    on_ptx: Callable[[str], None] = lambda ptx: None,
    limits: Limits = COMPILE,
) -> Compiled:
    """Compiles `source` for `target` ("sm_90"). `on_log` gets the log in whole lines while nvcc runs.

    `on_ptx` gets the PTX of module 0 as soon as it is whole, at two thirds of the time; ptxas or the linker
    may still refuse the candidate afterwards. Both are called from this thread and must not take long.
    Results are kept on disk by content. A source nvcc refuses is a result with `ok` False. Raises Judged with
    "timeout", Cancelled, ToolchainMissing, JailUnavailable.
    """
    if not re.fullmatch(r"sm_\d+[af]?", target):
        raise ValueError(f"no target: {target!r}")
    text = source.encode(errors="replace")
    if len(text) > MAX_SOURCE_BYTES:
        return _refused(target, f"the source has {len(text)} bytes; at most {MAX_SOURCE_BYTES} are compiled")
    toolkit = find_toolkit()
    entry = cache("compiled") / _key(text, target, toolkit)
    known = _load(entry, target)
    if known is not None:
        for ptx in known.ptx:
            on_ptx(ptx)
        on_log(known.compilation.log)
        return known
    with scratch("compile") as folder:
        (folder / SOURCE).write_bytes(text)
        log = _Log(toolkit, on_log, lambda: on_ptx(_read_text(folder / "candidate.ptx")))
        finished = _nvcc(folder, toolkit, target, cancel, limits, log)
        if finished.reason == "cancelled":
            raise Cancelled
        if finished.reason == "timeout":
            raise Judged("timeout", "candidate", f"nvcc did not end within {limits.wall_seconds:.0f} s")
        if finished.reason != "exited":
            return _refused(target, _stopped(finished.reason, limits), log.text, finished.seconds)
        compiled = _collect(folder, source, target, finished, log.text)
        if not compiled.ok and not compiled.compilation.diagnostics:
            # Perhaps the machine's fault: worth another try next time.
            return _refused(target, "nvcc failed; its log has the last words", log.text, finished.seconds)
        store(entry, lambda new: _save(new, folder, compiled))
    return _load(entry, target) or compiled


def _nvcc(
    folder: Path, toolkit: Toolkit, target: str, cancel: Cancellation, limits: Limits, log: _Log
) -> jail.Finished:
    runtime = native.path("cudart")
    binds = [
        jail.Bind(toolkit.root, toolkit.root),
        jail.Bind(runtime.parent, _RUNTIME),
        jail.Bind(folder, _WORK, writable=True),
    ]
    command = [str(toolkit.nvcc), *_FLAGS, f"-arch={target}", "-o", "candidate.so", SOURCE]
    finished = jail.run(
        ["/bin/sh", "-c", _SCRIPT, "sh", target, *command],
        binds=binds,
        cwd=_WORK,
        limits=limits,
        cancel=cancel,
        on_output=log.add,
        env={"PATH": f"{toolkit.nvcc.parent}:/usr/bin:/bin"},
    )
    log.end()
    return finished


class _Log:
    """The compiler's words, with the paths of this machine and this jail taken out."""

    def __init__(self, toolkit: Toolkit, on_log: Callable[[str], None], on_ptxas: Callable[[], None]) -> None:
        self.text = ""
        self._on_ptxas: Callable[[], None] | None = on_ptxas  # ptxas speaks once it has read all PTX
        self._paths = [
            (f"{_WORK}/", ""),
            (f"{toolkit.nvcc.parent}/../", "cuda/"),
            (f"{toolkit.root}/", "cuda/"),
        ]
        self._on_log = on_log
        self._lines = Lines(self._clean, self._keep)
        self.add = self._lines.add
        self.end = self._lines.end

    def _clean(self, text: str) -> str:
        for path, short in self._paths:
            text = text.replace(path, short)
        return text

    def _keep(self, text: str) -> None:
        self.text += text
        self._on_log(text)
        if self._on_ptxas is not None and "Compiling entry function" in text:
            on_ptxas, self._on_ptxas = self._on_ptxas, None
            on_ptxas()


def _collect(folder: Path, source: str, target: str, finished: jail.Finished, log: str) -> Compiled:
    ptx = _read_text(folder / "candidate.ptx")
    diagnostics = parse(log, source=source, ptx=ptx)
    symbols, names = (_read_text(folder / name).splitlines() for name in ("symbols", "names"))
    resources = _read_text(folder / "resources")
    compilation = Compilation(
        seconds=round(finished.seconds, 4),
        log=log,
        diagnostics=diagnostics,
        kernels=kernels(resources, dict(zip(symbols, names, strict=False))) if finished.ok else [],
    )
    return Compiled(
        compilation=compilation,
        ok=finished.ok,
        target=target,
        ptx=[ptx] if finished.ok else [],
        host_object=None,
        cubin=None,
    )


def _save(entry: Path, folder: Path, compiled: Compiled) -> None:
    if compiled.ok:
        (entry / "module0.ptx").write_text(compiled.ptx[0])
        for name, produced in (
            ("candidate.so", "candidate.so"),
            ("module0.cubin", f"candidate.{compiled.target}.cubin"),
        ):
            (entry / name).write_bytes(jail.read_result(folder / produced, _MAX_OBJECT_BYTES))
            (entry / name).chmod(0o644)
    (entry / "compilation.json").write_text(compiled.compilation.model_dump_json())


def _load(entry: Path, target: str) -> Compiled | None:
    try:
        compilation = Compilation.model_validate_json((entry / "compilation.json").read_bytes())
    except FileNotFoundError:
        return None
    ok = (entry / "candidate.so").exists()
    return Compiled(
        compilation=compilation,
        ok=ok,
        target=target,
        ptx=[(entry / "module0.ptx").read_text()] if ok else [],
        host_object=entry / "candidate.so" if ok else None,
        cubin=entry / "module0.cubin" if ok else None,
    )


def _key(source: bytes, target: str, toolkit: Toolkit) -> str:
    runtime = native.path("cudart").parent.name
    told = (
        _FORMAT,
        _FLAGS,
        target,
        str(toolkit.nvcc),
        toolkit.version,
        find_host_compiler().version,
        runtime,
    )
    return hashlib.sha256(json.dumps(told).encode() + b"\0" + source).hexdigest()[:40]


def _read_text(path: Path) -> str:
    try:
        return jail.read_result(path, _MAX_PTX_BYTES).decode(errors="replace")
    except FileNotFoundError:
        return ""


def _refused(target: str, message: str, log: str = "", seconds: float = 0.0) -> Compiled:
    compilation = Compilation(seconds=seconds, log=log, diagnostics=[_error(message)], kernels=[])
    return Compiled(compilation=compilation, ok=False, target=target, ptx=[], host_object=None, cubin=None)


def _error(message: str) -> Diagnostic:
    return Diagnostic(file=SOURCE, line=None, column=None, severity="error", message=message)


def _stopped(reason: str, limits: Limits) -> str:
    if reason == "memory":
        return f"compiling needed more than {limits.memory_bytes >> 20} MiB of memory"
    return f"compiling wrote more than {limits.file_bytes >> 20} MiB, or flooded its log"
