"""A Thrust sort of a million keys from cold: nothing compiled, nothing lowered, nothing cached.

The CUDA runtime itself is built before: an installation does that once, not each program.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from sandbox import native, program
from sandbox.cancellation import Cancellation
from sandbox.emulator import bench
from sandbox.program.names import Demangler
from sandbox.targets import DEFAULT_TARGET, TARGETS

SOURCE = Path(bench.__file__).parent / "thrust_sort.cu"
#: From nothing to the end of the program, of the clock.
GOAL_SECONDS = 20.0


def measure(threads: int) -> dict[str, Any]:
    """Clock seconds of nvcc and of the run, whose kernels are lowered as they come, with all checks.

    Raises what `program.build` and `program.run` raise.
    """
    native.path("cudart")
    cancel = Cancellation()
    with tempfile.TemporaryDirectory(prefix="kw-bench-") as home:
        before = os.environ.get("KERNELWRIGHT_HOME")
        os.environ["KERNELWRIGHT_HOME"] = home
        try:
            report = program.Report(lambda _: None, Demangler())
            with program.build([SOURCE], target=DEFAULT_TARGET, cancel=cancel) as built:
                options = program.Options(target=TARGETS[DEFAULT_TARGET], threads=threads)
                ran = program.run(built.executable, [], options, report, stdout=2, cancel=cancel)
        finally:
            if before is None:
                del os.environ["KERNELWRIGHT_HOME"]
            else:
                os.environ["KERNELWRIGHT_HOME"] = before
    return {
        "sorted": ran.status == 0,
        "errors": report.errors,
        "build": built.seconds,
        "run": ran.seconds,
        "seconds": built.seconds + ran.seconds,
        "threads": threads,
    }


def text(result: dict[str, Any]) -> str:
    """The result for people."""
    verdict = "sorted" if result["sorted"] and not result["errors"] else "NOT sorted, or with errors found"
    return (
        f"a Thrust sort of a million keys from cold, all checks, {result['threads']} threads: {verdict}\n"
        f"nvcc {result['build']:.1f} s, lowering and running {result['run']:.1f} s, "
        f"together {result['seconds']:.1f} s (goal {GOAL_SECONDS:g} s)"
    )
