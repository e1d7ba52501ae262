"""The translator against the judge: a real module, traced, translated, and verified in the emulator."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytorch_versions import source

from agent.translator.pytorch.schedule import Schedule
from sandbox.cancellation import Cancellation
from sandbox.client import Judge
from sandbox.tasks.base import Inputs
from sandbox.tasks.pytorch.task import PyTorchTask, load
from sandbox.types import Evaluation

BLOCK = """
import torch
import torch.nn as nn
import torch.nn.functional as F

batch, length, width, heads = 2, 21, 32, 4

class Model(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x, keep):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm(x)).split(c, dim=2)
        q, k, v = (part.view(b, t, self.heads, c // self.heads).transpose(1, 2) for part in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c)
        y = torch.where(keep, x + y, F.silu(x).clamp(max=2.0))
        return y, y.argmax(dim=1), y.std(dim=(0, 1)), torch.cat([y[:, ::2], y[:, -3:].flip(2)], dim=1)

def get_inputs():
    return [torch.randn(batch, length, width), torch.rand(batch, length, 1) > 0.5]

def get_init_inputs():
    return [width, heads]
"""


@pytest.fixture(scope="module")
def task(jail: None) -> PyTorchTask:
    return load(BLOCK, Inputs(), Cancellation())


@pytest.fixture(scope="module")
def judge(task: PyTorchTask) -> Iterator[Judge]:
    judge = Judge(task, backend="emulator", target="sm_90", cancel=Cancellation())
    yield judge
    judge.close()


def verdict(judge: Judge, text: str) -> Evaluation:
    progress = judge.evaluate(text)
    while True:
        try:
            next(progress)
        except StopIteration as stop:
            evaluation: Evaluation = stop.value
            return evaluation


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule(),
        Schedule(fuse=True, rows="warp", tile=64, vector=4, cached=True),
        Schedule(fuse=True, rows="block", row_threads=64, tile=16, split=True),
    ],
    ids=["direct", "fused", "blocks"],
)
def test_every_version_passes(task: PyTorchTask, judge: Judge, schedule: Schedule) -> None:
    evaluation = verdict(judge, source(task.spec, schedule))
    assert evaluation.verdict == "passed", evaluation.message


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("norm_bias[col]", "0.0f"), ("qkv_bias[", "qkv_bias[95 - "), ("2.0f", "2.1f")],
    ids=["no shift", "wrong bias", "wrong limit"],
)
def test_a_slip_is_noticed(task: PyTorchTask, judge: Judge, right: str, wrong: str) -> None:
    text = source(task.spec, Schedule(fuse=True, rows="warp"))
    assert right in text
    evaluation = verdict(judge, text.replace(right, wrong))
    assert evaluation.verdict == "wrong_result", evaluation.message
