"""A run as JSON lines: all of it comes back, and what is damaged says where."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from chat_server import calls, says
from given_environment import Given
from playing import KERNEL, Played, measured, play, rewritten, variant
from pydantic import SecretStr

from agent.events import TextDelta
from agent.llm.record import BadRecord, Head, Recorder, read


def two_turns() -> Played:
    plays = [says(rewritten("first")), says(rewritten("second", variant(4), "sectors are wasted"))]
    return play("rewrite", plays, Given(measured(50.0), measured(60.0)), key=SecretStr("sk-hidden"), seed=7)


def with_tools() -> Played:
    plays = [calls(("write_file", {"content": KERNEL})), calls(("verify", {"plan": "first"}))]
    return play("tools", plays, Given(measured(50.0)))


def written(played: Played) -> str:
    """The record of a run, its exchanges where they happened."""
    out = StringIO()
    recorder = Recorder(out)
    endpoint = played.server.endpoint(key=SecretStr("sk-hidden"))
    model = endpoint.model_dump(mode="json", exclude={"key"})
    recorder.head(Head(kernelwright="0", request={"source": "void f() {}"}, model=model))
    waiting = list(played.exchanges)
    for event in played.events:
        if event.type == "answered":
            recorder.exchange(waiting.pop(0))
        recorder.event(event)
    return out.getvalue()


@pytest.mark.parametrize("run", [two_turns, with_tools])
def test_what_is_written_is_read(run: object) -> None:
    assert callable(run)
    played: Played = run()
    recording = read(written(played).splitlines(keepends=True))
    assert recording.events == [e for e in played.events if not isinstance(e, TextDelta)]
    assert recording.exchanges == played.exchanges
    assert recording.trajectory.best is not None
    assert recording.head is not None


def test_an_exchange_holds_all_that_a_sample_needs() -> None:
    played = two_turns()
    first, second = played.exchanges
    assert [m.role for m in second.messages] == ["system", "user"]
    assert second.messages[1].content == played.server.requests[1]["messages"][1]["content"]
    assert second.answer.text == rewritten("second", variant(4), "sectors are wasted")
    assert (second.turn, second.model, second.sampling) == (
        2,
        "scripted",
        {"temperature": 0.2, "top_p": 0.9, "seed": 7},
    )
    assert first.answer.usage.completion_tokens == 20
    with_call = with_tools().exchanges[1]
    assert with_call.messages[2].tool_calls[0].name == "write_file"
    assert {tool["function"]["name"] for tool in with_call.tools} >= {"verify", "compile"}


def test_messages_and_tools_stand_once() -> None:
    lines = [json.loads(line) for line in written(with_tools()).splitlines()]
    kinds = [line["type"] for line in lines]
    assert kinds[0] == "trajectory"
    assert kinds.count("tools") == 1
    assert kinds.count("exchange") == 2
    assert kinds.count("message") == 4  # system, task, the call, what it said
    assert "text_delta" not in kinds


def test_the_key_is_in_no_record() -> None:
    assert "hidden" not in written(two_turns())


def test_events_alone_are_a_recording() -> None:
    played = two_turns()
    lines = [event.model_dump_json() + "\n" for event in played.events]
    recording = read(lines)
    assert recording.trajectory.turns[1].source == variant(4)
    assert (recording.head, recording.exchanges) == (None, [])


def test_a_last_line_that_was_cut_off_is_left_out() -> None:
    text = written(two_turns())
    recording = read(text[:-40].splitlines(keepends=True))
    assert recording.trajectory.ended is None
    assert len(recording.trajectory.turns) == 2


@pytest.mark.parametrize(
    ("damaged", "words"),
    [
        ("", "no events"),
        ("{}\n", "line 1 is no line"),
        ("[1]\n", "line 1"),
        ("not json\n", "line 1"),
        ('{"type": "reflected", "turn": 1}\n', "line 1"),
        ('{"type": "something_new"}\n', "line 1"),
        ('{"type": "exchange", "messages": [3], "tools": false}\n', "line 1"),
    ],
)
def test_what_is_damaged_says_where(damaged: str, words: str) -> None:
    with pytest.raises(BadRecord, match=words):
        read(damaged.splitlines(keepends=True))
