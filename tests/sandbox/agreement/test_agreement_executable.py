"""The plain executable that Nsight Compute looks at, as a program without a GPU: same job, same outputs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from suite_runs import CASES, TARGET, outcomes

from sandbox import program
from sandbox.agreement import job
from sandbox.agreement.build import KERNELS, source
from sandbox.cancellation import Cancellation
from sandbox.program.names import Demangler
from sandbox.program.profile import Profile
from sandbox.targets import TARGETS

THEMES = ("shared",)  # all of them take minutes


@pytest.mark.usefixtures("jail")
def test_the_executable_makes_what_the_replays_make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*THEMES, "runner"):
        shutil.copy(KERNELS / f"{name}.cu", tmp_path)
    main = tmp_path / "agreement.cu"
    main.write_text(source(THEMES))
    tmp_path.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    cases = [case for case in CASES if case.group in THEMES]
    prepared = job.write(cases, tmp_path)
    report = program.Report(lambda text: None, Demangler(), Profile())
    options = program.Options(target=TARGETS[TARGET], threads=2, seconds=120)
    product = tmp_path / "agreement"
    with (
        open(os.devnull, "w") as nowhere,
        program.build([main], nvcc_args=["-std=c++17"], target=TARGET, keep=product, cancel=Cancellation()),
    ):
        ran = program.run(
            product, prepared.arguments, options, report, stdout=nowhere.fileno(), cancel=Cancellation()
        )
    assert ran.status == 0
    assert not report.findings
    assert not report.unsupported
    for case, found in zip(cases, prepared.outputs(), strict=True):
        for name, wanted in outcomes("ordinary")[case.name][1].items():
            assert np.array_equal(found[name].view("u1"), wanted.view("u1")), (case.name, name)


def test_an_output_that_is_cut_short_is_told(tmp_path: Path) -> None:
    prepared = job.write(CASES[:3], tmp_path)
    prepared.output.write_bytes(b"1234")
    with pytest.raises(RuntimeError, match="left 4 bytes of output, not"):
        prepared.outputs()
