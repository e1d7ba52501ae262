"""Parameters may be called what emitted code calls its own things: nothing is shadowed, nothing mixed up."""

from __future__ import annotations

import pytest

from agent.translator.c import CTranslator
from agent.translator.c.frontend import RESERVED
from sandbox import client
from sandbox.cancellation import Cancellation
from sandbox.tasks.base import Inputs
from sandbox.tasks.load import load_task

#: Slots: two sizes, a factor, two inputs, two outputs; a map, a nest, a histogram, a reduction.
PROGRAM = """
float work(int {0}, int {1}, float {2}, const float *{3}, const int *{4}, float *{5}, int *{6})
{{
    float total = 0;
    for (int i = 0; i < {0}; i++)
        for (int j = 0; j < {1}; j++)
            {5}[i * {1} + j] = {2} * {3}[i * {1} + j] + {1};
    for (int i = 0; i < {1}; i++)
        {6}[i] = 0;
    for (int i = 0; i < {0}; i++)
        {6}[{4}[i]] += 1;
    for (int i = 0; i < {0} * {1}; i++)
        total += {5}[i];
    return total;
}}
"""
NAMES = [
    "grid",
    "block",
    "blocks",
    "points",
    "point",
    "rest",
    "items",
    "warp",
    "half",
    "scalars",
    "min",
    "max",
]


def test_these_are_the_names_at_stake() -> None:
    assert set(NAMES) <= set(RESERVED)


@pytest.mark.usefixtures("jail")
@pytest.mark.parametrize("turn", [0, 5])
def test_whatever_parameters_are_called(turn: int) -> None:
    names = (NAMES[turn:] + NAMES[:turn])[:7]
    inputs = Inputs(sizes={names[0]: 60, names[1]: 40}, scalars={names[2]: 1.5})
    cancel = Cancellation()
    task = load_task(PROGRAM.format(*names), filename="work.c", entry=None, inputs=inputs, cancel=cancel)
    draft = CTranslator(task.spec).first()
    found = client.evaluate(task, draft.source, backend="emulator", target="sm_90", cancel=cancel)
    assert found.verdict == "passed", found.message
