"""A module as a task: its prototype, its draws, and what it is expected to compute."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest
from pytorch_loading import load_all

from sandbox.cancellation import Cancellation
from sandbox.tasks.base import Array, Draw, Inputs
from sandbox.tasks.pytorch.graph import Graph, reduction_length
from sandbox.tasks.pytorch.messages import Loaded, LoadRequest, Reply
from sandbox.tasks.pytorch.task import PyTorchTask, load

EXAMPLE = Path(__file__).parents[3] / "examples" / "pytorch" / "bias_gelu_layernorm.py"

MIXED = """
import torch
import torch.nn as nn

rows, vocabulary = 64, 50
width: int = 4 * 1024
shape = (2048, 8)

class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.table = nn.Embedding(vocabulary, width)
        self.register_buffer("mask", torch.tril(torch.ones(shape[1], shape[1])))
        self.unused = nn.Linear(3, 3)

    def forward(self, tokens, scale: float, default):
        looked_up = self.table(tokens) * scale + default.log().sum()
        return looked_up.mean(-1), tokens.argmax(-1), default @ self.mask

def get_inputs():
    return [torch.randint(0, vocabulary, (rows, 32)), 2.5, torch.rand(shape)]

def get_init_inputs():
    return [width]
"""


@pytest.fixture(scope="module")
def task(jail: None) -> PyTorchTask:
    return load(EXAMPLE.read_text(), Inputs(), Cancellation())


@pytest.fixture(scope="module")
def replies(jail: None) -> dict[str, Reply]:
    def request(**sizes: int) -> LoadRequest:
        return LoadRequest(sizes=sizes, max_elements=1 << 17, max_flop=1 << 20)

    example = EXAMPLE.read_text()
    return load_all(
        {
            "mixed": (MIXED, request(rows=48)),
            "sized": (example, request(tokens=7, features=40)),
            "misspelt": (example, request(tokenz=7)),
        }
    )


@pytest.fixture(scope="module")
def mixed(replies: dict[str, Reply]) -> Loaded:
    loaded = replies["mixed"].loaded
    assert loaded is not None, replies["mixed"].problem
    return loaded


def test_prototype_and_sizes(task: PyTorchTask) -> None:
    assert task.spec.prototype == (
        'extern "C" void launch(const float *x, const float *bias, const float *norm_weight, '
        "const float *norm_bias, float *out)"
    )
    tokens, features = task.spec.sizes["tokens"], task.spec.sizes["features"]
    assert tokens < 8192
    assert 3072 % features == 0
    x, *_, out = task.spec.parameters
    assert x.extent == out.extent == str(tokens * features)
    assert out.shape == [str(tokens), str(features)]
    assert out.access == "write"
    assert any("lowered" in note and "tokens 8192" in note for note in task.spec.notes)
    assert any(note.startswith(f"x: float32[{tokens}, {features}]") for note in task.spec.notes)


def test_draws_are_secret_and_varied(task: PyTorchTask) -> None:
    draws, again, other = task.draws(b"seed"), task.draws(b"seed"), task.draws(b"other")
    assert len(draws) >= 5
    distributions = {d.distribution for d in draws}
    assert distributions >= {"normal", "uniform", "heavy_tail", "large_offset", "cancellation"}
    assert sum(d.representative for d in draws) == 1
    for a, b, c in zip(draws, again, other, strict=True):
        assert all(np.array_equal(a.arrays[n], b.arrays[n]) for n in a.arrays)
        assert not any(np.array_equal(a.arrays[n], c.arrays[n]) for n in a.arrays)
    weights = [d.arrays["norm_weight"] for d in draws]
    assert not np.array_equal(weights[0], weights[1])
    assert np.ptp(weights[0]) > 0.1, "a scale of ones would hide a kernel that leaves it out"


def test_expected_is_the_module(task: PyTorchTask) -> None:
    draws = task.draws(b"seed")
    expected = task.expected(draws, Cancellation())
    for draw, one in zip(draws, expected, strict=True):
        truth = bias_gelu_layernorm(draw)
        assert one.truth["out"].dtype == np.float64
        assert one.native["out"].dtype == np.float32
        assert np.allclose(one.truth["out"], truth, rtol=1e-9, atol=1e-9)
        assert np.allclose(one.native["out"], truth, rtol=1e-3, atol=1e-4)
        assert one.rows["out"] == task.spec.sizes["features"]
        assert one.reduction_length >= task.spec.sizes["features"]


def bias_gelu_layernorm(draw: Draw) -> Array:
    x, bias, weight, shift = (
        draw.arrays[n].astype(np.float64) for n in ("x", "bias", "norm_weight", "norm_bias")
    )
    y = x + bias
    y = 0.5 * y * (1 + np.vectorize(math.erf)(y / math.sqrt(2)))
    mean, variance = y.mean(-1, keepdims=True), y.var(-1, keepdims=True)
    result: Array = (y - mean) / np.sqrt(variance + 1e-5) * weight + shift
    return result


def test_process_is_started_again(task: PyTorchTask) -> None:
    """A worker that ended (idle, killed) is not the end of the task."""
    task._process.close()
    assert len(task.expected(task.draws(b"again")[:1], Cancellation())) == 1


def test_a_process_that_ends_while_it_is_asked_is_started_again(task: PyTorchTask) -> None:
    """It ends itself when nobody asked for long, which may be the moment in which somebody does."""
    draws = task.draws(b"seed of sixteen!")[:1]
    task.expected(draws, Cancellation())
    idle = task._process._running[0]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, idle._request)  # no more requests: it ends in order
    os.close(nowhere)
    assert idle.alive
    assert len(task.expected(draws, Cancellation())) == 1
    assert task._process._running[0] is not idle


def test_user_given_sizes(replies: dict[str, Reply]) -> None:
    loaded, problem = replies["sized"].loaded, replies["misspelt"].problem
    assert loaded is not None
    assert loaded.sizes == {"tokens": 7, "features": 40}
    assert not loaded.notes, "what the user asked for was not lowered"
    assert problem is not None
    assert problem.kind == "unknown_size"
    assert problem.choices == ["features", "tokens"]


def test_names_scalars_and_unused(mixed: Loaded) -> None:
    assert mixed.order == ["tokens", "scale", "default_", "table_weight", "mask"]
    assert [(s.name, s.c_type, s.value) for s in mixed.scalars] == [("scale", "float", 2.5)]
    assert [o.name for o in mixed.graph.outputs] == ["out", "out1", "out2"]


def test_sizes_given_and_lowered(mixed: Loaded) -> None:
    assert mixed.sizes["rows"] == 48
    assert mixed.sizes["shape[1]"] == 8, "small integers are not lowered while large ones can give"
    assert mixed.sizes["width"] < 4096
    assert mixed.sizes["shape[0]"] <= 2048


def test_domains(mixed: Loaded) -> None:
    domains = {v.name: v.domain for v in mixed.values}
    assert domains["tokens"] == "integer"
    assert domains["default_"] == "nonnegative", "log accepts no negative input"
    assert domains["mask"] == "fixed", "a buffer keeps its values"
    tokens = next(v for v in mixed.values if v.name == "tokens")
    assert (tokens.low, tokens.high) == (0, mixed.sizes["vocabulary"] - 1)


def test_graph_is_plain_data(mixed: Loaded) -> None:
    again = Graph.model_validate_json(mixed.graph.model_dump_json())
    assert again == mixed.graph
    assert all(node.line is not None for node in again.nodes)
    assert reduction_length(again) >= mixed.sizes["shape[0]"]
