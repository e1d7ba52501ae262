"""The tools protocol against a scripted server: what tools do, what they refuse, and how turns end."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from chat_server import Play, calls, endless, says, status
from given_environment import Given
from playing import KERNEL, Played, compiled, measured, play, refused_by_nvcc, variant

from agent.edits import apply_edits
from agent.events import Answered, Edited, Log, ToolUsed, TurnStarted
from agent.limits import Limits
from agent.llm.scratch import MAX_BYTES, MAX_FILES, Refused, Scratch
from agent.llm.toolbox import TOOLS, notes
from sandbox.cancellation import Cancellation


def write(source: str = KERNEL) -> tuple[str, dict[str, Any]]:
    return "write_file", {"content": source}


def verify(plan: str = "a thread per element", learned: str = "") -> tuple[str, dict[str, Any]]:
    return "verify", {"plan": plan, "learned": learned}


FINISH = ("finish", {"reason": "memory binds"})


def tools(played: Played) -> list[tuple[str, bool, str]]:
    return [(e.tool, e.ok, e.observation) for e in played.events if isinstance(e, ToolUsed)]


def use(
    *wanted: tuple[str, dict[str, Any] | str], environment: Given | None = None
) -> list[tuple[str, bool, str]]:
    """What tools say: a kernel is judged first, then these are called, then the run is finished."""
    plays = [calls(write(), verify()), *[calls(each) for each in wanted], calls(FINISH)]
    played = play(
        "tools", plays, environment or Given(measured(50.0), measured(60.0)), limits=Limits(turns=3)
    )
    return tools(played)[2:-1]


def use_text(text: str) -> list[tuple[str, bool, str]]:
    """What tools say to an answer that is text alone."""
    played = play(
        "tools",
        [calls(write(), verify()), says(text), calls(FINISH)],
        Given(measured(50.0)),
        limits=Limits(turns=2),
    )
    return tools(played)[2:-1]


def test_a_kernel_is_written_compiled_judged_improved_and_finished() -> None:
    environment = Given(measured(50.0), measured(60.0))
    environment.compilations = [(True, compiled())]
    played = play(
        "tools",
        [
            calls(("baseline", {}), ("search_skills", {"query": "coalescing rows"})),
            calls(write(), text="PLAN: the direct version"),
            calls(("compile", {})),
            calls(verify()),
            calls(
                ("profile", {}),
                ("open_skill", {"name": "coalescing"}),
                ("note", {"text": "x is read and written"}),
            ),
            calls(("edit_file", {"old": "255) / 256, 256", "new": "127) / 128, 128"})),
            calls(verify("smaller blocks", "line 5 wastes sectors")),
            calls(("compare", {"first": 1, "second": 2}), FINISH),
        ],
        environment,
        limits=Limits(turns=8),
    )
    assert (played.ended.reason, played.ended.best_turn) == ("finished", 2)
    assert "memory binds" in played.ended.message
    assert environment.judged == [KERNEL, KERNEL.replace("255) / 256, 256", "127) / 128, 128")]
    said = {tool: observation for tool, _, observation in tools(played)}
    assert "c on this machine: 12.5 µs at n = 1024" in said["baseline"]
    assert "8,192 bytes must move" in said["baseline"]
    assert said["search_skills"].startswith("coalescing: ")
    assert "12 registers" in said["compile"]
    assert "line 5 (1,024 sectors moved, 128 needed)" in said["profile"]
    assert "a warp to each row" in said["open_skill"]
    assert "-    scale<<<(n + 255) / 256, 256>>>(n, x);" in said["compare"]
    assert all(ok for _, ok, _ in tools(played))
    assert [turn.plan for turn in played.trajectory.turns[:2]] == ["a thread per element", "smaller blocks"]
    assert notes(played.trajectory) == ["x is read and written"]
    skills = [e.skills for e in played.events if isinstance(e, Answered) and e.turn == 2]
    assert skills == [[], ["coalescing"], ["coalescing"]]


def test_what_is_carried_to_the_next_turn_is_what_it_came_to() -> None:
    played = play(
        "tools",
        [
            calls(("note", {"text": "beware of n = 1"}), write(), text="Let me think about it at length."),
            calls(verify()),
            calls(FINISH),
        ],
        Given(measured(50.0), 0.0),
    )
    opening = played.prompt(2)
    assert len(played.server.requests[2]["messages"]) == 2  # a new conversation
    assert "at length" not in opening
    for kept in (
        "[NOTES]\n- beware of n = 1",
        f"[PREV_CUDA]\n{KERNEL}",
        "turn 1: a thread per element: 50.0",
    ):
        assert kept in opening


def test_tools_are_offered_with_their_arguments() -> None:
    played = play("tools", [calls(write(), verify())], Given(50.0))
    offered = {tool["function"]["name"]: tool["function"] for tool in played.server.requests[0]["tools"]}
    assert set(offered) == set(TOOLS)
    assert offered["verify"]["parameters"]["required"] == ["plan"]
    assert offered["edit_file"]["parameters"]["properties"]["old"] == {"type": "string"}
    assert all(function["description"] for function in offered.values())


def test_edits_are_seen_as_they_are_made() -> None:
    played = play(
        "tools",
        [
            calls(write()),
            calls(("edit_file", {"old": "2.0f", "new": "3.0f"})),
            calls(verify()),
            calls(("edit_file", {"old": "3.0f", "new": "4.0f"}), verify("four")),
            calls(("edit_file", {"old": "3.0f", "new": "5.0f"}), verify("five")),
        ],
        Given(measured(50.0), measured(40.0), measured(60.0)),
    )
    edits = [e for e in played.events if isinstance(e, Edited)]
    assert [(e.base_version, e.version) for e in edits] == [(n, n + 1) for n in range(len(edits))]
    # Turn 2 did not help, so turn 3 edits the source of turn 1.
    assert [source.split("*= ")[1][0] for source in played.environment.judged] == ["3", "4", "5"]
    kinds = [e.type for e in played.events]
    assert kinds.index("edited") < kinds.index("action")


def test_a_tool_that_does_not_exist_is_told_so_and_the_run_goes_on() -> None:
    [(tool, ok, said)] = use(("bash", {"command": "cat /etc/passwd"}))
    assert (tool, ok) == ("bash", False)
    assert said.startswith("there is no tool 'bash'; the tools are baseline, ")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (("write_file", '{"content": "half'), "not JSON"),
        (("write_file", "[1, 2]"), "one JSON object"),
        (("write_file", {}), "content: field required"),
        (("write_file", {"content": "x", "path": "/etc/passwd"}), "path: extra inputs are not permitted"),
        (("write_file", {"name": "../judge.py", "content": "x"}), "no file name here"),
        (("write_file", {"name": "/tmp/a.cu", "content": "x"}), "no file name here"),
        (
            ("write_file", {"name": "a.cu", "content": "x" * 80_000}),
            "The answer was cut off: write less at once",
        ),
        (
            ("read_file", {"name": "reference.c"}),
            "there is no 'reference.c' here; the folder holds: kernel.cu",
        ),
        (("read_file", {"name": "../../etc/passwd"}), "there is no"),
        (("edit_file", {"old": "x[i] *= 2.0;", "new": "y"}), "Most like it is line 5: x[i] *= 2.0f;"),
        (("edit_file", {"old": "256", "new": "128"}), "stands 2 times in kernel.cu, at lines 10, 10"),
        (("edit_file", {"old": "", "new": "y"}), "old is empty"),
        (("edit_file", {"old": "int i", "new": "int i"}), "the same"),
        (("profile", {"turn": 7}), "turn 7 was not judged; judged are: 1"),
        (("profile", {"family": "speed"}), "no family 'speed' was measured; there are coalescing, occupancy"),
        (("compare", {"first": 1, "second": 9}), "turn 9 was not judged"),
        (("open_skill", {"name": "magic"}), "there is no skill 'magic'"),
        (("verify", {"plan": "again"}), "this is the source of turn 1, unchanged"),
        (("verify", {}), "plan: field required"),
    ],
)
def test_what_does_not_apply_is_refused_with_its_reason(call: tuple[str, Any], words: str) -> None:
    [(_, ok, said)] = use(call)
    assert not ok
    assert words in said


def test_arguments_that_are_encoded_twice_are_understood() -> None:
    [(_, ok, said)] = use(("edit_file", json.dumps(json.dumps({"old": "2.0f", "new": "3.0f"}))))
    assert (ok, said) == (True, "edited")


def test_several_places_are_edited_where_that_is_wished() -> None:
    [(_, _, edited), (_, _, read)] = use(
        ("edit_file", {"old": "256", "new": "128", "everywhere": True}),
        ("read_file", {"first": 10, "last": 10}),
    )
    assert edited == "edited in 2 places"
    assert read == "  10 |     scale<<<(n + 255) / 128, 128>>>(n, x);"


def test_compile_errors_come_back_with_their_lines() -> None:
    environment = Given(measured(50.0))
    evaluation = refused_by_nvcc((5, 'identifier "y" is undefined'))
    assert evaluation.compile is not None
    environment.compilations = [(False, evaluation.compile)]
    [(_, ok, said)] = use(("compile", {}), environment=environment)
    assert ok  # the tool did what it is for
    assert 'line 5: identifier "y" is undefined\n    5 | x[i] *= 2.0f;' in said


def test_the_baseline_is_placed_on_the_roofline_once_flop_were_counted() -> None:
    [(_, ok, said)] = use(("baseline", {}))
    assert ok
    assert "turn 1 executes 1,024 FLOP, 0.125 for each of these bytes; the ridge is at 13.9" in said
    assert said.endswith("so memory binds")


def test_nothing_is_compiled_or_finished_before_there_is_something() -> None:
    played = play(
        "tools",
        [calls(("compile", {}), ("verify", {"plan": "x"}), FINISH), calls(write(), verify())],
        Given(50.0),
    )
    assert [(ok, said[:20]) for _, ok, said in tools(played)[:3]] == [
        (False, "kernel.cu is empty: "),
        (False, "kernel.cu is empty: "),
        (False, "nothing has passed y"),
    ]
    assert played.ended.best_turn == 1


def test_what_a_tool_does_is_told_while_it_does_it() -> None:
    played = play("tools", [calls(write(), ("compile", {})), calls(verify())], Given(50.0))
    kinds = [type(e) for e in played.events]
    assert kinds.index(Log) < kinds.index(ToolUsed, kinds.index(ToolUsed) + 1)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (says("Here is my plan in words only."), "called no tool"),
        (endless("hm "), "cut off before it called a tool"),
        (says("", finish="length"), "cut off before it called a tool"),
    ],
)
def test_an_answer_without_a_call_is_reminded(answer: Play, words: str) -> None:
    played = play("tools", [answer, calls(write(), verify())], Given(50.0), answer_tokens=64)
    assert words in str(played.server.requests[1]["messages"][-1]["content"])
    assert played.ended.best_turn == 1


@pytest.mark.parametrize(
    "text",
    [
        "I look first.\n<tool_call>\n{call}\n</tool_call>",
        "<tool_call>{call}",  # the end was a stop word
        "{call}",
        "```json\n{call}\n```",
    ],
)
def test_calls_that_a_server_left_in_the_text_are_made(text: str) -> None:
    call = json.dumps({"name": "read_file", "arguments": {"name": "kernel.cu"}})
    [(tool, ok, said)] = use_text(text.replace("{call}", call))
    assert (tool, ok) == ("read_file", True)
    assert "1 | __global__" in said


@pytest.mark.parametrize(
    "text", ['{"name": "bash", "arguments": {}}', "{broken", 'see {"name": "verify"} above']
)
def test_other_objects_in_the_text_are_no_calls(text: str) -> None:
    assert use_text(text) == []


def test_three_reminders_end_the_turn_and_three_such_turns_the_run() -> None:
    played = play("tools", [says("hm")] * 20, Given(), limits=Limits(turns=9))
    assert len(played.server.requests) == 9
    assert [t.evaluation.verdict for t in played.trajectory.turns if t.evaluation] == ["compile_error"] * 3
    assert (played.ended.reason, played.ended.best_turn) == ("finished", None)


def test_a_refusal_ends_the_turn_at_once() -> None:
    played = play(
        "tools", [says("", refusal="No."), calls(write(), verify())], Given(50.0), limits=Limits(turns=2)
    )
    first = played.trajectory.turns[0].evaluation
    assert first is not None
    assert first.message == "the model refused: No."
    assert played.ended.best_turn == 2


def test_a_model_that_only_looks_around_is_stopped() -> None:
    played = play("tools", [calls(("read_file", {"name": "x.cu"}))] * 99, Given(), limits=Limits(turns=1))
    assert len(played.server.requests) == 24
    first = played.trajectory.turns[0].evaluation
    assert first is not None
    assert "24 answers, and no candidate" in first.message


def test_a_long_turn_stays_within_the_context() -> None:
    looking = [
        calls(("read_file", {}), ("open_skill", {"name": "tiling"}), text="Let me look once more. " * 20)
    ] * 18
    played = play(
        "tools",
        [calls(write()), *looking, calls(verify())],
        Given(50.0),
        context_tokens=8192,
        answer_tokens=1024,
    )
    assert played.ended.best_turn == 1
    for request in played.server.requests:
        text = "".join(str(m["content"]) for m in request["messages"]) + json.dumps(request["tools"])
        assert len(text) / 10 * 3 + request["max_tokens"] < 8192 * 1.1
        roles = [m["role"] for m in request["messages"]]
        assert roles[:2] == ["system", "user"]
        asked = {c["id"] for m in request["messages"] for c in m.get("tool_calls", ())}
        assert all(m["tool_call_id"] in asked for m in request["messages"] if m["role"] == "tool")
    assert "(left out to save room; use the tool again)" in played.prompt(17)


def test_the_scratch_folder_is_small() -> None:
    scratch = Scratch()
    with pytest.raises(Refused, match="longer than"):
        scratch.write("a.cu", "x" * (MAX_BYTES + 1))
    for number in range(MAX_FILES):
        scratch.write(f"f{number}.cu", "x")
    with pytest.raises(Refused, match="there are 16 files already"):
        scratch.write("one_more.cu", "x")


def test_limits_end_a_turn_in_the_middle() -> None:
    plays = [calls(write(), verify()), *[calls(("read_file", {}))] * 30]
    played = play("tools", plays, Given(50.0, 0.0), limits=Limits(turns=2, tokens=2500))
    assert (played.ended.reason, played.ended.best_turn) == ("token_limit", 1)
    played = play("tools", [calls(write(), verify()), status(400, "too long")], Given(50.0, 0.0))
    assert (played.ended.reason, played.ended.best_turn) == ("model_unavailable", 1)
    assert "HTTP 400: too long" in played.ended.message


def test_cancelling_in_the_middle_of_a_turn() -> None:
    cancel = Cancellation()
    threading.Timer(0.8, cancel.set).start()
    played = play(
        "tools", [calls(write()), endless("x", pause=0.01)], Given(), limits=Limits(turns=2), cancel=cancel
    )
    assert (played.ended.reason, played.ended.best_turn) == ("cancelled", None)
    assert [e.turn for e in played.events if isinstance(e, TurnStarted)] == [1]


def test_a_given_candidate_is_turn_one_and_lies_in_the_folder() -> None:
    played = play(
        "tools",
        [calls(("edit_file", {"old": "2.0f", "new": "3.0f"}), verify())],
        Given(40.0, 50.0),
        start_from=variant(2),
    )
    assert played.environment.judged == [variant(2), variant(2).replace("2.0f", "3.0f")]


def test_a_run_that_was_broken_off_goes_on_with_its_notes_and_its_source() -> None:
    first = [calls(("note", {"text": "mind n = 1"}), write(), verify())]
    half = [calls(("edit_file", {"old": "2.0f", "new": "9.0f"})), status(401, "gone")]
    broken = play("tools", first + half, Given(measured(50.0)), limits=Limits(turns=2))
    assert broken.ended.reason == "model_unavailable"
    rest = [calls(("edit_file", {"old": "2.0f", "new": "3.0f"}), verify("three"))]
    resumed = play("tools", rest, Given(measured(60.0)), limits=Limits(turns=2), earlier=broken.events)
    assert "mind n = 1" in resumed.prompt(0)
    assert resumed.environment.judged == [KERNEL.replace("2.0f", "3.0f")]
    text = ""
    for event in resumed.events:
        if isinstance(event, Edited):
            text = apply_edits(text, event.edits)
    assert text == resumed.environment.judged[0]
