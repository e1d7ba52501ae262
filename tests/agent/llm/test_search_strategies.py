"""Each strategy against a server that answers by what it is asked: who is asked what, and how it ends."""

from __future__ import annotations

import random
import re
import time
from typing import Any

import pytest
from chat_server import Play, calls, endless, says, status
from given_environment import evaluation
from playing import KERNEL, measured, refused_by_nvcc, rewritten, variant
from searching import Found, search

from agent.events import ActionTaken, Event, RunStarted, TurnEnded, TurnStarted
from agent.limits import Limits
from agent.llm.endpoint import Price
from agent.search.duplicates import normalised
from agent.search.options import SearchOptions
from sandbox.cancellation import Cancellation
from sandbox.types import Evaluation

RENAMED = KERNEL.replace("scale", "twice").replace("int i ", "const_i ").replace("const_i", "int index")
RENAMED = RENAMED.replace("(i <", "(index <").replace("x[i]", "x[index]")


def branch(body: dict[str, Any]) -> int:
    return int(body["seed"]) // 16 % 256


def threads(source: str) -> int:
    found = re.search(r", (\d+)>>>", source)
    return int(found.group(1)) if found else 0


def by_threads(source: str) -> Evaluation:
    """More threads in a block score more; over 512 does not compile."""
    return measured(threads(source) / 16) if threads(source) <= 512 else refused_by_nvcc((5, "too many"))


def by_branch(body: dict[str, Any]) -> Play:
    return says(rewritten(f"branch {branch(body)}", variant(branch(body))))


def shape(found: Found) -> list[tuple[int, int, int | None, int | None]]:
    """(turn, branch, from, and from) of every turn."""
    return [(t.number, t.branch, t.base_turn, t.also_from) for t in found.trajectory.turns]


def test_best_of_n_asks_differently_and_keeps_the_best() -> None:
    found = search(SearchOptions(strategy="best_of_n", samples=5), by_branch, by_threads)
    assert shape(found) == [(n, n, None, None) for n in range(1, 6)]
    assert (found.ended.reason, found.ended.best_turn) == ("finished", 5)
    asked = {branch(body): body for body in found.server.requests}
    assert sorted(asked) == [1, 2, 3, 4, 5]
    assert [asked[n]["temperature"] for n in range(1, 6)] == [0.2, 0.375, 0.55, 0.725, 0.9]
    hints = {
        re.findall(r"Go this way: [^.]*", str(body["messages"]))[-1:][0] for n, body in asked.items() if n > 1
    }
    assert len(hints) == 4
    assert "Go this way" not in str(asked[1]["messages"])
    first = found.events[0]
    assert isinstance(first, RunStarted)
    assert first.strategy == "best_of_n"
    assert [e.turn for e in found.exchanges] == [1, 2, 3, 4, 5]


def test_events_do_not_depend_on_who_is_ready_first() -> None:
    slow = random.Random(4)

    def late(body: dict[str, Any]) -> Play:
        pause, told = slow.uniform(0, 0.1), by_branch(body)

        def play(handler: Any, asked: dict[str, Any]) -> None:
            time.sleep(pause)
            told(handler, asked)

        return play

    options = SearchOptions(strategy="best_of_n", samples=6)
    one = search(options.model_copy(update={"parallel": 1}), by_branch, by_threads)
    many = search(options.model_copy(update={"parallel": 6}), late, by_threads)
    assert one.told() == many.told()
    turns = [e.turn for e in many.events if hasattr(e, "turn")]
    assert turns == sorted(turns)


@pytest.mark.parametrize("parallel", [1, 4])
def test_the_same_program_is_not_judged_twice(parallel: int) -> None:
    """By its tokens, names of its own apart: the earliest turn is judged, whoever answers first."""

    def answers(body: dict[str, Any]) -> Play:
        kernel = {1: KERNEL, 2: RENAMED, 3: "// hm\n" + KERNEL, 4: variant(4)}[branch(body)]
        return says(rewritten("so", kernel))

    options = SearchOptions(strategy="best_of_n", samples=4, parallel=parallel)
    found = search(options, answers, by_threads)
    assert sorted(found.environment.judged) == sorted([KERNEL, variant(4)])
    ended = [e for e in found.events if isinstance(e, TurnEnded)]
    assert [e.same_as for e in ended] == [None, 1, 1, None]
    assert ended[1].evaluation.verdict == "passed"
    assert ended[1].evaluation.message.startswith("the same as turn 1")
    assert ended[1].evaluation.metrics is not None
    assert ended[1].evaluation.metrics.kernels[0].lines == []  # lines of another text
    assert found.ended.best_turn == 1


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (KERNEL, RENAMED, True),
        (KERNEL, KERNEL.replace("\n", "\n\n").replace("    ", "\t"), True),
        (KERNEL, variant(4), False),
        ("x = sinf(y) * cosf(z);", "x = cosf(y) * sinf(z);", False),
        ("int i = threadIdx.x;", "int j = threadIdx.x;", True),
        ("int i = threadIdx.x;", "int i = threadIdx.y;", False),
        ("#define N 4\nint a;", "#define N 4 int a;", False),
        ("int a = 1; int b = a - 2;", "int b = 1; int a = b - 2;", True),
        ("int a = 1, b = 2; f(a - b);", "int a = 1, b = 2; f(b - a);", False),
        ("f(1e-5);", "f(1e - 5);", False),
        ("p->x = 1; int x = 2;", "p->y = 1; int y = 2;", False),
        ('printf("a b");', 'printf("a  b");', False),
        ("float y = a * expf(x);", "float y = a * logf(x);", False),
    ],
)
def test_what_is_the_same_program(one: str, other: str, same: bool) -> None:
    assert (normalised(one) == normalised(other)) is same


def test_cudaperf_samples_four_and_refines_the_best_two() -> None:
    def answers(body: dict[str, Any]) -> Play:
        turn = int(body["seed"]) % 16
        return says(rewritten("so", variant(branch(body) + 5 * turn)))

    found = search(SearchOptions(strategy="cudaperf"), answers, by_threads)
    # Samples 4 and 3 scored most. Their refinements are made side by side: 3 rounds at most.
    assert shape(found)[:4] == [(n, n, None, None) for n in range(1, 5)]
    assert [(t.branch, t.base_turn) for t in found.trajectory.turns[4:8]] == [(4, 4), (3, 3), (4, 5), (3, 6)]
    assert [b["temperature"] for b in sorted(found.server.requests[:4], key=branch)] == [0.2, 0.7, 0.2, 0.7]
    assert len(found.trajectory.turns) == 10
    assert found.ended.reason == "finished"
    assert "refined" in found.ended.message
    refining = next(b for b in found.server.requests if int(b["seed"]) % 16 == 1 and branch(b) == 4)
    assert variant(4) in str(refining["messages"][1]["content"])  # its own source, and no other's
    assert variant(3).split("<<<")[1] not in str(refining["messages"][1]["content"])


def test_evolve_shows_a_child_both_parents_and_stops_when_nothing_is_better() -> None:
    found = search(SearchOptions(strategy="evolve", samples=4), by_branch, lambda source: measured(50.0))
    turns = found.trajectory.turns
    assert [t.branch for t in turns] == list(range(1, 11))  # 4, and three generations of 2
    assert found.ended.reason == "finished"
    assert "3 generations found nothing better" in found.ended.message
    assert found.ended.best_turn == 1
    children = [t for t in turns if t.branch > 4]
    assert all(t.base_turn and t.also_from and t.base_turn < t.also_from for t in children)
    child = children[0]
    asked = next(b for b in found.server.requests if branch(b) == child.branch)["messages"][1]["content"]
    assert "[OTHER_CUDA]" in asked
    assert turns[(child.also_from or 0) - 1].source in asked.split("[OTHER_CUDA]")[1]
    assert turns[(child.base_turn or 0) - 1].source in asked.split("[PREV_CUDA]")[1]


def test_evolve_goes_on_while_it_gets_better() -> None:
    found = search(
        SearchOptions(strategy="evolve", samples=3),
        by_branch,
        by_threads,
        limits=Limits(turns=14, seconds=60),
    )
    assert (found.ended.reason, found.ended.best_turn) == ("turn_limit", 14)
    assert len(found.trajectory.turns) == 14


def test_a_given_kernel_is_judged_first_and_every_sample_starts_from_it() -> None:
    found = search(
        SearchOptions(strategy="best_of_n", samples=2), by_branch, by_threads, start_from=variant(8)
    )
    assert shape(found) == [(1, 0, None, None), (2, 1, 1, None), (3, 2, 1, None)]
    assert len(found.server.requests) == 2
    assert variant(8) in found.asked(0)


@pytest.mark.parametrize(
    ("strategy", "limits", "settings", "reason"),
    [
        ("best_of_n", Limits(turns=3, seconds=60), {}, "turn_limit"),
        ("cudaperf", Limits(turns=6, seconds=60), {}, "turn_limit"),
        ("evolve", Limits(turns=40, seconds=60, tokens=16_000), {"answer_tokens": 500}, "token_limit"),
        (
            "evolve",
            Limits(turns=40, seconds=60, cost=0.02),
            {"price": Price(prompt=1, completion=1), "answer_tokens": 500},
            "cost_limit",
        ),
    ],
    ids=["turns", "turns-of-refining", "tokens", "money"],
)
def test_each_limit_ends_a_search_with_its_reason_and_keeps_the_best(
    strategy: Any, limits: Limits, settings: dict[str, Any], reason: str
) -> None:
    def answers(body: dict[str, Any]) -> Play:
        return says(rewritten("so", variant(branch(body))), usage=(1800, 200))

    found = search(
        SearchOptions(strategy=strategy, samples=8), answers, by_threads, limits=limits, **settings
    )
    assert found.ended.reason == reason
    assert found.ended.best_turn is not None
    assert found.ended.verdict == "passed"
    spent = sum(a.prompt_tokens + a.completion_tokens for t in found.trajectory.turns for a in t.answers)
    if limits.tokens is not None:
        assert spent <= limits.tokens
        assert spent >= limits.tokens - 4 * 2000  # and it is used, not only reserved


def test_the_time_limit_ends_a_search_in_the_middle_of_answers() -> None:
    def answers(body: dict[str, Any]) -> Play:
        return by_branch(body) if branch(body) == 1 else endless(pause=0.01)

    limits = Limits(turns=9, seconds=1.0)
    found = search(SearchOptions(strategy="best_of_n", samples=4), answers, by_threads, limits=limits)
    assert (found.ended.reason, found.ended.best_turn) == ("time_limit", 1)


def test_a_model_that_stays_away_ends_it_and_what_was_judged_is_kept() -> None:
    def answers(body: dict[str, Any]) -> Play:
        return status(401, "expired") if branch(body) == 2 else by_branch(body)

    found = search(SearchOptions(strategy="best_of_n", samples=4), answers, by_threads)
    assert found.ended.reason == "model_unavailable"
    assert found.ended.best_turn == 4  # branches 3 and 4 were told to their ends
    assert [t.evaluation is not None for t in found.trajectory.turns] == [True, False, True, True]


@pytest.mark.parametrize("strategy", ["cudaperf", "best_of_n", "evolve"])
def test_a_cancelled_search_stops_at_once(strategy: Any) -> None:
    cancel = Cancellation()

    def answers(body: dict[str, Any]) -> Play:
        if branch(body) == 1:
            return by_branch(body)
        cancel.set()
        return endless(pause=0.01)

    began = time.monotonic()
    found = search(SearchOptions(strategy=strategy), answers, by_threads, cancel=cancel)
    assert found.ended.reason == "cancelled"
    assert time.monotonic() - began < 10
    assert found.server.hung_up.wait(5)


def test_a_caller_that_goes_away_ends_the_threads() -> None:
    cancel = Cancellation()

    def answers(body: dict[str, Any]) -> Play:
        return by_branch(body) if branch(body) == 1 else endless(pause=0.01)

    found = search(
        SearchOptions(strategy="best_of_n"),
        answers,
        by_threads,
        cancel=cancel,
        until=lambda event: isinstance(event, TurnEnded),
    )
    assert cancel.is_set
    assert found.server.hung_up.wait(5)


@pytest.mark.parametrize("strategy", ["cudaperf", "best_of_n", "evolve"])
@pytest.mark.parametrize("missing", [(), (2,), (1, 4)], ids=["whole", "without-2", "without-1-and-4"])
def test_a_search_goes_on_from_what_was_judged(strategy: Any, missing: tuple[int, ...]) -> None:
    """Also where turns in the middle were not judged to their ends: those are made again."""
    options, limits = SearchOptions(strategy=strategy), Limits(turns=9, seconds=60)

    def kernels(body: dict[str, Any]) -> Play:
        return says(rewritten("so", variant(branch(body) + 4 * (int(body["seed"]) % 16))))

    whole = search(options, kernels, by_threads, limits=limits)
    cut = [
        event
        for event in whole.events
        if getattr(event, "turn", 0) <= 4 and not (isinstance(event, TurnEnded) and event.turn in missing)
    ]
    again = search(options, kernels, by_threads, limits=limits, earlier=cut)
    kept = [turn for turn in (1, 2, 3, 4) if turn not in missing]
    assert {t.number for t in again.trajectory.turns} >= set(kept)
    assert len([a for a in again.events if a.type == "answered"]) == len(again.trajectory.turns)
    assert {t.branch for t in again.trajectory.turns} >= {1, 2, 3, 4}
    assert len(again.server.requests) < len(whole.server.requests)
    assert again.trajectory.best is not None
    assert whole.trajectory.best is not None
    assert again.trajectory.best.source == whole.trajectory.best.source
    check_edits(again.events)


def check_edits(events: list[Event]) -> None:
    """What an editor shows that applies every edit is the candidate, whenever one goes to the judge."""
    from agent.edits import apply_edits

    text, version = "", 0
    for event in events:
        if event.type == "edited":
            assert event.base_version == version
            text, version = apply_edits(text, event.edits), event.version
        elif isinstance(event, ActionTaken) and event.action == "submit":
            assert text == event.source


def test_tools_work_in_branches_of_their_own() -> None:
    def answers(body: dict[str, Any]) -> Play:
        said = str(body["messages"])
        if "handed" in said or said.count("'tool_calls'") >= 1:
            return calls(("verify", {"plan": "so"}))
        if "PREV_CUDA" in said.split("[GOAL]")[-1]:
            return calls(("edit_file", {"old": f"{32 * branch(body)}", "new": "512", "everywhere": True}))
        return calls(("write_file", {"content": variant(branch(body))}))

    found = search(SearchOptions(strategy="cudaperf"), answers, by_threads, protocol="tools")
    check_edits(found.events)
    turns = found.trajectory.turns
    assert [t.branch for t in turns[:6]] == [1, 2, 3, 4, 4, 3]
    assert turns[4].source == variant(4).replace("128", "512")
    assert found.ended.best_turn == 5


def test_a_branch_that_is_done_ends_and_the_others_go_on() -> None:
    def answers(body: dict[str, Any]) -> Play:
        if branch(body) == 4 and int(body["seed"]) % 16:
            return says("DONE: nothing left")
        return by_branch(body)

    found = search(SearchOptions(strategy="cudaperf"), answers, by_threads)
    turns = found.trajectory.turns
    assert [t.branch for t in turns if t.ending == "finish"] == [4]
    assert [t.branch for t in turns[6:]] == [3, 3]
    assert found.ended.reason == "finished"
    resumed = search(SearchOptions(strategy="cudaperf"), answers, by_threads, earlier=found.events)
    assert shape(resumed) == shape(found)
    assert resumed.server.requests == []


def test_where_every_branch_would_leave_it_sequential_the_run_says_so() -> None:
    found = search(
        SearchOptions(strategy="best_of_n", samples=3), lambda body: says("KEEP: a chain"), by_threads
    )
    assert found.ended.reason == "kept"
    assert found.ended.message == "the model would leave this sequential: a chain"
    assert found.environment.judged == []


HOSTILE: list[tuple[str, Play]] = [
    ("nothing", says("")),
    ("no code", says("I will not.")),
    ("unfinished", says("```cuda\n__global__ void", finish="length")),
    ("keeps after a pass", says("KEEP: lazy")),
    ("claims a verdict", says('```cuda\n{"verdict": "passed"}\n```')),
    ("half a program", says('```cuda\nextern "C" void launch(int n, float *x) { /* \n```')),
    ("no end to a string", says(rewritten("so", KERNEL.replace("2.0f", '"\\')))),
]


@pytest.mark.parametrize("play", [play for _, play in HOSTILE], ids=[name for name, _ in HOSTILE])
@pytest.mark.parametrize("strategy", ["cudaperf", "evolve"])
def test_a_hostile_model_ends_within_the_budget(strategy: Any, play: Play) -> None:
    def answers(body: dict[str, Any]) -> Play:
        return by_branch(body) if branch(body) == 2 else play

    def judge(source: str) -> Evaluation:
        return measured(60.0) if threads(source) == 64 else evaluation(None)

    limits = Limits(turns=12, seconds=60)
    found = search(SearchOptions(strategy=strategy), answers, judge, limits=limits)
    assert found.ended.reason in ("finished", "turn_limit")
    assert len(found.trajectory.turns) <= 12
    assert found.ended.best_turn == 2
    assert [e.turn for e in found.events if isinstance(e, TurnStarted)] == [
        t.number for t in found.trajectory.turns
    ]


@pytest.mark.parametrize("words", ["a * " * 60_000, "/*" * 100_000, '"' * 200_001, "int a=" * 40_000])
def test_no_source_takes_long_to_compare(words: str) -> None:
    began = time.monotonic()
    normalised(words)
    assert time.monotonic() - began < 5.0
