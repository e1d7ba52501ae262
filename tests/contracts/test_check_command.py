"""`kernelwright check`: a project's kernels, offline; what is wrong comes out as SARIF and as annotations."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from webapp.cli.findings import RULES, Finding, annotation, sarif

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "tests/fixtures/kernels"


def check(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "webapp.cli.main", "check", *map(str, arguments)]
    environment = {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        argv,
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "kernels").mkdir()
    shutil.copy(ROOT / "examples/c/saxpy.c", tmp_path / "tasks/saxpy.c")
    right = (KERNELS / "right/saxpy_plain.cu").read_text()
    wrong = (KERNELS / "wrong/saxpy_last_element_missing.cu").read_text()
    (tmp_path / "kernels/right.cu").write_text(right)
    (tmp_path / "kernels/wrong one.cu").write_text(f"// kernelwright: task=../tasks/saxpy.c\n{wrong}")
    (tmp_path / "kernels/other.cu").write_text("// of nobody's concern\n")
    (tmp_path / "kernelwright.toml").write_text(
        '[[kernel]]\ncandidate = "kernels/right.cu"\ntask = "tasks/saxpy.c"\n'
    )
    return tmp_path


@pytest.mark.usefixtures("jail")
def test_a_project_is_judged_and_what_is_wrong_is_told(project: Path) -> None:
    finished = check(project, "--sarif", "out.sarif", "--json", "--write-baseline", "base.json")
    assert finished.returncode == 1, finished.stderr
    document = json.loads(finished.stdout)
    verdicts = {it["candidate"]: it["verdict"] for it in document["kernels"]}
    assert verdicts == {"kernels/right.cu": "passed", "kernels/wrong one.cu": "wrong_result"}
    assert document["without_task"] == ["kernels/other.cu"]
    log = json.loads((project / "out.sarif").read_text())
    is_sarif(log)
    [error] = [it for it in log["runs"][0]["results"] if it["level"] == "error"]
    place = error["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert (error["ruleId"], place) == ("wrong_result", "kernels/wrong%20one.cu")
    scores = json.loads((project / "base.json").read_text())["scores"]
    assert list(scores) == ["kernels/right.cu"]
    # What is as it was is good; what was better before, or should be better, is not.
    only = "kernels/right.cu"
    assert check(project, only, "--baseline", "base.json").returncode == 0
    scores["kernels/right.cu"] += 5
    (project / "base.json").write_text(json.dumps({"version": 1, "scores": scores}))
    worse = check(project, "tasks/saxpy.c", "kernels/right.cu", "--baseline", "base.json", "--annotations")
    assert worse.returncode == 1
    assert re.search(r"^::error file=kernels/right\.cu,line=\d+,.*baseline::structural", worse.stdout, re.M)


@pytest.mark.usefixtures("jail")
def test_a_compilers_error_is_at_its_line(project: Path) -> None:
    (project / "kernels/wrong one.cu").unlink()
    text = '// kernelwright: task=../tasks/saxpy.c score>=99.9\n#include "nothing"\n'
    (project / "kernels/bad.cu").write_text(text)
    finished = check(project, "kernels/bad.cu", "--annotations")
    assert finished.returncode == 1, finished.stderr
    assert "::error file=kernels/bad.cu,line=2" in finished.stdout


@pytest.mark.parametrize(
    ("comment", "words"),
    [
        ("// kernelwright: tusk=a.c", "tusk=a.c"),
        ("// kernelwright: score>=70", "no task="),
        ("// kernelwright: task=a.c score>=lots", "no number"),
        ("/* kernelwright: task=nowhere.c */", "nowhere.c"),
    ],
)
def test_a_wrong_comment_is_said(tmp_path: Path, comment: str, words: str) -> None:
    (tmp_path / "k.cu").write_text(f"{comment}\n")
    finished = check(tmp_path)
    assert finished.returncode == 2
    assert words in finished.stdout + finished.stderr
    assert "Traceback" not in finished.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[kernel]\n", "TOML"),
        ("[check]\nfloor = 1\n", "floor"),
        ('[[kernel]]\ncandidate = "x.cu"\ntask = "t"\n', "x.cu"),
    ],
)
def test_a_wrong_config_is_said(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "kernelwright.toml").write_text(text)
    finished = check(tmp_path)
    assert (finished.returncode, words in finished.stderr) == (2, True)


def test_nothing_to_judge_is_good(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text("// free\n")
    finished = check(tmp_path, "k.cu", "--sarif", "out.sarif")
    assert (finished.returncode, "names no task" in finished.stderr) == (0, True)
    is_sarif(json.loads((tmp_path / "out.sarif").read_text()))


def test_an_annotation_is_one_line_whatever_it_says() -> None:
    finding = Finding("wrong_result", "note", "a\n::error::b 100%", "k,1:2.cu", 3, 4)
    assert annotation(finding) == (
        f"::notice file=k%2C1%3A2.cu,line=3,col=4,title={RULES['wrong_result']}::a%0A::error::b 100%25"
    )


def test_a_finding_keeps_its_fingerprint_when_lines_and_numbers_move() -> None:
    def fingerprint(line: int, score: float) -> Any:
        finding = Finding("score_floor", "error", f"score {score} at line {line}", "k.cu", line)
        [result] = sarif([finding], done=True)["runs"][0]["results"]
        return result["partialFingerprints"]

    assert fingerprint(3, 60.5) == fingerprint(9, 61.0)


def is_sarif(log: Any) -> None:
    """What the schema of SARIF 2.1.0 asks of the parts that we write."""
    assert set(log) == {"$schema", "version", "runs"}
    assert log["version"] == "2.1.0"
    for run in log["runs"]:
        assert set(run) <= {"tool", "invocations", "columnKind", "results"}
        assert run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
        assert all(isinstance(it["executionSuccessful"], bool) for it in run["invocations"])
        driver = run["tool"]["driver"]
        assert isinstance(driver["name"], str)
        ids = [rule["id"] for rule in driver["rules"]]
        assert len(ids) == len(set(ids))
        assert all(rule["shortDescription"]["text"] for rule in driver["rules"])
        for result in run["results"]:
            assert ids[result["ruleIndex"]] == result["ruleId"]
            assert result["level"] in ("none", "note", "warning", "error")
            assert isinstance(result["message"]["text"], str)
            assert all(isinstance(it, str) for it in result["partialFingerprints"].values())
            for location in result["locations"]:
                place = location["physicalLocation"]
                assert re.fullmatch(r"[A-Za-z0-9._~%/-]+", place["artifactLocation"]["uri"])
                region = place["region"]
                assert all(isinstance(it, int) and it >= 1 for it in region.values())
                assert set(region) <= {"startLine", "startColumn"}


def test_the_action_and_the_hook_are_what_their_readers_expect() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    assert action["runs"]["using"] == "composite"
    for step in action["runs"]["steps"]:
        # What an event or an input holds comes in by the environment, never into the script's text.
        assert "${{" not in step.get("run", "")
        if script := step.get("run"):
            assert step["shell"] == "bash"
            assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert {"id", "name", "entry", "language"} <= set(hook)
    assert hook["entry"] == "kernelwright check"
    assert re.search(hook["files"], "kernels/saxpy.cu")


@pytest.mark.usefixtures("jail")
def test_the_actions_script_judges_what_a_pull_request_changes(project: Path) -> None:
    """The script itself, in a repository, with a `kernelwright` where the action would have installed it."""

    def git(*arguments: str) -> str:
        argv = ["git", "-c", "user.name=a", "-c", "user.email=a@example", *arguments]
        return subprocess.run(argv, cwd=project, capture_output=True, text=True, check=True).stdout.strip()

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "before")
    base = git("rev-parse", "HEAD")
    git("remote", "add", "origin", str(project))
    (project / "kernels/right.cu").write_text((project / "kernels/right.cu").read_text() + "// changed\n")
    git("commit", "-qam", "after")
    installed = project / "temp/kernelwright/bin/kernelwright"
    installed.parent.mkdir(parents=True)
    installed.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m webapp.cli.main "$@"\n')
    installed.chmod(0o755)
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    script = next(step["run"] for step in action["runs"]["steps"] if step.get("name") == "Judge")
    inputs = {"PATHS": "changed", "SARIF": "out.sarif", "ARGUMENTS": "--score-floor 1", "BASE": base}
    finished = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script],
        cwd=project,
        env=os.environ | inputs | {"RUNNER_TEMP": str(project / "temp")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert "1 kernels judged, 0 not good" in finished.stderr
    is_sarif(json.loads((project / "out.sarif").read_text()))
