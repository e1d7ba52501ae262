"""`translate --policy llm` and `replay` as people meet them: a scripted model, the real judge."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, Play, calls, says, serving, status

from webapp.cli import language_model
from webapp.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
SAXPY = ROOT / "examples/c/saxpy.c"
KERNEL = (ROOT / "tests/fixtures/kernels/right/saxpy_plain.cu").read_text()
BROKEN = KERNEL.replace("blockIdx.x", "blockIdx.q")


def kernelwright(
    *arguments: object, server: ChatServer | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    model = ["--base-url", server.base_url, "--model", "scripted", "--allow-loopback"] if server else []
    argv = [sys.executable, "-m", "webapp.cli.main", *map(str, arguments), *model]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("KERNELWRIGHT_LLM_")}
    return subprocess.run(
        argv, capture_output=True, text=True, cwd=ROOT, timeout=300, check=False, env=clean | environment
    )


@pytest.fixture
def scripted(request: pytest.FixtureRequest) -> Iterator[ChatServer]:
    plays: list[Play] = request.param
    with serving(plays) as server:
        yield server


REWRITES = [
    says(f"PLAN: a thread per element\n```cuda\n{BROKEN}```"),
    status(503, "one moment"),
    says(f"LESSON: blockIdx has no q\nPLAN: x, not q\n```cuda\n{KERNEL}```"),
    says("DONE: every byte moves once"),
]
TOOLS = [
    calls(("baseline", {}), ("write_file", {"content": BROKEN})),
    calls(("compile", {})),
    calls(("edit_file", {"old": "blockIdx.q", "new": "blockIdx.x"}), ("compile", {})),
    calls(("verify", {"plan": "a thread per element"})),
    calls(("profile", {}), ("finish", {"reason": "every byte moves once"})),
]


@pytest.mark.usefixtures("jail")
@pytest.mark.parametrize("scripted", [REWRITES], indirect=True)
def test_a_model_rewrites_until_the_judge_agrees(scripted: ChatServer, tmp_path: Path) -> None:
    record, out = tmp_path / "run.jsonl", tmp_path / "out.cu"
    finished = kernelwright(
        *("translate", SAXPY, "--policy", "llm", "--protocol", "rewrite", "--json", "-o", out),
        *("--record", record, "--price", "1,2", "--key-env", "MY_KEY"),
        server=scripted,
        MY_KEY="sk-hidden",
    )
    assert finished.returncode == 0, finished.stderr
    document: dict[str, Any] = json.loads(finished.stdout)
    assert (document["verdict"], document["policy"], document["best_turn"]) == ("passed", "llm", 2)
    assert [turn["evaluation"]["verdict"] for turn in document["turns"][:2]] == ["compile_error", "passed"]
    assert document["usage"] == {
        "answers": 3,
        "prompt_tokens": 300,
        "completion_tokens": 60,
        "estimated": False,
        "cost": pytest.approx(0.00042),
        "seconds": pytest.approx(0, abs=60),
    }
    assert out.read_text() == KERNEL
    assert scripted.headers[0]["authorization"] == "Bearer sk-hidden"
    assert "hidden" not in record.read_text() + finished.stderr + finished.stdout
    # The model was told what nvcc said, with its line.
    told = str(scripted.requests[1]["messages"][1]["content"])
    assert 'has no member "q"' in told
    assert "blockIdx.q" in told.split("[OBSERVATION]")[1]

    shown = kernelwright("replay", record)
    assert shown.returncode == 0, shown.stderr
    assert "plan: x, not q" in shown.stdout
    assert "finished: the model has nothing left to try: every byte moves once" in shown.stdout
    whole = kernelwright("replay", record, "--turn", 2)
    assert "[PREV_CUDA]" in whole.stdout
    assert KERNEL in whole.stdout
    judged = kernelwright("replay", record, "--judge", "--json")
    assert judged.returncode == 0, judged.stderr
    assert [turn["verdict_again"] for turn in json.loads(judged.stdout)["turns"][:2]] == [
        "compile_error",
        "passed",
    ]


@pytest.mark.usefixtures("jail")
@pytest.mark.parametrize("scripted", [TOOLS], indirect=True)
def test_a_model_works_with_tools_until_the_judge_agrees(scripted: ChatServer) -> None:
    finished = kernelwright(
        "translate", SAXPY, "--policy", "llm", "--protocol", "tools", "--events", server=scripted
    )
    assert finished.returncode == 0, finished.stderr
    events = [json.loads(line) for line in finished.stdout.splitlines()]
    said = [(e["tool"], e["ok"], e["observation"]) for e in events if e["type"] == "tool"]
    assert [(tool, ok) for tool, ok, _ in said] == [
        ("baseline", True),
        ("write_file", True),
        ("compile", True),
        ("edit_file", True),
        ("compile", True),
        ("verify", True),
        ("profile", True),
        ("finish", True),
    ]
    assert re.match(r"c on this machine: [0-9.]+ µs at n = ", said[0][2])
    assert 'has no member "q"' in said[2][2]
    assert said[4][2].startswith("compiles")
    assert "warp instructions" in said[6][2]
    [judged] = [e["evaluation"] for e in events if e["type"] == "turn_ended"]
    assert judged["verdict"] == "passed"
    assert events[-1]["reason"] == "finished"


@pytest.mark.usefixtures("jail")
@pytest.mark.parametrize("scripted", [[REWRITES[0], status(401, "expired"), *REWRITES[2:]]], indirect=True)
def test_a_run_that_was_broken_off_goes_on_from_its_record(scripted: ChatServer, tmp_path: Path) -> None:
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    run = ("translate", SAXPY, "--policy", "llm", "--turns", 2)
    broken = kernelwright(*run, "--record", first, server=scripted)
    assert "HTTP 401: expired" in broken.stderr
    resumed = kernelwright(*run, "--resume", first, "--record", second, "--json", server=scripted)
    assert resumed.returncode == 0, resumed.stderr
    turns = json.loads(resumed.stdout)["turns"]
    assert [turn["evaluation"]["verdict"] for turn in turns] == ["compile_error", "passed"]
    shown = json.loads(kernelwright("replay", second, "--json").stdout)
    assert [len(turn["exchanges"]) for turn in shown["turns"]] == [1, 1]
    other = kernelwright(
        "translate", ROOT / "examples/c/dot.c", "--policy", "llm", "--resume", first, server=scripted
    )
    assert other.returncode == 2
    assert "about another task" in other.stderr


@pytest.mark.parametrize("scripted", [[]], indirect=True)
def test_doctor_knows_the_language_model(scripted: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELWRIGHT_LLM_BASE_URL", scripted.base_url)
    monkeypatch.setenv("KERNELWRIGHT_LLM_MODEL", "scripted")
    monkeypatch.delenv("KERNELWRIGHT_LLM_ALLOW", raising=False)
    assert "must be allowed" in language_model.examine()[1]
    monkeypatch.setenv("KERNELWRIGHT_LLM_ALLOW", "loopback,private")
    assert language_model.examine() == (True, f"scripted at {scripted.base_url}", "")
    monkeypatch.setenv("KERNELWRIGHT_LLM_MODEL", "other")
    assert language_model.examine()[:2] == (False, f"{scripted.base_url} serves scripted")


@pytest.mark.parametrize("scripted", [[status(401, "bad key")]], indirect=True)
@pytest.mark.usefixtures("jail")
def test_a_model_that_cannot_be_asked_is_one_clear_line(scripted: ChatServer) -> None:
    finished = kernelwright("translate", SAXPY, "--policy", "llm", server=scripted)
    assert finished.returncode == 1
    assert "model unavailable: scripted cannot be asked: HTTP 401: bad key" in finished.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--base-url is missing"),
        (("--base-url", "https://host/v1"), "--model is missing"),
        (("--base-url", "ftp://host", "--model", "m"), "must begin with http"),
        (
            ("--base-url", "https://h/v1", "--model", "m", "--key-env", "NO_SUCH_KEY"),
            "no variable NO_SUCH_KEY",
        ),
        (("--base-url", "https://h/v1", "--model", "m", "--cost", "1"), "needs the model's price"),
        (("--base-url", "https://h/v1", "--model", "m", "--price", "cheap"), "two numbers"),
        (("--base-url", "https://h/v1", "--model", "m", "--answer-tokens", "1"), "--answer-tokens"),
        (("--base-url", "https://h/v1", "--model", "m", "--turns", "201"), "1 to 200"),
        (("--base-url", "https://h/v1", "--model", "m", "--tokens", "0"), "above 0"),
    ],
)
def test_what_is_missing_or_wrong_is_said_with_what_to_do(
    arguments: tuple[str, ...],
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("BASE_URL", "MODEL", "API_KEY"):
        monkeypatch.delenv(f"KERNELWRIGHT_LLM_{name}", raising=False)
    assert main(["translate", str(SAXPY), "--policy", "llm", *arguments]) == 2
    assert words.lower() in capsys.readouterr().err.lower()


@pytest.mark.parametrize("scripted", [[says("x")]], indirect=True)
def test_this_machine_is_asked_only_with_leave(scripted: ChatServer) -> None:
    finished = kernelwright(
        *("translate", SAXPY, "--policy", "llm", "--base-url", scripted.base_url, "--model", "m")
    )
    assert "this machine itself; it must be allowed" in finished.stderr
    assert scripted.requests == []


RECORDED = sorted(
    [
        *(ROOT / "tests/fixtures/trajectories").glob("*.jsonl"),
        *(ROOT / "tests/fixtures/recordings").glob("*.jsonl"),
    ]
)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_recorded_runs_of_before_can_be_replayed(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    judged = [turn for turn in document["turns"] if not turn["ending"]]
    assert all(turn["source"] and turn["verdict"] for turn in judged)
    assert main(["replay", str(path)]) == 0
    shown = capsys.readouterr().out
    assert all(turn["reflection"].splitlines()[0] in shown for turn in judged)
    if path.parent.name == "recordings":
        assert all(turn["exchanges"] for turn in document["turns"])


def test_a_recorded_search_says_its_branches(capsys: pytest.CaptureFixture[str]) -> None:
    path = ROOT / "tests/fixtures/recordings/saxpy_searched.jsonl"
    assert main(["replay", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "turn 4: First version (branch 4)" in shown
    assert "turn 7: Make it run (branch 4, from turn 5)" in shown
    assert "the same as turn 2: not judged again" in shown
    assert "nothing more: the model has nothing left to try" in shown
    assert main(["replay", str(path), "--json"]) == 0
    turns = json.loads(capsys.readouterr().out)["turns"]
    assert [turn["branch"] for turn in turns] == [1, 2, 3, 4, 4, 1, 4, 1, 4, 1]
    assert [turn["turn"] for turn in turns if turn["same_as"]] == [3, 8]


def test_a_damaged_recording_says_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_text("what?\n")
    assert main(["replay", str(damaged)]) == 2
    assert "line 1 is no line of a trajectory" in capsys.readouterr().err
