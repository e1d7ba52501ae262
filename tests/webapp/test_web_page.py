"""The page's shell, the plain pages, and what browsers are told to refuse."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client

from tests.webapp.conftest import MakeRun
from webapp.gallery import selectors as gallery
from webapp.ide import build, views
from webapp.live.resources import Session

pytestmark = pytest.mark.django_db

MANIFEST = {
    "_shared-abc12345.js": {"file": "assets/shared-abc12345.js", "css": ["assets/shared-abc12345.css"]},
    "src/lazy.ts": {"file": "assets/lazy-abc12345.js", "isDynamicEntry": True},
    "src/main.tsx": {
        "file": "assets/main-abc12345.js",
        "isEntry": True,
        "imports": ["_shared-abc12345.js"],
        "dynamicImports": ["src/lazy.ts"],
        "css": ["assets/main-abc12345.css"],
    },
}


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> build.Build:
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps(MANIFEST))
    found = build.find_build(manifest)
    assert found is not None
    monkeypatch.setattr(views, "find_build", lambda: found)
    return found


def test_the_shell_loads_what_vite_built_and_nothing_inline(
    browser: Client, make_run: MakeRun, built: build.Build
) -> None:
    run = make_run()
    response = browser.get(f"/runs/{run.pk}")
    page = response.content.decode()
    assert '<script type="module" src="/static/ide/assets/main-abc12345.js">' in page
    assert '<link rel="modulepreload" href="/static/ide/assets/shared-abc12345.js">' in page
    assert page.count('rel="stylesheet"') == 2
    assert "lazy" not in page
    block = re.search(r'<script id="bootstrap" type="application/json">(.*?)</script>', page, re.DOTALL)
    assert block is not None
    bootstrap = json.loads(block[1])
    assert bootstrap.pop("run_id") == str(run.pk)
    assert Session.model_validate(bootstrap).user.username == "ada"
    # Every script is a file of ours or plain data.
    assert all("src=" in tag or "application/json" in tag for tag in re.findall(r"<script[^>]*>", page))


def test_a_page_that_was_not_built_says_so(
    browser: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert build.find_build(tmp_path / "none.json") is None
    monkeypatch.setattr(views, "find_build", lambda: None)
    response = browser.get("/")
    assert response.status_code == 503
    assert "make setup" in response.content.decode()


def test_the_policy_lets_in_only_our_own_scripts(client: Client) -> None:
    policy = dict(
        part.strip().partition(" ")[::2]
        for part in client.get("/sign-in")["Content-Security-Policy"].split(";")
    )
    assert policy["script-src"] == policy["worker-src"] == policy["connect-src"] == "'self'"
    assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
    assert policy["style-src"] == "'self' 'unsafe-inline'"


def test_the_api_page_brings_its_own_script(client: Client) -> None:
    page = client.get("/api/v1/docs").content.decode()
    addresses = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert addresses
    assert all(address.startswith(("/static/", "/api/v1/docs")) for address in addresses)
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", page))


def test_what_is_not_there_is_said_plainly(browser: Client) -> None:
    response = browser.get("/nothing")
    assert response.status_code == 404
    assert "nothing at this address" in response.content.decode()


def test_the_gallery_lists_recordings_first_and_plays_them(
    browser: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "saxpy.c").write_text("void saxpy(int n);\n")
    (tmp_path / "index.toml").write_text(
        '[[examples]]\nfile = "c/saxpy.c"\ntitle = "saxpy"\ndescription = "y = a x + y"\n'
        "[examples.inputs.sizes]\nn = 1000\n"
    )
    (tmp_path / "recordings").mkdir()
    (tmp_path / "recordings" / "softmax.jsonl").write_text(
        '{"title": "Row softmax", "label": "Recorded run"}\n'
        '{"at": 0.5, "event": {"type": "turn_started", "turn": 1, "title": "Direct", "base_turn": null}}\n'
    )
    shown = gallery.gallery(tmp_path)
    assert [(it.kind, it.id, it.label) for it in shown] == [
        ("recording", "softmax", "Recorded run"),
        ("example", "saxpy", "C"),
    ]
    assert shown[1].inputs is not None
    assert shown[1].inputs.sizes == {"n": 1000}
    played = gallery.recording("softmax", tmp_path)
    assert played is not None
    assert [(it.seq, it.at, it.event.type) for it in played.events] == [(1, 0.5, "turn_started")]
    assert gallery.recording("../softmax", tmp_path) is None
    assert browser.get("/api/v1/recordings/none").json()["type"] == "/problems/not-found"


def test_a_run_becomes_a_recording(
    make_run: MakeRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(done=True)
    call_command("export_recording", str(run.pk), title="saxpy", label="Scripted")
    (tmp_path / "recordings").mkdir()
    (tmp_path / "recordings" / "saxpy.jsonl").write_text(capsys.readouterr().out)
    played = gallery.recording("saxpy", tmp_path)
    assert played is not None
    assert (played.title, played.label, len(played.events)) == ("saxpy", "Scripted", run.last_seq)
    assert gallery.gallery(tmp_path)[0].source == run.source
    with pytest.raises(CommandError):
        call_command("export_recording", str(make_run().pk), title="x")


def test_the_shipped_gallery_can_be_read(browser: Client) -> None:
    items = browser.get("/api/v1/examples").json()
    assert len([item for item in items if item["kind"] == "example"]) >= 10
    for item in items:
        if item["kind"] == "recording":
            assert browser.get(f"/api/v1/recordings/{item['id']}").status_code == 200


def test_the_doctor_says_what_is_there_and_what_to_do(browser: Client) -> None:
    found = {it["name"]: it for it in browser.get("/api/v1/doctor").json()}
    assert {"nvcc", "jail", "database", "channel_layer", "task_queue"} <= set(found)
    assert found["database"]["ok"]
    assert all(it["ok"] or it["how"] or not it["needed"] for it in found.values())
