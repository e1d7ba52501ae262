"""A language model in the page: chosen, watched while it writes, killed, resumed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.streaming import PIECE, WATCH, start_run, text, watched
from tests.webapp.endpoint import Endpoint, kernel

RATE, SECONDS = 200.0, 10.0
#: A machine that tests in several processes is slow; a page that lays out all text for each word is slower.
GAP_MS = 75.0


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[Endpoint]:
    it = Endpoint(tmp_path, dict(os.environ))
    yield it
    it.kill()


def set_up(context: BrowserContext, address: str, base_url: str, name: str) -> None:
    token = next(cookie["value"] for cookie in context.cookies() if cookie["name"] == "csrftoken")
    body: dict[str, Any] = {
        "name": name,
        "model": "scripted",
        "base_url": base_url,
        "allow_loopback": True,
        "attempts": 3,
        "backoff_seconds": 1.0,
        "price_prompt": 1.0,
        "price_completion": 4.0,
    }
    answer = context.request.post(
        f"{address}/api/v1/models",
        data=json.dumps(body),
        headers={"X-CSRFToken": token, "Content-Type": "application/json", "Referer": address},
    )
    assert answer.status == 201, answer.text()


def test_a_fast_model_leaves_the_page_responsive(
    page: Page, context: BrowserContext, address: str, endpoint: Endpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = text(RATE, SECONDS)
    base_url = endpoint.start([{"says": answer, "pause": 1 / RATE, "size": PIECE}])
    set_up(context, address, base_url, "fast")
    page.add_init_script(WATCH)
    page.reload()
    expect(page.locator(".app")).to_be_visible()
    start_run(page, "fast")
    live = page.locator(".agent-live")
    expect(live).to_contain_text("Each thread takes one element")
    # The end stays in sight until somebody scrolls up.
    box = page.locator(".panel-body")
    page.wait_for_timeout(1500)
    assert box.evaluate("it => it.scrollHeight - it.scrollTop - it.clientHeight") < 40
    assert box.evaluate("it => it.scrollTop") > 0
    box.evaluate("it => (it.scrollTop = 0)")
    page.wait_for_timeout(500)
    assert box.evaluate("it => it.scrollTop") == 0
    box.evaluate("it => (it.scrollTop = it.scrollHeight)")
    seen = watched(page, len(answer))
    with capsys.disabled():
        print(f"\n{seen}")
    assert seen.websocket_frames_per_second > 5
    assert seen.gap_p95 < GAP_MS, seen
    assert seen.first_text < 5000, seen
    # The whole answer stands where the pieces stood, and what it took is in the status bar.
    expect(page.locator(".agent-step")).to_contain_text("blocks of 128 threads")
    expect(page.locator(".statusbar")).to_contain_text("1,000 in")
    expect(page.locator(".agent-model")).to_contain_text("first token")
    expect(page.locator(".turn-chip")).to_contain_text("verified")


def test_a_killed_model_is_waited_for_and_the_run_resumed(
    page: Page, context: BrowserContext, address: str, endpoint: Endpoint
) -> None:
    slow = {"says": kernel(256), "pause": 0.05, "size": 4, "stalls": True}
    base_url = endpoint.start([{"says": kernel(128)}, slow])
    set_up(context, address, base_url, "mortal")
    page.reload()
    expect(page.locator(".app")).to_be_visible()
    page.get_by_role("combobox", name="Agent").select_option("llm:mortal")
    page.get_by_label("Turn budget").select_option("2")
    page.locator(".side-pane").get_by_role("button", name="saxpy", exact=False).first.click()
    page.keyboard.press("Control+Enter")
    expect(page.locator(".agent-live")).to_contain_text("__global__")
    expect(page.locator(".turn-chip").first).to_contain_text("verified")
    endpoint.kill()
    waits = page.locator(".agent-step.tone-warn")
    expect(waits.first).to_contain_text("waiting for the model, attempt 2 of 3")
    expect(page.locator(".strip")).to_contain_text("no answer from the model")
    assert page.locator(".agent-live").count() == 0
    endpoint.start([{"says": kernel(512)}])
    before = page.url
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(".turn-chip")).to_have_count(2)
    expect(page.locator(".turn-chip").nth(1)).to_contain_text("verified")
    assert page.url != before
    expect(page.locator(".agent-model")).to_contain_text("goes on from run")
    # The tokens of turn 1 were paid for by the run before.
    expect(page.locator(".statusbar")).to_contain_text("1,000 in")
