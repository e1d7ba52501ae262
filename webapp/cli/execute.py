"""Build a whole CUDA program and run it without a GPU, checked like compute-sanitizer does it.

Example: kernelwright exec saxpy.cu -- 1000000

Several sources, or an executable that was built with -cudart shared -compress-mode=none (see kernelwright
nvcc). The exit code is the program's own; 1 (see --error-exitcode) when a check found an error and the
program itself ended with 0; 128 + n when it died of signal n; 2 when it could not be built or started; 3,
whatever the program returned, when Kernelwright itself failed while it ran.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import shlex
import signal
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox import program
from sandbox.cancellation import Cancellation
from sandbox.home import require_writable
from sandbox.program.names import Demangler, shortened
from sandbox.program.report import Report
from sandbox.targets import DEFAULT_TARGET, TARGETS
from webapp.cli.output import BAD_INPUT, OWN_FAULT, STOPPED, dump, one_line, say
from webapp.cli.tables import kernel_table

if TYPE_CHECKING:
    from sandbox.program.profile import Profile

_HOT_KERNELS, _HOT_LINES = 10, 12
_LEAST_MEMORY = 64 << 20  # our runtime's own alone is near it
_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def prepare(arguments: list[str]) -> tuple[list[str], list[str]]:
    """The command's own arguments and, after "--", the program's."""
    own, rest = arguments, []
    if "--" in arguments:
        at = arguments.index("--")
        own, rest = arguments[:at], arguments[at + 1 :]
    return list(_joined(own)), rest


def _joined(words: list[str]) -> Iterator[str]:
    """What argparse would take wrongly: a bare --check has no value; that of --nvcc-args begins with "-"."""
    waiting = deque(words)
    while waiting:
        word = waiting.popleft()
        if word == "--check":
            yield f"--check={waiting.popleft() if waiting and _lists_checks(waiting[0]) else 'all'}"
        elif word == "--nvcc-args":
            yield f"{word}={waiting.popleft() if waiting else ''}"
        else:
            yield word


def _lists_checks(word: str) -> bool:
    """Whether the word after a bare --check is its value, and no program."""
    return not word.startswith("-") and not Path(word).exists() and not re.search(r"[./]", word)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "kernelwright exec [options] PROGRAM.cu ... [-- ARGS ...]"
    parser.add_argument(
        "files",
        type=Path,
        nargs="+",
        metavar="PROGRAM",
        help="sources (.cu, .cpp, .o, ...), or one executable",
    )
    parser.add_argument(
        "--check",
        type=_checks,
        default=program.CHECKS,
        metavar="LIST",
        help=f"which checks: any of {','.join(program.CHECKS)}, with commas between; all (the default); "
        "none: fast and unchecked",
    )
    parser.add_argument("--leaks", action="store_true", help="memory that is never freed is an error")
    parser.add_argument("--profile", action="store_true", help="counts by kernel and by source line")
    parser.add_argument(
        "--sample-blocks",
        type=_count,
        default=0,
        metavar="N",
        help="with --profile: count N blocks of each launch, all over it, and estimate (default: all, exact)",
    )
    parser.add_argument("--nvcc-args", type=_words, default=[], metavar='"..."', help="more options for nvcc")
    parser.add_argument(
        "--target",
        default=os.environ.get("KERNELWRIGHT_TARGET", DEFAULT_TARGET),
        choices=sorted(TARGETS),
        help="architecture that is emulated (default: %(default)s)",
    )
    parser.add_argument("--seed", type=_seed, default=0, help="random order of blocks and warps; 0: in order")
    parser.add_argument("--threads", type=_threads, default=os.cpu_count() or 1, help="of this machine (all)")
    parser.add_argument("--seconds", type=_seconds, help="end the program after this time (never)")
    parser.add_argument(
        "--memory", type=_bytes, metavar="SIZE", help="end it above this much, e.g. 4G (never)"
    )
    parser.add_argument(
        "--writable",
        type=_folder,
        action="append",
        default=[],
        metavar="DIR",
        help="besides the current folder",
    )
    parser.add_argument("--stop-at-first", action="store_true", help="end a kernel at its first error")
    parser.add_argument(
        "--error-exitcode", type=_error_code, default=1, metavar="N", help="when a check found an error"
    )
    parser.add_argument("--keep", type=Path, metavar="OUT", help="keep the executable")
    parser.add_argument(
        "--json",
        action="store_true",
        help="the report as JSON on stdout; the program's stdout goes to stderr",
    )


def main(options: argparse.Namespace) -> int:
    if options.sample_blocks and not options.profile:
        say("kernelwright: --sample-blocks says how many blocks --profile counts: give both")
        return BAD_INPUT
    require_writable()
    cancel = Cancellation()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: cancel.set())
    report = Report(say, Demangler(), _profile(options))
    began = time.monotonic()
    try:
        with program.build(
            options.files,
            nvcc_args=options.nvcc_args,
            target=options.target,
            keep=options.keep,
            cancel=cancel,
        ) as built:
            ran = program.run(
                built.executable,
                options.rest,
                _options(options),
                report,
                stdout=2 if options.json else None,
                cancel=cancel,
            )
    except program.BuildFailed as failed:
        if options.json:
            dump(
                {"exit_code": BAD_INPUT, "problem": failed.problem.model_dump(mode="json"), "log": failed.log}
            )
        say(f"kernelwright: {one_line(failed.problem)}")
        return BAD_INPUT
    code = _conclude(ran, report, options)
    if options.json:
        dump(_document(options, built, ran, report, code, time.monotonic() - began))
    return code


def _options(options: argparse.Namespace) -> program.Options:
    return program.Options(
        target=TARGETS[options.target],
        checks=options.check,
        profile=options.profile,
        sample_blocks=options.sample_blocks,
        seed=options.seed,
        threads=options.threads,
        seconds=options.seconds,
        memory_bytes=options.memory,
        leaks=options.leaks,
        stop_at_first=options.stop_at_first,
        writable=tuple(options.writable),
    )


def _conclude(ran: program.Run, report: Report, options: argparse.Namespace) -> int:
    """Says how it went, and with which exit code the command ends."""
    if options.profile:
        _say_profile(report, options)
    if conclusion := report.conclusion():
        say(conclusion)
    if ran.reason == "cancelled":
        say("kernelwright: stopped")
        return STOPPED
    if report.own_faults:
        say("kernelwright: what the program did after Kernelwright's own fault says nothing about it")
        return OWN_FAULT
    if ran.status is None:
        limit = f"{options.seconds:g} s" if ran.reason == "timeout" else f"{options.memory:,} bytes of memory"
        say(f"kernelwright: the program was ended: it used more than {limit}")
        return 128 + signal.SIGKILL
    if 128 < ran.status <= 192:
        say(f"kernelwright: the program died of signal {ran.status - 128}{_signal_name(ran.status - 128)}")
    if ran.status == 0 and report.errors:
        return int(options.error_exitcode)
    return ran.status


def _profile(options: argparse.Namespace) -> Profile | None:
    if not options.profile:
        return None
    from sandbox.program.profile import Profile  # brings NumPy: too slow for every start

    return Profile()


def _say_profile(report: Report, options: argparse.Namespace) -> None:
    """The kernels that executed most, and the lines in them that did."""
    kernels = report.kernels(TARGETS[options.target])
    sources = [file for file in options.files if file.suffix == ".cu"]
    source = sources[0].read_text(errors="replace").splitlines() if len(sources) == 1 else []
    for kernel in kernels[:_HOT_KERNELS]:
        hot = sorted(kernel.lines, key=lambda line: -line.instructions)[:_HOT_LINES]
        lines = sorted(hot, key=lambda line: line.line)
        shown = kernel.model_copy(update={"lines": lines, "name": shortened(kernel.name)})
        say(kernel_table(shown, source))
    if len(kernels) > _HOT_KERNELS:
        say(f"\n{len(kernels) - _HOT_KERNELS} more kernels or sizes of them executed less; --json has all")


def _signal_name(number: int) -> str:
    try:
        return f" ({signal.Signals(number).name})"
    except ValueError:
        return ""


def _document(
    options: argparse.Namespace,
    built: program.Built,
    ran: program.Run,
    report: Report,
    code: int,
    seconds: float,
) -> dict[str, Any]:
    return {
        "files": [str(file) for file in options.files],
        "target": options.target,
        "checks": list(options.check),
        "exit_code": code,
        "program": {"status": ran.status, "ended": ran.reason},
        "errors": report.errors,
        "findings": [
            {
                **finding.model_dump(mode="json"),
                "kernel": report.demangle(finding.kernel),
                "symbol": finding.kernel,
            }
            for finding in report.findings
        ],
        "unsupported": [
            {"kernel": report.demangle(kernel), "symbol": kernel, "message": why}
            for kernel, why in report.unsupported.items()
        ],
        "kernels": [kernel.model_dump(mode="json") for kernel in report.kernels(TARGETS[options.target])],
        "notes": report.notes,
        "own_faults": report.own_faults,
        "left_out": report.left_out,
        "runtime": report.summary,
        "build": {"seconds": round(built.seconds, 3), "log": built.log},
        "seconds": {"program": round(ran.seconds, 3), "total": round(seconds, 3)},
    }


def _checks(text: str) -> tuple[str, ...]:
    if text in ("all", "none"):
        return program.CHECKS if text == "all" else ()
    chosen = tuple(text.split(","))
    unknown = [name for name in chosen if name not in program.CHECKS]
    if unknown:
        raise argparse.ArgumentTypeError(
            f"there is no check {unknown[0]!r}; known: {', '.join(program.CHECKS)}, all, none"
        )
    return chosen


def _whole(text: str, least: int, most: float, what: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is no {what}")
    return number


def _count(text: str) -> int:
    return _whole(text, 1, math.inf, "number of blocks; 1 or more")


def _threads(text: str) -> int:
    return _whole(text, 1, 4096, "number of threads; 1 to 4096")


def _seed(text: str) -> int:
    return _whole(text, 0, (1 << 64) - 1, "seed; 0 or more, below 2^64")


def _error_code(text: str) -> int:
    return _whole(text, 1, 255, "exit code that tells an error; 1 to 255")


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not (math.isfinite(number) and number > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is no time; a number of seconds above 0")
    return number


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} cannot be split as a shell does: {error}") from None


def _folder(text: str) -> Path:
    if not Path(text).is_dir():
        wrong = "is no folder" if Path(text).exists() else "is not there: make it first"
        raise argparse.ArgumentTypeError(f"{text} {wrong}")
    return Path(text)


def _bytes(text: str) -> int:
    unit = _UNITS.get(text[-1:].lower())
    try:
        number = int(float(text[:-1]) * unit) if unit else int(text)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"{text!r} is no size; 4G, 500M") from None
    if number < _LEAST_MEMORY:
        least = f"{_LEAST_MEMORY >> 20}M"
        raise argparse.ArgumentTypeError(f"{text!r} is too little for any program to start; {least} or more")
    return number
