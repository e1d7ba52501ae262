"""The real engine behind the real server: a run to its verdict, and one whose user's program never ends."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.webapp.stack import ROOT, Stack
from webapp.gallery.selectors import EXAMPLES

pytestmark = pytest.mark.usefixtures("jail")

ENDLESS = """
import torch
while True: pass
class Model(torch.nn.Module):
    def forward(self, x): return x + 1
def get_inputs(): return [torch.rand(8)]
def get_init_inputs(): return []
"""


@pytest.fixture(scope="module")
def stack(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("real")
    # What was built for other tests need not be built again.
    (home / "cache").mkdir(exist_ok=True)
    (folder / "cache").symlink_to(home / "cache")
    it = Stack(folder, {}, module="webapp.cli.serve")
    it.browser = it.start()
    yield it
    it.end()


def descendants(pid: int) -> list[str]:
    """Command lines of all processes below this one."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
            parents.setdefault(parent, []).append(int(folder.name))
    found, waiting = [], [pid]
    while waiting:
        for child in parents.get(waiting.pop(), []):
            waiting.append(child)
            try:
                found.append((Path("/proc") / str(child) / "cmdline").read_text().replace("\0", " "))
            except OSError:
                continue
    return found


def test_a_c_function_becomes_verified_cuda(stack: Stack) -> None:
    source = (EXAMPLES / "c" / "saxpy.c").read_text()
    run_id = stack.browser.translate(source=source, filename="saxpy.c", turns=2)
    frames = stack.browser.events(run_id)
    kinds = [frame["event"]["type"] for frame in frames]
    assert (kinds[0], kinds[-1], kinds.count("run_started")) == ("run_started", "run_ended", 1)
    assert {"edited", "action", "compiled", "verified", "measured", "turn_ended"} <= set(kinds)
    run = stack.browser.get(f"runs/{run_id}")
    assert run["verdict"] == "passed", run["message"]
    assert run["score"] > 0
    rewards = [it["event"]["evaluation"]["reward"] for it in frames if it["event"]["type"] == "turn_ended"]
    assert all(reward is not None for reward in rewards)


def test_bad_input_is_said_in_the_run(stack: Stack) -> None:
    run_id = stack.browser.translate(source="void f(int n, float *x) { x[0] = ; }")
    run = stack.browser.wait_until(run_id, lambda it: it["ended_at"] is not None)
    assert (run["state"], run["reason"]) == ("failed", "bad_input")
    assert run["problem"]["line"] == 1


def test_cancel_kills_every_process_of_the_run(stack: Stack) -> None:
    server = stack.server.child.pid
    before = len(descendants(server))
    run_id = stack.browser.translate(source=ENDLESS, filename="endless.py")
    deadline = time.monotonic() + 20
    while len(descendants(server)) <= before:
        assert time.monotonic() < deadline, "nothing was started for the run"
        time.sleep(0.1)
    stack.browser.post(f"runs/{run_id}/cancel")
    run = stack.browser.wait_until(run_id, lambda it: it["ended_at"] is not None, seconds=5)
    assert (run["state"], run["reason"]) == ("cancelled", "cancelled")
    time.sleep(0.3)
    assert len(descendants(server)) == before, descendants(server)


PEOPLE = """
import django; django.setup()
from datetime import timedelta
from webapp.accounts.models import User
from webapp.workspaces import tokens
from webapp.workspaces.models import Membership, Workspace
from webapp.workspaces.roles import Role, Scope
workspace = Workspace.objects.create(slug="team", name="Team")
for name, role in (("ann", Role.AUTHOR), ("rob", Role.REVIEWER), ("mia", Role.MAINTAINER)):
    user = User.objects.create_user(name)
    Membership.objects.create(workspace=workspace, user=user, role=role)
    print(tokens.token_create(
        user=user, name="script", scopes=list(Scope), workspace=workspace, lifetime=timedelta(days=1))[1])
"""


def test_a_script_reviews_edits_and_merges_by_api_alone(stack: Stack) -> None:
    """Three people with tokens, the real agent and the real judge: what a program can do is all there is."""
    around = {**stack.environment, "DJANGO_SETTINGS_MODULE": "webapp.settings"}
    made = subprocess.run(
        [sys.executable, "-c", PEOPLE], env=around, cwd=ROOT, capture_output=True, text=True, check=True
    )
    ann, rob, mia = (partial(ask, stack.browser.address, token) for token in made.stdout.split())
    source = (EXAMPLES / "c" / "saxpy.c").read_text()
    run = ann("POST", "runs", {"source": source, "filename": "saxpy.c", "turns": 1, "workspace": "team"})
    eventually(lambda: ann("GET", f"runs/{run['id']}")["ended_at"] is not None)
    it = ann("POST", "review-requests", {"run": run["id"], "title": "Saxpy", "reviewers": ["rob"]})
    here = f"review-requests/{it['id']}"
    assert rob("GET", "inbox")["results"][0]["id"] == it["id"]
    lines = it["head"]["source"].splitlines()
    line = next(number for number, text in enumerate(lines, 1) if "__global__" in text)
    anchor = {"revision": it["head"]["id"], "line": line, "end_line": line, "quoted": lines[line - 1]}
    said = {"anchor": anchor, "body": "Say what it computes, @ann.", "draft": True}
    thread = rob("POST", f"{here}/threads", said)
    wish = {"verdict": "request_changes", "revision": it["head"]["id"]}
    rob("POST", f"{here}/submissions", wish)
    better = "// y = a * x + y, an element a thread.\n#define UNUSED 1\n" + it["head"]["source"]
    edited = ann("POST", f"{here}/revisions", {"source": better, "base_revision": it["head"]["id"]})
    eventually(lambda: ann("GET", f"revisions/{edited['id']}")["state"] == "judged")
    now = rob("GET", here)
    assert now["head"]["verdict"] == "passed", now["head"]["message"]
    assert rob("GET", f"threads/{thread['id']}")["place"]["line"] == line + 2
    delta = {
        metric["name"]: metric for metric in rob("GET", f"{here}/diff?from={it['head']['id']}")["metrics"]
    }
    assert delta["structural score"]["old"] == delta["structural score"]["new"]
    rob("POST", f"threads/{thread['id']}/resolve")
    rob("POST", f"{here}/submissions", {"verdict": "approve", "revision": edited["id"]})
    merged = mia("POST", f"{here}/merge", {"revision": edited["id"]})
    assert (merged["state"], merged["library_entry"] is not None) == ("merged", True)
    assert all(item["ok"] for item in merged["checklist"])


def ask(address: str, token: str, method: str, path: str, body: Any = None) -> Any:
    """One call of REST with a token; raises HTTPError for a problem."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    data = None if method == "GET" else json.dumps(body or {}).encode()
    wanted = urllib.request.Request(f"{address}/api/v1/{path}", data, headers, method=method)
    with urllib.request.urlopen(wanted, timeout=30) as response:
        return json.loads(response.read())


def eventually(condition: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.2)
