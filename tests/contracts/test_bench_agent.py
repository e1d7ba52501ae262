"""`bench agent` against a scripted server: what it counts, that it goes on, and when it stops."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, Handler, Play, calls, endless, says, serving, status

from sandbox.errors import TaskProblem
from webapp.cli.bench_agent import Result, TurnResult, read_results
from webapp.cli.bench_agent_table import summary, table
from webapp.cli.bench_agent_tasks import default_tasks
from webapp.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
KERNEL = (ROOT / "tests/fixtures/kernels/right/saxpy_plain.cu").read_text()
BROKEN = KERNEL.replace("blockIdx.x", "blockIdx.q")


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    folder = tmp_path / "tasks"
    folder.mkdir()
    for name in ("saxpy", "dot"):
        (folder / f"{name}.c").write_text((ROOT / f"examples/c/{name}.c").read_text())
    return folder


def answer(handler: Handler, body: dict[str, Any]) -> None:
    """Right in turn 2 for saxpy; dot is never right. With tools, verify at once."""
    said = str(body["messages"])
    kernel = BROKEN if "PREV_CUDA]" not in said or "dot" in said.split("[SEQ_CODE]")[1][:40] else KERNEL
    play: Play = says(f"PLAN: so\n```cuda\n{kernel}```")
    if "tools" in body:
        play = calls(("write_file", {"content": kernel}), ("verify", {"plan": "so"}))
    play(handler, body)


def bench(server: ChatServer, *arguments: object) -> int:
    model = ["--base-url", server.base_url, "--model", "scripted", "--allow-loopback"]
    return main(["bench", "agent", *map(str, arguments), *model])


@pytest.mark.usefixtures("jail")
def test_one_table_for_the_built_in_policy_and_both_protocols(
    tasks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results.jsonl"
    common = ("--tasks", tasks, "--turns", 2, "--results", results, "--jobs", 2, "--price", "1,2")
    with serving([answer] * 40) as server:
        assert bench(server, *common, "--agents", "builtin,rewrite") == 0
        first = capsys.readouterr()
        assert "4 of 4: " in first.err
        asked = len(server.requests)
        assert bench(server, *common, "--json") == 0  # goes on: only tools are missing
        second = capsys.readouterr()
        assert "4 of 6 runs are in the results already" in second.err
        assert len(server.requests) > asked
    said = json.loads(second.out)
    agents = {agent["protocol"]: agent for agent in said["agents"]}
    by_turn = {name: [share["passed"] for share in agent["passed_by_turn"]] for name, agent in agents.items()}
    assert by_turn == {"builtin": [2, 2], "rewrite": [0, 1], "tools": [0, 1]}
    assert agents["rewrite"]["passed_by_turn"][1]["low"] == pytest.approx(0.0945, abs=1e-3)
    assert agents["rewrite"]["prompt_tokens"] == 400
    assert agents["rewrite"]["cost"] == pytest.approx((400 + 2 * 80) / 1e6)
    assert agents["builtin"]["score"] > 50
    assert [pair["gained"] for pair in said["comparisons"] if "rewrite, turn 2 ag" in pair["what"]] == [1]
    assert len(results.read_text().splitlines()) == 6
    assert "| rewrite, scripted | 2 |" in first.out
    assert "McNemar p = 1" in first.out


@pytest.mark.usefixtures("jail")
def test_time_that_is_up_stops_it_and_the_same_command_goes_on(
    tasks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results.jsonl"
    common = (
        "--tasks",
        tasks,
        "--only",
        "tasks/saxpy",
        "--turns",
        2,
        "--results",
        results,
        "--agents",
        "rewrite",
    )
    with serving([endless(pause=0.01)]) as server:
        assert bench(server, *common, "--limit-seconds", 2) == 1
        assert "the time is up" in capsys.readouterr().err
    assert not results.exists()
    with serving([status(401, "expired")]) as server:
        assert bench(server, *common) == 1  # a model that cannot be asked is no result
        assert "HTTP 401" in capsys.readouterr().err
    results.write_text('{"task": "cut o')  # a machine that went down in the middle of a line
    with serving([answer] * 4) as server:
        assert bench(server, *common) == 0
    assert [result.reason for result in read_results(results)] == ["turn_limit"]


def result(task: str, *verdicts: str | None, protocol: str = "rewrite", **more: Any) -> Result:
    turns = [TurnResult(verdict=v, score=50.0 if v == "passed" else None) for v in verdicts]
    usual: dict[str, Any] = {"decision": "PARALLELIZE", "reason": "turn_limit", "message": "", "seconds": 1.0}
    return Result(task=task, protocol=protocol, model="m", turn_limit=4, turns=turns, **{**usual, **more})


def test_what_counts_as_passed() -> None:
    wrong = "wrong_result"
    assert [result("t", wrong, "passed", wrong).passed_by(n) for n in (1, 2, 3, 4)] == [
        False,
        True,
        True,
        True,
    ]
    kept = {"reason": "kept"}
    assert result("t", None, decision="KEEP", **kept).passed_by(1)
    assert not result("t", wrong, None, decision="KEEP", **kept).passed_by(1)
    assert result("t", wrong, None, decision="KEEP", **kept).passed_by(2)
    assert not result("t", None, **kept).passed_by(4)  # leaving what could run in parallel is no pass


def test_a_task_that_cannot_be_judged_counts_for_no_agent() -> None:
    rows = [
        result("a", "passed"),
        result("a", reason="bad_input", protocol="tools"),
        result("b", "wrong_result"),
        result("b", "passed", protocol="tools"),
    ]
    said = summary(rows, 4)
    assert said["unusable"] == ["a"]
    assert [(a["protocol"], a["tasks"], a["passed_by_turn"][3]["passed"]) for a in said["agents"]] == [
        ("rewrite", 1, 0),
        ("tools", 1, 1),
    ]
    assert any("Cannot be judged, and count for no agent: a" in line for line in table(said, 4))


def test_the_sixty_tasks_are_the_same_for_the_same_seed() -> None:
    first, again, other = default_tasks(60, 5), default_tasks(60, 5), default_tasks(60, 6)
    assert first == again
    assert len({task.name for task in first}) == 60
    assert first[:38] == other[:38]  # written by hand
    assert first[38:] != other[38:]
    assert {task.decision for task in first} == {"PARALLELIZE", "KEEP"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--agents", "magic"), "no agent 'magic'"),
        (("--agents", "rewrite", "--base-url", ""), "--base-url is missing"),
        (("--tasks", "/nowhere"), "no .c or .py file"),
        (("--turns", "0"), "1 to 200"),
        (("--only", "nothing"), "no task nothing"),
    ],
)
def test_what_is_wrong_is_said(
    arguments: tuple[str, ...],
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("KERNELWRIGHT_LLM_BASE_URL", raising=False)
    assert main(["bench", "agent", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_a_damaged_results_file_says_where(tmp_path: Path) -> None:
    damaged = tmp_path / "r.jsonl"
    damaged.write_text("{}\n" + result("a", "passed").model_dump_json() + "\n")
    with pytest.raises(TaskProblem) as raised:
        read_results(damaged)
    assert raised.value.problem.line == 1
