"""Whole CUDA programs of the tests' own: built and run as `kernelwright exec` does, their words caught."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox import program
from sandbox.cancellation import Cancellation
from sandbox.program.names import Demangler
from sandbox.program.profile import Profile
from sandbox.targets import TARGETS
from sandbox.types import KernelMetrics


@dataclass
class Ran:
    returncode: int | None  # as a shell reports it; None when a limit ended it
    stdout: str
    stderr: str
    faults: list[dict[str, Any]]
    kernels: list[KernelMetrics]  # of a run with profile
    notes: list[str]
    unsupported: dict[str, str]  # kernel -> why
    summary: dict[str, Any]

    @property
    def signal(self) -> int | None:
        died = self.returncode is not None and self.returncode > 128
        return self.returncode - 128 if died and self.returncode is not None else None

    @property
    def ok(self) -> bool:
        return self.returncode == 0 and not self.faults and not self.notes and not self.unsupported


def build(
    source: Path, folder: Path, *nvcc_args: str, others: Sequence[Path] = (), target: str = "sm_90"
) -> Path:
    product = folder / source.stem
    with program.build(
        [source, *others],
        nvcc_args=["-std=c++17", *nvcc_args],
        target=target,
        keep=product,
        cancel=Cancellation(),
    ):
        return product


def run(executable: Path, *arguments: str, seconds: float = 60, target: str = "sm_90", **options: Any) -> Ran:
    """`options`: of `program.Options`. The program's current folder is the tests' own."""
    report = program.Report(lambda text: None, Demangler(), Profile())
    settings = {"target": TARGETS[target], "threads": 2, "seconds": seconds, **options}
    with _caught("stdout") as stdout, _caught("stderr") as stderr:
        ran = program.run(
            executable,
            arguments,
            program.Options(**settings),
            report,
            stdout=stdout.fileno(),
            stderr=stderr.fileno(),
            cancel=Cancellation(),
        )
        said = [os.pread(file.fileno(), 1 << 24, 0).decode(errors="replace") for file in (stdout, stderr)]
    return Ran(
        returncode=ran.status,
        stdout=said[0],
        stderr=said[1],
        faults=[finding.model_dump() for finding in report.findings],
        kernels=report.kernels(TARGETS[target]),
        notes=report.notes,
        unsupported=report.unsupported,
        summary=report.summary,
    )


def _caught(name: str) -> Any:
    return os.fdopen(os.memfd_create(name), "w+b")
