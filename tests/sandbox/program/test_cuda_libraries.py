"""cuBLAS, cuFFT and cuRAND as whole programs use them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from emulated_program import Ran, build, run

from sandbox import native
from sandbox.program import libraries
from sandbox.toolchain import find_toolkit

PROGRAMS = Path(__file__).parent / "programs" / "libraries"

pytestmark = pytest.mark.usefixtures("jail")


def options(*names: str) -> list[str]:
    for name in names:
        if libraries.OFFERED[name].missing:
            pytest.skip(libraries.OFFERED[name].missing)
    return [f"-l{name}" for name in names]


@pytest.mark.parametrize(("program", "library"), [("blas", "cublas"), ("fft", "cufft"), ("random", "curand")])
def test_a_program_of_a_library_checks_itself(tmp_path: Path, program: str, library: str) -> None:
    executable = build(PROGRAMS / f"{program}.cu", tmp_path, *options(library))
    result = run(executable, seconds=300)
    assert (result.returncode, result.stdout, result.stderr) == (0, "right\n", "")
    assert (result.faults, result.unsupported, result.notes) == ([], {}, [])


@pytest.fixture(scope="module")
def faulty(jail: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(PROGRAMS / "faults.cu", tmp_path_factory.mktemp("faults"), *options("cublas", "cufft"))


def fault(faulty: Path, name: str, **settings: object) -> tuple[Ran, list[tuple[str, str]]]:
    result = run(faulty, name, **settings)
    return result, [(one["kind"], one["message"]) for one in result.faults if one["severity"] == "error"]


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        (
            "small",
            "out of bounds",
            r"cublasSgemm: write of C, 4,096 bytes at 0x\w+, across the edge of the memory of allocation 3 "
            r"\(4,092 bytes\)",
        ),
        (
            "freed",
            "use after free",
            r"cublasSgemm: read of A, 4,096 bytes at 0x\w+, inside the memory of allocation 1 "
            r"\(4,096 bytes\), which was freed",
        ),
        (
            "host",
            "out of bounds",
            r"cublasSgemm: read of A, 4,096 bytes at 0x\w+, which is far from every .*",
        ),
        ("fft", "out of bounds", r"cufftExecC2C: read of idata, 8,192 bytes at 0x\w+, across the edge of .*"),
    ],
)
def test_memory_that_is_not_there_fails_the_call(faulty: Path, name: str, kind: str, message: str) -> None:
    result, found = fault(faulty, name)
    assert len(found) == 1
    assert found[0][0] == kind
    assert re.fullmatch(message, found[0][1]), found
    # The call says so, and so does everything after it, as on a device.
    failed = 6 if name == "fft" else 13
    assert (result.returncode, result.stdout) == (0, f"{failed} cudaErrorIllegalAddress\n")


@pytest.mark.parametrize(("name", "argument", "allocation"), [("unwritten", "B", 2), ("old", "C", 3)])
def test_reads_of_what_was_never_written(faulty: Path, name: str, argument: str, allocation: int) -> None:
    result, found = fault(faulty, name)
    want = (
        rf"cublasSgemm: read of {argument}, 4,096 bytes at 0x\w+, in the memory of allocation {allocation}, "
        "not all of which were written before"
    )
    assert [kind for kind, _ in found] == ["uninitialised"]
    assert re.fullmatch(want, found[0][1]), found
    assert (result.returncode, result.stdout) == (0, "0 cudaSuccess\n")
    assert fault(faulty, name, checks=("memcheck",))[1] == []


def test_what_a_call_wrote_counts_as_written(faulty: Path) -> None:
    assert fault(faulty, "right")[1] == []


@pytest.mark.parametrize(("header", "library"), [("cublas_v2", "cublas"), ("cufftXt", "cufft")])
def test_our_headers_declare_what_the_libraries_have(header: str, library: str) -> None:
    """And nothing else: what is not there shall be missing when a program is linked."""
    include = find_toolkit().root / "include"
    command = ["g++", "-E", "-P", "-x", "c++", "-I", str(libraries.HEADERS), "-I", str(include), "-"]
    text = subprocess.run(
        command, input=f"#include <{header}.h>\n", capture_output=True, text=True, check=True
    ).stdout
    declared = set(re.findall(rf"\b({library}[A-Z]\w+)\s*\([^;{{}}]*\)\s*;", text))
    assert declared == {name for name in _exported(native.path(library)) if name.startswith(library)}


def _exported(library: Path) -> set[str]:
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True
    ).stdout
    return {line.split()[-1] for line in listed.splitlines()}
