"""The trial on whole public CUDA programs: build each unmodified, run it without a GPU, read its own check.

A list names the programs: tab-separated lines of folder, arguments, check and note. The check is a regular
expression that the program's output has to contain, or `-` where the program has no check of its own (then
exit code 0 is all that is asked, and the table says so).
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from sandbox.errors import TaskProblem
from sandbox.toolchain import find_toolkit
from sandbox.types import Problem

#: A word that a program prints when its check failed, and does not when it held or was meant to fail.
_FAILED = re.compile(r"\bFAIL(ED|URE)?\b(?! as expected)|\bmismatch\b|verification failed", re.IGNORECASE)
#: What `kernelwright exec` says of a kernel, or a call, that is not emulated.
_UNSUPPORTED = re.compile(r"^kernelwright: (?:unsupported: (.*)|.* cannot be run: (.*))$", re.MULTILINE)
#: What it says of a program that a signal ended, and the exit codes of that: 128 + the signal's number.
_DIED = re.compile(r"^kernelwright: the program died of (.*)$", re.MULTILINE)
_ENDED_BY_SIGNAL = range(129, 128 + signal.NSIG)
_BUILD_SECONDS = 900.0
_KEPT = 4000  # characters of output kept in the result


@dataclass(frozen=True)
class Program:
    """One line of the list."""

    folder: str
    arguments: str
    check: str
    note: str


@dataclass(frozen=True)
class Trial:
    """What became of one program. `outcome`: passed, wrong, unsupported, too slow, crashed, not built."""

    program: str
    arguments: str
    outcome: str
    detail: str = ""
    findings: int = 0
    build_seconds: float = 0.0
    seconds: float = 0.0
    checked: bool = True  # by the program itself
    output: str = field(default="", repr=False)


def read_list(path: Path) -> list[Program]:
    """Raises TaskProblem: there is no list, or a line, which it names, is not four tab-separated fields."""
    try:
        text = path.read_text()
    except OSError as error:
        message = (
            f"there is no list of programs at {path} ({error.strerror}): give one with --list; the project's "
            "own is docs/measurements/programs.tsv of its source, which an installed package does not have"
        )
        raise TaskProblem(Problem(kind="no_list", message=message)) from error
    programs = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        cells = line.split("\t")
        if len(cells) != 4:
            raise TaskProblem(
                Problem(
                    kind="bad_list",
                    message="a line needs four tab-separated fields: folder, arguments, check, note",
                    file=str(path),
                    line=number,
                )
            )
        programs.append(Program(*cells))
    return programs


def run_trials(
    programs: list[Program], sources: Path, *, build: bool, seconds: float, jobs: int, options: list[str]
) -> Generator[Trial, None, None]:
    """Tries all programs, `jobs` at a time; yields each result when it is there.

    `options` go to `kernelwright exec`. Each program may run for `seconds`. Without `build`,
    executables that are there already are taken. Leaving early, as Ctrl-C does, ends what runs.
    """
    with _shims() as path, ThreadPoolExecutor(jobs) as pool, _Running() as running:
        waiting = [
            pool.submit(_try, program, sources, partial(running.run, path=path), build, seconds, options)
            for program in programs
        ]
        for future in as_completed(waiting):
            yield future.result()


def read_results(path: Path) -> list[Trial]:
    """The trials that an earlier run wrote. Raises TaskProblem naming a line that is none."""
    trials = []
    for number, line in enumerate(path.read_text().splitlines() if path.exists() else [], 1):
        try:
            trials.append(Trial(**json.loads(line)))
        except (TypeError, ValueError) as error:
            message = "is no result of this benchmark; name another file, or remove the line"
            problem = Problem(kind="bad_results", message=message, file=str(path), line=number)
            raise TaskProblem(problem) from error
    return trials


def write_result(trial: Trial, path: Path) -> None:
    """Appends one trial, so that a run that is broken off goes on from there."""
    with path.open("a") as file:
        file.write(json.dumps(asdict(trial)) + "\n")


@contextmanager
def _shims() -> Iterator[str]:
    """A PATH on which `nvcc` is our wrapper: the programs' own Makefiles then need no change."""
    with tempfile.TemporaryDirectory(prefix="kw-programs-") as folder:
        shim = Path(folder) / "nvcc"
        # It is told the real one, and need not look for it past itself.
        wrapper = f'KERNELWRIGHT_NVCC="{find_toolkit().nvcc}" exec "{sys.executable}" -m webapp.cli.main nvcc'
        shim.write_text(f'#!/bin/sh\n{wrapper} "$@"\n')
        shim.chmod(0o755)
        yield f"{folder}:{os.environ['PATH']}"


#: Runs a command in a folder for some seconds; exit code (None: out of time) and all output.
_Runner = Callable[[list[str], Path, float], tuple[int | None, str]]


def _try(
    program: Program, sources: Path, run: _Runner, build: bool, seconds: float, options: list[str]
) -> Trial:
    folder = sources / program.folder
    began = time.monotonic()
    built, log = _build(folder, run) if build else (True, "")
    build_seconds = time.monotonic() - began
    trial = partial(
        Trial,
        program=program.folder,
        arguments=program.arguments,
        checked=program.check != "-",
        build_seconds=build_seconds,
    )
    if not built:
        return trial(outcome="not built", detail=_last_line(log), output=log[-_KEPT:])
    executable = _executable(folder, run)
    if executable is None:
        return trial(outcome="not built", detail="the Makefile's run rule names no program")
    began = time.monotonic()
    command = [sys.executable, "-m", "webapp.cli.main", "exec", executable, *options, "--"]
    code, output = run([*command, *shlex.split(program.arguments)], folder, seconds)
    outcome, detail = _judge(program, code, output)
    return trial(
        outcome=outcome,
        detail=detail,
        findings=_findings(output),
        seconds=time.monotonic() - began,
        output=output[-_KEPT:],
    )


def _build(folder: Path, run: _Runner) -> tuple[bool, str]:
    run(["make", "clean"], folder, 60)
    code, output = run(["make", "ARCH=sm_90"], folder, _BUILD_SECONDS)
    return code == 0, output


def _executable(folder: Path, run: _Runner) -> str | None:
    """The program that `make run` would start, as a path from the folder."""
    _, output = run(["make", "-n", "run", "ARCH=sm_90"], folder, 60)
    for line in reversed(output.splitlines()):
        for word in line.split():
            if (word.startswith("./") or "/" in word) and os.access(folder / word, os.X_OK):
                return word
    return None


def _judge(program: Program, code: int | None, output: str) -> tuple[str, str]:
    """Outcome and what there is to say about it, from the exit code of `kernelwright exec` and all output."""
    own = _own_output(output)
    refused = _UNSUPPORTED.search(output)
    if refused:
        return "unsupported", _last_line(refused[1] or refused[2])
    if code is None:
        return "too slow", ""
    died = _DIED.search(output)
    if died:
        return "crashed", died[1]
    if code < 0 or code in _ENDED_BY_SIGNAL:  # ended by a limit, or `kernelwright exec` itself died
        return "crashed", f"exit code {code}: {_last_line(output)}"
    checked = program.check != "-"
    if checked and (_FAILED.search(own) or not re.search(program.check, own)):
        return "wrong", _last_line(own)
    if code == 0 or (code == 1 and _findings(output)):  # 1 is what errors of the checks make of 0
        return "passed", "" if checked else "no check of its own"
    return "wrong", f"exit code {code}: {_last_line(own)}"


def _own_output(output: str) -> str:
    """Without the lines that Kernelwright printed."""
    ours = ("kernelwright", "    at ")
    # A kernel's assert that did not hold says "failed", and may be meant to.
    return "\n".join(
        line for line in output.splitlines() if not line.startswith(ours) and "Assertion" not in line
    )


def _findings(output: str) -> int:
    """Errors that the checks reported, false alarms included; notes are none."""
    return len(re.findall(r"^kernelwright: error: ", output, re.MULTILINE))


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else ""


class _Running:
    """The commands that run now, each with its process group, so that all can be ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._ended = False

    def __enter__(self) -> _Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Ends what runs, by force what does not end when asked; what would start after this does not."""
        self._ended = True
        for number, seconds in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 0.0)):
            with self._lock:
                running = list(self._processes)
            for process in running:
                _signal(process, number)
            deadline = time.monotonic() + seconds
            while self._processes and time.monotonic() < deadline:
                time.sleep(0.05)

    def run(self, command: list[str], folder: Path, seconds: float, *, path: str) -> tuple[int | None, str]:
        """Exit code (None: out of time) and all output. Ends the whole process group."""
        with self._lock:
            if self._ended:
                return None, ""
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=os.environ | {"PATH": path},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._processes.add(process)
        try:
            return _finish(process, seconds)
        finally:
            with self._lock:
                self._processes.discard(process)


def _finish(process: subprocess.Popen[bytes], seconds: float) -> tuple[int | None, str]:
    try:
        output, _ = process.communicate(timeout=seconds)
        code: int | None = process.returncode
    except subprocess.TimeoutExpired:
        _signal(process, signal.SIGTERM)
        try:
            output, _ = process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            _signal(process, signal.SIGKILL)
            output, _ = process.communicate()
        code = None
    return code, output.decode(errors="replace")


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError):  # it may end at this moment
        if process.poll() is None:
            os.killpg(process.pid, number)
