"""The CUDA runtime as whole programs use it: each program checks itself; here its end and reports count."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from emulated_program import Ran, build, run

from sandbox.targets import TARGETS

PROGRAMS = Path(__file__).parent / "programs"
TIMES = "times are of the emulation, not of a GPU"

pytestmark = pytest.mark.usefixtures("jail")


def ran(name: str, folder: Path, *arguments: str, **options: Any) -> Ran:
    return run(build(PROGRAMS / f"{name}.cu", folder), *arguments, **options)


def errors(result: Ran) -> list[dict[str, Any]]:
    """Not what is only noted: these programs leave memory to the end of the process."""
    return [fault for fault in result.faults if fault["severity"] == "error"]


@pytest.mark.parametrize(
    "name",
    [
        "saxpy",
        "memory",
        "shared_memory",
        "streams",
        "graphs",
        "device",
        "cooperative",
        "churn",
        "device_heap",
        "textures",
        "tiles",
        "apart",
    ],
)
def test_a_program_that_checks_itself(name: str, tmp_path: Path) -> None:
    result = ran(name, tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert (errors(result), result.unsupported) == ([], {})
    assert result.notes == ([TIMES] if name == "streams" else [])


@pytest.mark.parametrize("target", ["sm_80", "sm_100", "sm_120"])
@pytest.mark.parametrize("name", ["saxpy", "tiles"])
def test_a_program_of_another_target(name: str, target: str, tmp_path: Path) -> None:
    """Built for it, so that nvcc's PTX is another, and run with its limits."""
    executable = build(PROGRAMS / f"{name}.cu", tmp_path, "-DONE_SIZE", target=target)
    result = run(executable, target=target, profile=True)
    assert (result.returncode, result.stderr) == (0, "")
    assert (errors(result), result.unsupported) == ([], {})
    kernel, limits = result.kernels[0], TARGETS[target]
    warps = math.prod(kernel.grid) * math.prod(kernel.block) / 32
    held = kernel.theoretical_occupancy * limits.max_warps_per_sm * limits.sm_count
    assert kernel.waves == pytest.approx(warps / held)


def test_a_kernel_that_fails_ends_in_an_error_not_in_the_program(tmp_path: Path) -> None:
    result = ran("faults", tmp_path)
    assert (result.returncode, result.stdout) == (3, "went on\n")
    assert [fault["kind"] for fault in errors(result)] == ["out of bounds", "out of bounds", "bad free"]
    kernel, copy, free = errors(result)
    assert kernel["kernel"] == "_Z5writePii"
    assert "right behind the end of the memory of allocation 1 (400 bytes)" in kernel["message"]
    assert copy["message"].startswith("cudaMemcpy: write of 404 bytes")
    assert "was freed" in free["message"]


def test_thrust_and_cub_are_headers_like_others(tmp_path: Path) -> None:
    result = ran("thrust", tmp_path, "200000", seconds=300)
    assert (result.returncode, result.stdout, result.stderr) == (0, "fine\n", "")
    assert (errors(result), result.notes, result.unsupported) == ([], [], {})


def test_device_code_of_several_files(tmp_path: Path) -> None:
    folder = PROGRAMS / "linked"
    result = run(build(folder / "first.cu", tmp_path, "-rdc=true", others=[folder / "second.cu"]))
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "before\nfirst a 3\nbetween\nsecond b 100\n"
    assert result.ok, result
