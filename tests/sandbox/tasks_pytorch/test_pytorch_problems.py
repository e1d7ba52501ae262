"""Files that cannot be tasks: each a problem of its own kind, with the line where one is known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pytorch_loading import load_all

from sandbox.cancellation import Cancellation
from sandbox.errors import Cancelled, TaskProblem
from sandbox.limits import GIB, TORCH
from sandbox.tasks.base import Inputs
from sandbox.tasks.pytorch.messages import LoadRequest, Reply
from sandbox.tasks.pytorch.task import load
from sandbox.types import Problem

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


def module(forward: str, inputs: str = "[torch.randn(8, 16)]", extra: str = "", init: str = "pass") -> str:
    return (
        f"{HEAD}{extra}\n"
        "class Model(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        f"        {init}\n"
        "    def forward(self, x):\n"
        f"        {forward}\n"
        f"def get_inputs():\n    return {inputs}\n"
    )


BAD = {
    "syntax": "import torch\nclass Model(:\n",
    "no_model": f"{HEAD}class Net(nn.Module):\n    pass\n",
    "no_inputs": f"{HEAD}class Model(nn.Module):\n    def forward(self, x):\n        return x\n",
    "import_fails": f"{HEAD}import numba\n",
    "exits": f"{HEAD}raise SystemExit(0)\n",
    "init_raises": module("return x", init="raise ValueError('no such width')"),
    "forward_raises": module("return x @ x"),
    "branches": module("return x * 2 if x.sum() > 0 else x"),
    "random": module("return x + torch.rand(8, 16)"),
    "constant": module("return torch.zeros(8, 16) + 1"),
    "half": module("return x + 1", inputs="[torch.randn(8, 16).half()]"),
    "no_tensor": module("return None"),
    "wants_gpu": module("return x", inputs="[torch.randn(8, 16).cuda()]"),
    "huge": module("return x + 1", inputs="[torch.randn(8192, 16384)]"),
    "in_place_state": module(
        "self.seen += 1; return x + 1", init="self.register_buffer('seen', torch.zeros(1))"
    ),
    "boolean_mask": module("return x[x > 0]"),
}


@pytest.fixture(scope="module")
def replies(jail: None) -> dict[str, Reply]:
    request = LoadRequest(sizes={}, max_elements=1 << 20, max_flop=1 << 24)
    return load_all({name: (source, request) for name, source in BAD.items()})


def problem(replies: dict[str, Reply], name: str) -> Problem:
    found = replies[name].problem
    assert found is not None, f"{name} was accepted"
    return found


@pytest.mark.parametrize(
    ("name", "kind", "line"),
    [
        ("syntax", "parse_error", 2),
        ("no_model", "no_model", None),
        ("no_inputs", "no_get_inputs", None),
        ("import_fails", "raises", 4),
        ("exits", "raises", 4),
        ("init_raises", "raises", 8),
        ("forward_raises", "raises", 10),
        ("branches", "does_not_export", 10),
        ("random", "non_deterministic", None),
        ("constant", "constant_output", None),
        ("half", "unsupported_dtype", None),
        ("no_tensor", "no_output", None),
        ("wants_gpu", "raises", 12),
        ("huge", "too_large", None),
        ("in_place_state", "unsupported_construct", None),
        ("boolean_mask", "unsupported_construct", 10),
    ],
)
def test_bad_file(replies: dict[str, Reply], name: str, kind: str, line: int | None) -> None:
    found = problem(replies, name)
    assert found.kind == kind, found
    if line is not None:
        assert found.line == line, found


def test_messages_help(replies: dict[str, Reply]) -> None:
    assert problem(replies, "no_model").choices == ["Net"]
    assert "no such width" in problem(replies, "init_raises").message
    assert "CPU" in problem(replies, "wants_gpu").hint
    assert "module-level integers" in problem(replies, "huge").hint


def test_endless_file_is_stopped(jail: None) -> None:
    limits = replace(TORCH, wall_seconds=2)
    with pytest.raises(TaskProblem) as caught:
        load(f"{HEAD}while True:\n    pass\n", Inputs(), Cancellation(), limits=limits, filename="my/net.py")
    assert caught.value.problem.kind == "endless"
    assert caught.value.problem.file == "net.py"


def test_memory_is_limited(jail: None) -> None:
    limits = replace(TORCH, memory_bytes=2 * GIB)
    with pytest.raises(TaskProblem) as caught:
        load(f"{HEAD}x = torch.ones(1 << 32)\n", Inputs(), Cancellation(), limits=limits)
    assert caught.value.problem.kind == "out_of_memory"


def test_cancelled(jail: None) -> None:
    cancel = Cancellation()
    cancel.set()
    with pytest.raises(Cancelled):
        load(f"{HEAD}while True:\n    pass\n", Inputs(), cancel)


def test_a_file_that_ends_the_process_is_at_fault(jail: None) -> None:
    with pytest.raises(TaskProblem) as caught:
        load(f"{HEAD}import os\nos._exit(0)\n", Inputs(), Cancellation(), filename="mine.py")
    problem = caught.value.problem
    assert (problem.kind, problem.file) == ("crashed", "mine.py")
    assert "exit code 0" in problem.message
