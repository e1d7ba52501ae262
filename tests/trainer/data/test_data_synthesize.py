"""From a seed to a folder: the same for any number of jobs, complete after a kill, counts that add up."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import all_end
from trainer.data.generate import drafted
from trainer.data.journal import read_rows
from trainer.data.pool import run_all
from trainer.data.registry import all_families, sketch
from trainer.data.rows import Row
from trainer.data.work import begin_worker, examine_draft

pytestmark = pytest.mark.usefixtures("jail")

COUNT = "3"


def kernelwright(*arguments: str) -> tuple[int, dict[str, Any], str]:
    command = [sys.executable, "-m", "webapp.cli.main", "train", *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout or "{}"), done.stderr


def synthesize(
    out: Path, *more: str, count: str = COUNT, solutions: str = "none"
) -> tuple[int, dict[str, Any], str]:
    return kernelwright(
        "synthesize",
        "c",
        "--count",
        count,
        "--seed",
        "11",
        "--out",
        str(out),
        "--solutions",
        solutions,
        *more,
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "made"
    code, report, said = synthesize(folder, "--jobs", "2")
    assert code == 0, said
    assert report["tasks"] == int(COUNT)
    return folder


def rows(folder: Path) -> Sequence[Row]:
    broken: list[Any] = []
    found = list(read_rows(folder / "tasks.jsonl", Row, broken))
    assert not broken
    return found


def test_rows_are_whole_tasks(made: Path) -> None:
    found = rows(made)
    assert len({row.id for row in found}) == len(found) == int(COUNT)
    for row in found:
        assert row.language == "c"
        assert row.decision in ("PARALLELIZE", "KEEP")
        assert row.structure
        assert row.inputs
        assert row.difficulty is None  # nothing was tried
        assert row.solutions == []


def test_one_job_makes_the_same_file_bit_for_bit_and_goes_on_after_a_kill(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "again"
    command = [sys.executable, "-m", "webapp.cli.main", "train", "synthesize", "c", "--count", COUNT]
    command += ["--seed", "11", "--out", str(folder), "--solutions", "none", "--jobs", "1"]
    journal = folder / "journal" / "examined.jsonl"
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    while not (journal.exists() and journal.read_bytes().count(b"\n") >= 2):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = journal.read_bytes()
    journal.write_bytes(before + b'{"id":"c-torn","outc')  # what a kill in the middle of a line leaves
    assert not (folder / "tasks.jsonl").exists()
    code, report, said = synthesize(folder, "--jobs", "1")
    assert code == 0, said
    assert report["adds_up"]
    assert journal.read_bytes().startswith(before)  # nothing was asked twice
    assert (folder / "tasks.jsonl").read_bytes() == (made / "tasks.jsonl").read_bytes()


def test_statistics_add_up(made: Path) -> None:
    code, stats, _ = kernelwright("data", "stats", str(made))
    assert code == 0
    assert stats["adds_up"]
    total = int(COUNT)
    for name in (
        "families",
        "groups",
        "decisions",
        "splits",
        "languages",
        "origins",
        "difficulty",
        "translator",
    ):
        assert sum(stats[name].values()) == stats["tasks"] == total, name
    assert stats["configurations"] == sum(len(row.inputs) for row in rows(made))
    assert stats["structures"] == len({row.structure for row in rows(made)})
    filters = stats["filters"]
    kept = filters["written"] - sum(filters["left_out"].values())
    assert kept == sum(filters["examined"].values())
    assert filters["examined"]["taken"] == total


def test_the_manifest_has_the_hashes_of_all_files_and_splits_by_family(made: Path) -> None:
    manifest = json.loads((made / "manifest.json").read_text())
    for name, entry in manifest["files"].items():
        data = (made / name).read_bytes()
        assert entry == {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    assert {row.family for row in rows(made)} == set(manifest["splits"])
    assert manifest["settings"]["seed"] == 11
    assert "families" in (made / "README.md").read_text()


def test_a_broken_row_is_reported(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    folder.mkdir()
    for name in ("report.json", "manifest.json"):
        (folder / name).write_bytes((made / name).read_bytes())
    lines = (made / "tasks.jsonl").read_text().splitlines()
    lines[1] = lines[1][: len(lines[1]) // 2]
    (folder / "tasks.jsonl").write_text("\n".join(lines) + "\n")
    code, stats, _ = kernelwright("data", "stats", str(folder))
    assert code == 1
    assert stats["tasks"] == int(COUNT) - 1
    assert [row.startswith("tasks.jsonl:2: ") for row in stats["broken_rows"]] == [True]
    assert not stats["adds_up"]


LOOP = "for (int i = 0; i < n; i++)"
GIVEN = {
    "fine.c": f"void twice(int n, const float *x, float *y) {{ {LOOP} y[i] = 2 * x[i] + 1; }}",
    "same.c": f"void d(int n, const double *a, double *b) {{ {LOOP} {{ b[i] = 2 * a[i] + 1; }} }}",
    "crashes.c": (
        "#include <stdlib.h>\n"
        f"void f(int n, float *x) {{ {LOOP} {{ if (x[i] > -1e30f) abort(); x[i] *= 2; }} }}"
    ),
    "never_ends.c": f"void f(int n, float *x) {{ {LOOP} {{ x[i] = 1; i--; }} }}",
    "constant.c": f"void f(int n, const float *x, float *y) {{ {LOOP} y[i] = 3 + 0 * (x[i] > 0); }}",
    "no_c.c": "this is a letter, not a program",
    "binary.c": "\udcff\udcfe",
    "held.c": "void g(int n, float *v) { for (int i = 1; i < n; i++) v[i] = v[i] * v[i - 1] + 3; }",
}


def test_users_programs_are_taken_or_left_out_with_the_reason(tmp_path: Path) -> None:
    mine, held, folder = tmp_path / "mine", tmp_path / "held", tmp_path / "out"
    mine.mkdir()
    held.mkdir()
    for name, text in GIVEN.items():
        (mine / name).write_bytes(text.encode(errors="surrogateescape"))
    (mine / "fine.toml").write_text("[sizes]\nn = 2000\n")
    (held / "known.jsonl").write_text(
        json.dumps({"source": re.sub(r"\bv\b", "w", GIVEN["held.c"])}) + "\nnot a row\n"
    )
    more = ("--sources", str(mine), "--held-out", str(held), "--jobs", "2")
    code, report, said = synthesize(folder, *more, count="1")
    assert code == 0, said
    assert report["adds_up"]
    assert report["left_out"] == {"exact_duplicate": 1, "near_duplicate": 0, "held_out": 1}
    assert [line.split(":")[0] for line in report["unreadable"]] == [str(mine / "binary.c")]
    rejected = [json.loads(line) for line in (folder / "rejected.jsonl").read_text().splitlines()]
    assert {r["outcome"] for r in rejected} == {"reference_failed", "never_ends", "degenerate", "refused"}
    assert all(r["message"] for r in rejected)
    assert report["examined"] == {
        "degenerate": 1,
        "never_ends": 1,
        "reference_failed": 1,
        "refused": 1,
        "taken": 2,
    }
    row = rows(folder)[0]
    assert (row.origin, row.family, row.inputs[0].sizes) == ("given", "given/mine", {"n": 2000})
    compared = json.loads((folder / "decontamination.json").read_text())
    assert compared["programs_compared_with"] == 1
    assert compared["unreadable"] == ["held/known.jsonl:2: no row with a source"]
    assert compared["dropped"][0]["agreement"] == 1.0


def test_a_folder_is_finished_as_it_was_begun(made: Path, tmp_path: Path) -> None:
    code, document, said = kernelwright(
        "synthesize", "c", "--count", COUNT, "--seed", "12", "--out", str(made), "--solutions", "none"
    )
    assert code == 2
    assert document["problem"]["kind"] == "other_settings"
    assert "seed" in said
    for arguments in (
        ("synthesize", "c", "--count", "-1", "--out", str(tmp_path)),
        ("data", "stats", str(tmp_path)),
        ("synthesize", "c", "--target", "sm_3", "--out", str(tmp_path / "nowhere")),
    ):
        code, document, _ = kernelwright(*arguments)
        assert code == 2
        assert document["problem"]["message"]


def test_solutions_are_added_later_judged_and_kept_right_or_wrong(made: Path) -> None:
    """For the first task alone: the others stay without."""
    before = rows(made)
    code, report, said = synthesize(made, "--jobs", "1", count="1", solutions="builtin")
    assert code == 0, said
    [row] = rows(made)
    assert row.id == before[0].id
    assert row.model_copy(update={"solutions": [], "difficulty": None, "translator": ""}) == before[0]
    kinds = {s.provenance.kind for s in row.solutions}
    assert {"builtin", "spoiled", "broken"} <= kinds
    verdicts = {s.evaluation.verdict for s in row.solutions}
    assert "passed" in verdicts
    assert len(verdicts) > 1  # what was broken on purpose is there with its verdict
    for solution in row.solutions:
        if solution.provenance.kind in ("without", "spoiled"):
            assert solution.evaluation.verdict == "passed", solution.provenance
    assert row.difficulty is not None
    assert sum(report["solutions"].values()) == len(row.solutions)
    code, stats, _ = kernelwright("data", "stats", str(made))
    assert stats["solutions"] == sum(stats["verdicts"].values()) == len(row.solutions)
    assert stats["adds_up"]


def test_the_judge_takes_every_family() -> None:
    """Its reference runs, and a wrong kernel could be told from a right one."""
    drafts = [drafted(sketch(family, 1, 1), family, 1) for family in all_families()]
    drafts = [draft.model_copy(update={"inputs": draft.inputs[:1]}) for draft in drafts]
    begin = partial(begin_worker, os.getpid())
    found = {
        draft.family: result
        for draft, result in run_all(examine_draft, drafts, jobs=os.cpu_count() or 1, begin=begin)
    }
    assert len(found) == len(drafts)
    assert {name: result for name, result in found.items() if getattr(result, "outcome", "") != "taken"} == {}


def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "webapp.cli.main", "train", "synthesize", "c", "--count", "40"]
    command += ["--out", str(tmp_path / "x"), "--solutions", "none", "--jobs", "2"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
    workers: list[int] = []
    for _ in range(300):
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        workers = [int(child) for child in children]
        if len(workers) >= 3:  # two, and multiprocessing's own
            break
        time.sleep(0.1)
    assert len(workers) >= 2
    time.sleep(1.0)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert all_end(workers)
