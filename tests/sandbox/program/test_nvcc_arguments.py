"""What becomes of an nvcc command line, option by option."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.program.nvcc import adapt, explain

RUNTIME = Path("/native/libcudart.so.13")


def kept(*arguments: str, target: str = "sm_90") -> list[str]:
    """Without what is always added."""
    added = {"-cudart=shared", "--compress-mode=none", "-L/native", "-Xlinker=-rpath=/native"}
    return [word for word in adapt(arguments, target=target, runtime=RUNTIME).arguments if word not in added]


@pytest.mark.parametrize(
    "architecture",
    [
        ["-arch=sm_35"],
        ["-arch", "sm_70"],
        ["--gpu-architecture=native"],
        ["-gencode", "arch=compute_60,code=sm_60", "-gencode=arch=compute_70,code=[sm_70,compute_70]"],
        ["-arch=compute_80", "-code=sm_80,compute_80"],
        ["--generate-code", "arch=compute_52,code=sm_52"],
    ],
)
def test_the_target_replaces_every_architecture(architecture: list[str]) -> None:
    assert kept(*architecture, "a.cu", "-o", "a") == ["-arch=sm_90", "-lineinfo", "a.cu", "-o", "a"]


def test_what_only_one_architecture_has_is_kept_for_it() -> None:
    assert kept("-gencode=arch=compute_90a,code=sm_90a", "a.cu")[0] == "-arch=sm_90a"
    assert kept("-arch=sm_90a", "a.cu", target="sm_80")[0] == "-arch=sm_80"


@pytest.mark.parametrize(
    "dropped", [["-cudart", "static"], ["--cudart=none"], ["-lcudart_static"], ["-Xfatbin", "-compress-all"]]
)
def test_the_runtime_is_shared_and_nothing_compressed(dropped: list[str]) -> None:
    assert kept(*dropped, "a.cu") == ["-arch=sm_90", "-lineinfo", "a.cu"]


def test_debug_builds_have_their_lines_anyway() -> None:
    assert "-lineinfo" not in kept("-G", "a.cu")
    assert kept("-lineinfo", "a.cu").count("-lineinfo") == 1


def test_everything_else_is_passed_on_in_order() -> None:
    words = [
        "-O3",
        "-std=c++17",
        "-Xcompiler",
        "-arch=x",
        "-I",
        "include",
        "-DN=4",
        "-c",
        "a.cu",
        "-lm",
        "-lgomp",
    ]
    assert kept(*words) == ["-arch=sm_90", "-lineinfo", *words]


def test_libraries_that_are_not_offered_are_left_out_and_explained() -> None:
    line = adapt(["a.cu", "-lcublas", "-lcuda", "-lm"], target="sm_90", runtime=RUNTIME)
    assert line.left_out == ["-lcublas", "-lcuda"]
    assert "-lm" in line.arguments
    log = "a.o: in function `main':\na.cu:(.text+0x1d): undefined reference to `cublasCreate_v2'\n"
    log += "".join(f"undefined reference to `{name}'\n" for name in ("cuInit", "cublasSgemm_v2", "mine"))
    explained = explain(log, line.left_out)
    assert len(explained) == 2
    assert "cublasCreate_v2" in explained[0]
    assert "cuBLAS (-lcublas)" in explained[0]
    assert "cuInit" in explained[1]
