"""What becomes of an nvcc command line, option by option."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.program.libraries import OFFERED
from sandbox.program.nvcc import adapt, explain


def product(name: str) -> Path:
    return Path(f"/native/{name}/lib{name}.so")


def kept(*arguments: str, target: str = "sm_90") -> list[str]:
    """Without what is always added."""
    added = {
        "-cudart=shared",
        "--compress-mode=none",
        "-L/native/cudart",
        "-Xlinker=-rpath=/native/cudart",
    }
    return [word for word in adapt(arguments, target=target, product=product).arguments if word not in added]


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
    "dropped",
    [
        ["-cudart", "static"],
        ["--cudart=none"],
        ["-lcudart_static"],
        ["-lculibos"],
        ["-Xfatbin", "-compress-all"],
    ],
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
    line = adapt(["a.cu", "-lcusparse", "-lcuda", "-lm"], target="sm_90", product=product)
    assert line.left_out == ["-lcusparse", "-lcuda"]
    assert "-lm" in line.arguments
    log = "a.o: in function `main':\na.cu:(.text+0x1d): undefined reference to `cusparseCreate'\n"
    log += "".join(f"undefined reference to `{name}'\n" for name in ("cuInit", "cusparseSpMV", "mine"))
    explained = explain(log, line)
    assert len(explained) == 2
    assert "cusparseCreate of cuSPARSE (-lcusparse)" in explained[0]
    assert "cuInit" in explained[1]


@pytest.mark.parametrize("option", ["cufft", "cufft_static"])
def test_libraries_that_are_offered_are_linked_from_their_folders(option: str) -> None:
    line = adapt(["a.cu", f"-l{option}", "-lm"], target="sm_90", product=product, headers=[Path("/own")])
    assert (line.left_out, line.linked) == ([], ["cufft"])
    assert line.arguments[-3:] == ["a.cu", "-lcufft", "-lm"]
    assert {"-L/native/cufft", "-Xlinker=-rpath=/native/cufft"} <= set(line.arguments)
    at = line.arguments.index("-isystem")
    assert line.arguments[at + 1] == "/own"


def test_functions_that_an_offered_library_lacks_are_named() -> None:
    line = adapt(["a.cu", "-lcufft"], target="sm_90", product=product)
    names = [*(f"cufftXt{n}" for n in range(7)), "cufftXt0"]
    (sentence,) = explain("".join(f"undefined reference to `{name}'\n" for name in names), line)
    assert sentence.startswith("unsupported: the program calls cufftXt0, cufftXt1, ")
    assert "cufftXt4, ... of cuFFT" in sentence


def test_a_library_that_was_not_linked() -> None:
    line = adapt(["a.cu"], target="sm_90", product=product)
    (sentence,) = explain("undefined reference to `cufftPlan1d'\n", line)
    assert sentence.endswith("link it with -lcufft")


def test_a_library_whose_needs_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    without = replace(OFFERED["curand"], find=lambda: None)
    monkeypatch.setitem(OFFERED, "curand", without)
    line = adapt(["a.cu", "-lcurand"], target="sm_90", product=product)
    assert (line.left_out, line.linked) == (["-lcurand"], [])
    (sentence,) = explain("undefined reference to `curandGenerate'\n", line)
    assert "pip install" in sentence
    (sentence,) = explain("a.cu:1:10: fatal error: curand_kernel.h: No such file or directory\n", line)
    assert "curand_kernel.h" in sentence
    assert "pip install" in sentence


def test_headers_of_libraries_that_are_not_offered() -> None:
    line = adapt(["a.cu"], target="sm_90", product=product)
    (sentence,) = explain("a.cu:1:10: fatal error: cusparse.h: No such file or directory\n", line)
    assert sentence.startswith("unsupported: the program includes cusparse.h of cuSPARSE")
    assert explain("a.cu:1:10: fatal error: mine.h: No such file or directory\n", line) == []
