"""cuBLAS and cuFFT against NumPy: one process in the jail runs all cases of a library; each is a test."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from emulated_program import Ran, run

from sandbox import native
from sandbox.program.libraries import OFFERED

SCRIPTS = Path(__file__).parent / "libraries"


def cases(library: str) -> list[str]:
    return re.findall(r'^    "(\w+)": ', (SCRIPTS / f"{library}_cases.py").read_text(), re.M)


@pytest.fixture(scope="module")
def told(jail: None) -> dict[str, Ran]:
    """What a process said that ran all cases, started for the first of them."""
    return {}


def result(told: dict[str, Ran], library: str) -> Ran:
    if library not in told:
        offered = OFFERED[library]
        if offered.missing:
            pytest.skip(offered.missing)
        words = [str(SCRIPTS / f"{library}_cases.py"), str(native.path(library))]
        words += [f"{offered.variable}={offered.find()}"] if offered.variable else []
        told[library] = run(Path(sys.executable), *words, seconds=300)
    return told[library]


@pytest.mark.parametrize("name", cases("cublas"))
def test_cublas(told: dict[str, Ran], name: str) -> None:
    ran = result(told, "cublas")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)[name] == ""


@pytest.mark.parametrize("name", cases("cufft"))
def test_cufft(told: dict[str, Ran], name: str) -> None:
    ran = result(told, "cufft")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)[name] == ""


def test_correct_calls_give_no_finding(told: dict[str, Ran]) -> None:
    faults: list[dict[str, Any]] = result(told, "cublas").faults + result(told, "cufft").faults
    assert faults == []
    misplaced, result_misplaced, of_cublas = result(told, "cublas").notes
    assert misplaced.startswith("cuBLAS: alpha lies in device memory")
    assert result_misplaced.startswith("cuBLAS: the result lies in device memory")
    assert of_cublas.startswith(
        "unsupported: cublasGemmEx: a product of the types (cudaDataType) 28 and 28 into 0"
    )
    (of_cufft,) = result(told, "cufft").notes
    assert of_cufft.startswith("unsupported: cufftXtMakePlanMany: ")


def test_calls_are_counted(told: dict[str, Ran]) -> None:
    calls = result(told, "cublas").summary["library_calls"]
    assert calls["cublasSgemm"] > 30
    assert result(told, "cufft").summary["library_calls"]["cufftExecZ2Z"] > 30
