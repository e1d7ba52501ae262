"""KEEP: the answer that a program is better left sequential, from models and from the built-in policy."""

from __future__ import annotations

from pathlib import Path

import pytest
from chat_server import calls, says
from given_environment import Given
from playing import KERNEL, play, rewritten

from agent.limits import Limits
from agent.policies.builtin import BuiltinPolicy
from agent.protocols import Keep, Submit
from agent.trajectory import Trajectory
from agent.translator import translator_for
from sandbox.cancellation import Cancellation
from sandbox.tasks.load import load_task

CHAIN = """\
void chain(int n, const float *x, float *y)
{
    float s = 0.5f;
    for (int i = 0; i < n; i++) {
        s = s * (1.0f - s) * x[i] + 0.1f;
        y[i] = s;
    }
}
"""
SAXPY = (Path(__file__).resolve().parents[3] / "examples/c/saxpy.c").read_text()


def test_a_model_may_keep_a_program_that_nothing_has_passed_for() -> None:
    kept = play("rewrite", [says("KEEP: each step needs the one before")], Given(50.0))
    assert kept.ended.reason == "kept"
    assert kept.ended.message == "the model would leave this sequential: each step needs the one before"
    assert (kept.ended.best_turn, kept.environment.judged) == (None, [])
    kept = play("tools", [calls(("keep", {"reason": "a chain"}))], Given(50.0))
    assert (kept.ended.reason, kept.trajectory.turns[0].ending) == ("kept", "keep")


def test_after_a_pass_there_is_nothing_to_keep() -> None:
    plays = [says(rewritten("first")), says("KEEP: enough")]
    played = play("rewrite", plays, Given(50.0))
    assert (played.ended.reason, played.ended.best_turn) == ("turn_limit", 1)
    played = play("rewrite", plays, Given(50.0), limits=Limits(turns=2))
    assert (played.ended.reason, played.ended.best_turn) == ("finished", 1)
    tools = [
        calls(("write_file", {"content": KERNEL}), ("verify", {"plan": "p"})),
        calls(("keep", {"reason": "enough"}), ("finish", {"reason": "enough"})),
    ]
    played = play("tools", tools, Given(50.0), limits=Limits(turns=2))
    assert [(t.tool, t.ok) for t in played.trajectory.turns[1].tools] == [("keep", False), ("finish", True)]
    assert played.ended.reason == "finished"


def test_a_source_beside_it_is_judged() -> None:
    played = play("rewrite", [says("KEEP: hm\n" + rewritten("but see"))], Given(50.0))
    assert played.ended.best_turn == 1


@pytest.mark.usefixtures("jail")
@pytest.mark.parametrize(("source", "keeps"), [(CHAIN, True), (SAXPY, False)])
def test_the_built_in_policy_keeps_what_only_one_thread_can_do(source: str, keeps: bool) -> None:
    """It shows the right kernel it has, too: one thread's, which nobody wants for its speed."""
    spec = load_task(source, filename="f.c", entry=None, inputs=None, cancel=Cancellation()).spec
    policy = BuiltinPolicy(lambda: translator_for(spec))
    trajectory = Trajectory()
    acting = policy.act(trajectory)
    with pytest.raises(StopIteration) as stop:
        next(acting)
    assert isinstance(stop.value.value, Submit)
    with pytest.raises(StopIteration) as stop:
        next(policy.act(trajectory))
    action = stop.value.value
    assert isinstance(action, Keep) is keeps
    if keeps:
        assert "line 5: `s` carries a value" in action.reason
