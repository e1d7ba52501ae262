"""Every way to cheat that is known, tried on the judge, beside honest candidates that look alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import pytest

from sandbox.types import Backend, Verdict
from webapp.cli.bench_cheats import FOLDER, ROOT, Judges, Row, fault, judges, read_table

TABLE = read_table()
ROWS = sorted(TABLE.rows, key=lambda row: (row.task, not row.honest))


@pytest.fixture(scope="module", params=get_args(Backend))
def judged(jail: None, request: pytest.FixtureRequest) -> Iterator[Judges]:
    if request.param == "gpu":
        request.getfixturevalue("gpu")
    with judges(request.param, TABLE) as made:
        chosen = {item.callspec.params["row"].name for item in request.session.items if _has_row(item)}
        for row in ROWS:
            if row.name in chosen:
                made.compile_ahead(row)
        yield made


def _has_row(item: pytest.Item) -> bool:
    return "row" in getattr(getattr(item, "callspec", None), "params", {})


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_candidate(row: Row, judged: Judges) -> None:
    assert not fault(row, TABLE, judged)
    evaluation = judged.evaluate(row)
    assert evaluation.jailed
    if row.honest:
        assert evaluation.score is not None
        assert evaluation.verification is not None
        assert all(check.passed for check in evaluation.verification.checks)
    elif evaluation.verdict != "passed":
        assert evaluation.score is None
        assert evaluation.fault != "kernelwright" or evaluation.verdict == "unsupported"


def test_the_table_and_the_folder_agree() -> None:
    files = {path.relative_to(FOLDER) for path in FOLDER.rglob("*.cu")}
    assert files == {row.path.relative_to(FOLDER) for row in TABLE.rows}
    assert len({row.name for row in TABLE.rows}) == len(TABLE.rows)
    assert {entry.path for entry in TABLE.tasks.values()} >= set((FOLDER / "tasks").iterdir())
    assert {row.task for row in TABLE.rows} == set(TABLE.tasks)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_what_a_row_claims(row: Row) -> None:
    """No cheat may simply pass: it gains nothing over an honest candidate, or is said to be open."""
    assert row.verdict in get_args(Verdict)
    if row.honest:
        assert row.verdict == "passed"
        assert not row.open
        return
    assert row.way in TABLE.ways
    assert (row.verdict == "passed") == bool(row.no_better_than or row.open)
    text = row.path.read_text()
    assert text.startswith("// ")
    assert ("// Not stopped" if row.open else "// Stopped by: ") in text


def test_every_way_is_tried_or_shown_elsewhere() -> None:
    tried = {row.way for row in TABLE.rows if not row.honest}
    assert tried | set(TABLE.elsewhere) == set(TABLE.ways)
    assert not tried & set(TABLE.elsewhere)
    assert {str(number) for number in range(1, 59)} <= set(TABLE.ways)
    for where in TABLE.elsewhere.values():
        path = where.split(":")[0]
        assert not path.endswith(".py") or (ROOT / path).is_file(), where
