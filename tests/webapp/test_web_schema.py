"""The generated files are what the Python types say."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.test import Client

from webapp.live import schema


def test_the_typescript_types_have_not_drifted() -> None:
    assert schema.main(["--check"]) == 0


def test_drift_is_noticed(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(schema, "TARGET", tmp_path / "generated" / "events.ts")  # type: ignore[operator]
    assert schema.main(["--check"]) == 1
    assert "python -m webapp.live.schema" in capsys.readouterr().err
    assert schema.main([]) == 0
    assert schema.main(["--check"]) == 0


def test_what_comes_in_may_leave_out_what_has_a_default_and_what_goes_out_is_whole() -> None:
    text = schema.typescript()
    assert "  turns?: number | null;" in text
    assert "  inputs?: InputsInput | null;" in text
    assert "  verdict: Verdict;" in text
    assert "  grid: [number, number, number];" in text
    assert "  sizes: Record<string, number>[];" in text


def test_the_openapi_document_is_valid_and_complete(client: Client) -> None:
    call_command("spectacular", validate=True, fail_on_warn=True, file="/dev/null")
    document = client.get("/api/v1/schema", headers={"Accept": "application/vnd.oai.openapi+json"}).json()
    assert document["openapi"] == "3.1.0"
    assert set(document["paths"]["/api/v1/runs/{run_id}"]) == {"get", "delete"}
    assert {"RunDetail", "RunCreate", "ProblemDocument", "TurnEnded"} <= set(
        document["components"]["schemas"]
    )


def test_migrations_are_complete(db: None) -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)
