"""Every function of the corpus becomes the kernels it should, and nvcc takes them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from c_samples import CORPUS, body_of, context_of, corpus, direct, kinds

#: What each function becomes: maps with their dimensions, reductions, one-thread kernels; + where atomic.
EXPECTED = {
    "argmin_masked": "reduce1",
    "atax": "map1 map1 map1",
    "batch_norm": "map1",
    "blur_clamped": "map2",
    "cholesky": "reduce1 map1",
    "col_means": "map1 map1 map1",
    "compact": "serial",
    "conv2d_nchw": "map4",
    "count_matches": "reduce1",
    "covariance": "map1 map2 map2",
    "downsample": "map1",
    "edit_dp": "map1 map1 serial",
    "ema_channels": "map1",
    "fdtd": "map1 map2 map2 map2",
    "fft_stage": "map2",
    "find_first": "reduce1",
    "floyd_warshall": "serial",
    "frobenius": "reduce2",
    "gauss_jordan": "serial map1 serial map1",
    "gemm_ikj": "map2 map2",
    "gemm_ld": "map2 serial",
    "heat_swap": "map1 map1",
    "histogram256": "map1 map1+",
    "is_sorted": "reduce1",
    "jacobi_steps": "map2 map2",
    "kmeans_assign": "map1+",
    "lu_factor": "map1 map2",
    "normalise": "reduce1 reduce1 map1",
    "pingpong": "map1 serial",
    "prefix_sum": "serial",
    "seidel": "serial",
    "stencil3d": "map3",
    "struct_free": "map1",
    "sum_into": "reduce1",
    "transpose_div": "map1",
    "trisolve": "reduce1",
}


@pytest.mark.parametrize("name", sorted(p.stem for p in CORPUS.glob("*.c")))
def test_translates(name: str) -> None:
    context = corpus(name)
    source = direct(context)
    assert 'extern "C" void launch(' in source
    if name in EXPECTED:
        assert kinds(context) == EXPECTED[name]


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc on the PATH is needed to compile the corpus")
def test_nvcc_takes_the_corpus(tmp_path: Path) -> None:
    """In two files for speed: each function in its own namespace."""
    names = (
        "argmin_masked",
        "conjugate_gradient",
        "fft_stage",
        "gauss_jordan",
        "heat_swap",
        "syrk",
        "relax_until",
    )
    parts: list[str] = []
    for name in names:
        source = direct(corpus(name))
        lines = [line for line in source.splitlines() if not line.startswith("#include")]
        parts.append(f"namespace {name} {{\n" + "\n".join(lines).replace('extern "C" ', "") + "\n}")
    headers = "".join(
        f"#include <{h}>\n" for h in ("cuda_runtime.h", "cfloat", "climits", "cmath", "cstdint")
    )
    path = tmp_path / "corpus.cu"
    path.write_text(headers + "\n".join(parts))
    command = ["nvcc", "-ptx", "-arch=sm_90", "-o", "/dev/null", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr


def test_the_direct_version_reads_as_a_person_writes() -> None:
    source = direct(corpus("axpby"))
    assert body_of(source, "axpby_y") == (
        "__global__ void axpby_y("
        "int n, float a, float b, const float *__restrict__ x, float *__restrict__ y) {\n"
        "    const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    if (i >= n) return;\n"
        "    y[i] = a * x[i] + b * y[i];\n"
        "}"
    )


def test_scalars_pass_between_kernels_on_the_device() -> None:
    source = direct(corpus("normalise"))
    assert "cudaMemcpy" not in source
    assert "struct Scalars {" in source
    assert "const float mean = scalars->mean;" in body_of(source, "normalise_y")


def test_rounding_is_kept_where_it_decides() -> None:
    assert "__dmul_rn" in direct(corpus("mandel"))
    assert "_rn(" not in direct(corpus("gemm_vla"))


def test_rows_that_may_overlap_are_checked_by_the_host() -> None:
    source = direct(corpus("gemm_ld"))
    launch = source.split('extern "C" void launch(')[1]
    tested, otherwise = launch.split("    } else {\n")
    assert "    if (1 + ldc + -1 * m > 0) {\n" in tested
    assert "gemm_ld_c<<<grid, block>>>" in tested
    assert otherwise.lstrip().startswith("gemm_ld_overlapping<<<1, 1>>>")
    assert "Rows that overlap are written in C's order" in source


def test_early_returns_and_continues_are_structured() -> None:
    context = context_of(
        "int f(int n, const int *x, int *y) {\n"
        "    if (n < 4) return -1;\n"
        "    for (int i = 0; i < n; i++) { if (x[i] < 0) continue; y[i] = x[i]; }\n"
        "    return 0;\n}",
        "f",
    )
    assert kinds(context) == "serial map1 serial"
    assert "if (n < 4) {" in direct(context)
