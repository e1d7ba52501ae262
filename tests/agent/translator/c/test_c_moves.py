"""Improvements, argued from measurements: they pass the judge, and the score rises."""

from __future__ import annotations

import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from agent.protocols import Draft
from agent.translator.c import CTranslator
from sandbox.cancellation import Cancellation
from sandbox.client import Judge
from sandbox.tasks.load import load_task
from sandbox.types import Evaluation

EXAMPLES = Path(__file__).parents[4] / "examples" / "c"
#: Titles in the order in which the measurements ask for them.
STORIES = {
    "row_softmax": ["Give each row to a warp"],
    "transpose": ["Turn a tile round in shared memory", "Pad the tile by one column"],
    "matmul": ["Let threads run along `j`", "Tile through shared memory", "Keep 4 x 4 results in registers"],
    "dot": ["Reduce with warp shuffles"],
    "histogram": ["Count in shared memory first"],
}


def finished(judging: Generator[Any, None, Evaluation]) -> Evaluation:
    while True:
        try:
            next(judging)
        except StopIteration as stop:
            evaluation: Evaluation = stop.value
            return evaluation


@pytest.mark.parametrize("name", STORIES)
def test_each_step_passes_and_raises_the_score(name: str) -> None:
    path = EXAMPLES / f"{name}.c"
    cancel = Cancellation()
    task = load_task(path.read_bytes(), filename=path.name, entry=None, inputs=None, cancel=cancel)
    judge = Judge(task, backend="emulator", target="sm_90", cancel=cancel)
    translator = CTranslator(task.spec)
    draft: Draft = translator.first()
    evaluation = finished(judge.evaluate(draft.source))
    assert evaluation.verdict == "passed", evaluation.message
    assert evaluation.score is not None
    score = evaluation.score
    for title in STORIES[name]:
        moves = {move.title: move for move in translator.moves(draft, evaluation)}
        assert title in moves
        assert re.search(r"\d", moves[title].reason), "a reason names its number"
        draft = moves[title].draft
        evaluation = finished(judge.evaluate(draft.source))
        assert evaluation.verdict == "passed", evaluation.message
        assert evaluation.score is not None
        assert evaluation.score > score
        score = evaluation.score
    assert title not in {move.title for move in translator.moves(draft, evaluation)}, "a step is offered once"
