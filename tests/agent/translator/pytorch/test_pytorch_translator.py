"""What the translator makes of traced modules: how many kernels, which shape, and that nvcc takes them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pytorch_graphs import (
    Tracer,
    attention,
    bias_gelu_layer_norm,
    convolution,
    names_that_clash,
    total,
)
from pytorch_versions import source

from agent.translator.pytorch import PyTorchTranslator
from agent.translator.pytorch.schedule import Schedule
from sandbox import toolchain
from sandbox.errors import TaskProblem
from sandbox.tasks.base import TaskSpec
from sandbox.types import Evaluation, Flop, KernelMetrics, Metrics

BEST = Schedule(fuse=True, rows="warp", tile=64, vector=4, cached=True)


def kernels(text: str) -> list[str]:
    return [line.split("(")[0].split()[-1] for line in text.splitlines() if line.startswith("__global__")]


def test_direct_version_has_a_kernel_an_op() -> None:
    spec = bias_gelu_layer_norm()
    draft = PyTorchTranslator(spec).first()
    assert kernels(draft.source) == ["add_0_kernel", "gelu_1_kernel", "layer_norm_2_kernel"]
    assert draft.source.count("cudaMalloc(") == draft.source.count("cudaFree(") == 2
    assert spec.prototype in draft.source


def test_fused_layer_norm_is_one_kernel_without_scratch() -> None:
    text = source(bias_gelu_layer_norm(), BEST)
    assert len(kernels(text)) == 1
    assert "cudaMalloc" not in text
    assert text.count("= gelu(") == 1, "with the row kept in registers gelu is computed once"


def test_elementwise_work_joins_what_comes_before_and_after() -> None:
    spec = attention()
    assert len(kernels(source(spec, Schedule()))) == 5  # two products, scaling, softmax, the final transpose
    fused = source(spec, Schedule(fuse=True))
    assert kernels(fused) == ["bmm_3_kernel", "softmax_5_kernel", "bmm_7_kernel", "permute_9_kernel"]


def test_bias_and_activation_are_a_matrix_products_epilogue() -> None:
    t = Tracer()
    x, w, b = t.input("x", [32, 16]), t.input("w", [64, 16]), t.input("b", [64])
    wt = t.op("aten.permute.default", [16, 64], w, [1, 0])
    y = t.op("aten.relu.default", [32, 64], t.op("aten.addmm.default", [32, 64], b, x, wt))
    for tile in (0, 16, 64):
        text = source(t.spec(y), replace(BEST, tile=tile))  # type: ignore[arg-type]
        assert len(kernels(text)) == 1
        assert "cudaMalloc" not in text


def test_reductions_over_one_space_share_a_kernel() -> None:
    t = Tracer()
    x = t.input("x", [16, 128])
    results = [t.op(f"aten.{name}.default", [16], x, [1]) for name in ("amax", "amin")]
    results.append(t.op("aten.sum.dim_IntList", [16], x, [1]))
    assert len(kernels(source(t.spec(*results), Schedule(fuse=True)))) == 1


def test_reductions_over_different_axes_do_not() -> None:
    t = Tracer()
    x = t.input("x", [16, 128])
    scaled = t.op("aten.div.Tensor", [16, 128], x, t.op("aten.amax.default", [16, 1], x, [1], True))
    columns = t.op("aten.sum.dim_IntList", [128], scaled, [0])
    assert len(kernels(source(t.spec(columns), Schedule(fuse=True)))) == 2


def test_long_row_in_two_steps() -> None:
    text = source(total(), Schedule(fuse=True, split=True, rows="block"))
    assert len(kernels(text)) == 2


def test_output_that_is_an_input_is_copied() -> None:
    t = Tracer()
    x = t.input("x", [4, 6])
    text = source(t.spec(t.op("aten.view.default", [24], x, [24])), Schedule())
    assert "cudaMemcpyAsync(out, x, 24 * sizeof(float)" in text


def test_unknown_op_names_the_op_and_the_line() -> None:
    t = Tracer()
    x = t.input("x", [4, 6])
    y = t.op("aten.relu.default", [4, 6], x)
    spec = t.spec(t.op("aten.linalg_inv_ex.default", [4, 6], y))
    with pytest.raises(TaskProblem) as caught:
        PyTorchTranslator(spec).first()
    problem = caught.value.problem
    assert problem.kind == "unsupported_construct"
    assert "aten.linalg_inv_ex" in problem.message
    assert problem.line == 11


def test_moves_are_argued_from_measurements() -> None:
    translator = PyTorchTranslator(bias_gelu_layer_norm())
    draft = translator.first()
    moves = list(translator.moves(draft, measured(kernels(draft.source))))
    titles = [move.title for move in moves]
    assert titles[:2] == ["Reduce each row with a warp", "Fuse elementwise work into its neighbours"]
    assert "31.0 sectors per request" in moves[0].reason
    assert len({move.draft.source for move in moves}) == len(moves)
    assert translator.first() == draft, "equal schedules give equal sources"


def measured(names: list[str]) -> Evaluation:
    def kernel(name: str) -> KernelMetrics:
        return KernelMetrics(
            name=name,
            grid=(1, 1, 1),
            block=(256, 1, 1),
            global_load_requests=100,
            global_load_sectors=3100,
            global_store_requests=100,
            global_store_sectors=400,
            global_load_efficiency=0.1,
            global_store_efficiency=1.0,
            shared_load_bank_conflicts=0,
            shared_store_bank_conflicts=0,
            instructions=1000,
            active_threads_per_warp=32.0,
            theoretical_occupancy=1.0,
            occupancy_limiter="warps",
            flop=Flop(fp32=1000),
            dram_bytes=1000,
            arithmetic_intensity=1.0,
            barriers_per_thread=0.0,
            useless_barriers=0,
            atomics=0,
            atomic_lanes_per_address=None,
            warp_instruction_spread=0.0,
            block_instruction_spread=0.0,
            waves=0.1,
            tail_fraction=0.9,
            local_bytes=0,
            lines=[],
        )

    metrics = Metrics(
        structural_score=50.0, families={}, measured_by="emulator", kernels=[kernel(n) for n in names]
    )
    return Evaluation(
        verdict="passed", fault=None, message="", backend="emulator", target="sm_90", metrics=metrics
    )


@pytest.mark.parametrize(
    "make", [bias_gelu_layer_norm, attention, convolution, names_that_clash, total], ids=lambda f: f.__name__
)
def test_nvcc_takes_every_version(make: Callable[[], TaskSpec], nvcc: None, tmp_path: Path) -> None:
    schedules = [Schedule(), BEST, replace(BEST, rows="block", row_threads=64, tile=16, split=True)]
    files = [tmp_path / f"version_{i}.cu" for i in range(len(schedules))]
    for file, schedule in zip(files, schedules, strict=True):
        file.write_text(source(make(), schedule))
    done = subprocess.run(
        [str(toolchain.find_toolkit().nvcc), "-arch=sm_90", "-ptx", *map(str, files)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
