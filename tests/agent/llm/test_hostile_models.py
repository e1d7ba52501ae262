"""Whatever a server or a model sends: no failure of ours, no minutes lost, nothing that cannot be stored."""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from typing import Any

import pytest
from chat_server import calls, raw_events, says
from given_environment import Given
from hypothesis import given, settings
from hypothesis import strategies as st
from playing import KERNEL, compiled, play, refused_by_nvcc, rewritten

from agent.events import Event, event_adapter
from agent.limits import Limits
from agent.llm.answers import read
from agent.llm.observe import compilation_observation, observation
from agent.llm.toolbox import At, Toolbox, spoken_calls
from agent.llm.wire import Answer, Assembly, BrokenStream, Usage, storable
from agent.trajectory import Trajectory

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ("content", "reasoning", "reasoning_content", "refusal", "tool_calls")


def keyed(*names: str) -> st.SearchStrategy[Any]:
    """Objects with some of these fields, each holding anything."""
    return st.fixed_dictionaries({}, optional=dict.fromkeys(names, JSON))


CHUNKS = JSON | st.fixed_dictionaries(
    {},
    optional={
        "error": JSON,
        "usage": JSON | keyed("prompt_tokens", "completion_tokens"),
        "choices": JSON
        | st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "index": JSON,
                    "finish_reason": JSON,
                    "logprobs": JSON | keyed("content"),
                    "message": JSON | keyed(*FIELDS),
                    "delta": JSON
                    | keyed(*FIELDS)
                    | st.fixed_dictionaries(
                        {"tool_calls": st.lists(JSON | keyed("index", "id", "function"), max_size=2)}
                    ),
                },
            ),
            max_size=2,
        ),
    },
)


@settings(max_examples=150, deadline=None)
@given(st.lists(CHUNKS, max_size=3))
def test_any_chunk_is_read_or_is_a_broken_stream(chunks: list[Any]) -> None:
    assembly = Assembly()
    for chunk in chunks:
        try:
            assembly.add(chunk)
        except BrokenStream:
            return
    assembly.calls()
    assembly.reason()
    assert assembly.completion_estimate() >= 0
    assert assembly.usage is None or assembly.usage.prompt_tokens >= 0


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([*'`~\n{}()<>_ "a:', "```", "__global__", "launch", "void ", "\n"])))
def test_any_answer_is_read(pieces: list[str]) -> None:
    text = "".join(pieces)
    answer = Answer(text=text, finish_reason="stop", usage=Usage(), seconds=0.0)
    reading = read(answer, "void launch()")
    assert reading.source or reading.why or reading.done
    spoken_calls(text)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["read_file", "write_file", "edit_file", "profile", "note", "compare", "none"]), JSON)
def test_any_arguments_come_to_an_observation(tool: str, arguments: Any) -> None:
    toolbox = Toolbox(Given())
    toolbox.scratch.write("kernel.cu", KERNEL)
    said: list[str] = []

    def use() -> Generator[Event, None, None]:
        used = yield from toolbox.use(At(1, Trajectory(), "t", None, 200), tool, json.dumps(arguments))
        said.append(used.observation)

    list(use())
    assert said[0]


@pytest.mark.parametrize(
    "text",
    [
        "```a\n" * 60_000,
        "~~~\n```\n" * 40_000,
        "<think>" * 40_000,
        "<tool_call>{" * 30_000,
        "PLAN: " * 50_000,
        "-*_# " * 60_000,
        "{" * 300_000,
        "__global__ void launch(" * 12_000,
        "\n" * 300_000,
    ],
    ids=lambda text: text[:8].strip(),
)
def test_no_answer_takes_long_to_read(text: str) -> None:
    began = time.monotonic()
    read(Answer(text=text, finish_reason="stop", usage=Usage(), seconds=0.0), "void launch()")
    spoken_calls(text)
    assert time.monotonic() - began < 5.0  # on a busy machine; it is a tenth


@pytest.mark.parametrize("words", ["blockDim " * 20_000, "a<" * 80_000, " " * 200_000, "x" * 300_000])
def test_no_compile_log_takes_long_to_read(words: str) -> None:
    began = time.monotonic()
    judged = refused_by_nvcc((1, words), (2, words), log=words)
    observation(judged, KERNEL, prototype="void launch()", tokens=400)
    kernel = compiled().kernels[0].model_copy(update={"name": words})
    compilation = compiled().model_copy(update={"kernels": [kernel]})
    compilation_observation(True, compilation, KERNEL, prototype="void launch()", tokens=400)
    assert time.monotonic() - began < 5.0


def test_half_a_surrogate_and_nul_can_be_stored() -> None:
    odd = "caf\\u00e9 \\ud800 \\u0000 end"
    chunk = '{"choices": [{"delta": {"content": "PLAN: ' + odd + '"}, "finish_reason": "stop"}]}'
    played = play("rewrite", [raw_events(chunk), says(rewritten("ok"))], Given(50.0), limits=Limits(turns=2))
    for event in played.events:
        text = event.model_dump_json()
        text.encode()
        assert "\\u0000" not in text
        assert event_adapter.validate_json(text) == event
    assert storable("a\ud800\0") == "a?\ufffd"


def test_arguments_nested_without_end_are_refused() -> None:
    deep = '{"name": ' + "[" * 14_000
    played = play("tools", [calls(("read_file", deep))] * 24, Given(), limits=Limits(turns=1))
    refused = played.trajectory.turns[0].tools[0]
    assert not refused.ok
    assert "do not fit" in refused.observation
