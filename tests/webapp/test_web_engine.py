"""The real engine behind the real server: a run to its verdict, and one whose user's program never ends."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.webapp.stack import Stack
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
