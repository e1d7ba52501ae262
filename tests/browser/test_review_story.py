"""Two people and one kernel, each in a browser of their own: from a run to the workspace's library."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import PATIENCE_MS, RESULTS, ROOT, own_services
from tests.conftest import missing

REVIEWER, PASSWORD = "rita", "a long sentence for a test"
REMARK = "    // One block of threads covers the rows from here.\n"
MAKE_USER = f"""
from webapp.accounts.models import User
User.objects.create_user({REVIEWER!r}, password={PASSWORD!r})
"""


def watched(browser: Browser, address: str, faults: list[str], **settings: Any) -> Page:
    """A page of a browser of its own. What goes wrong in it is added to `faults`."""
    context = browser.new_context(base_url=address, viewport={"width": 1440, "height": 900}, **settings)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    return page


@pytest.fixture
def people(
    chromium: Browser, link: str, address: str, signed_in: Any, home: Path, request: pytest.FixtureRequest
) -> Iterator[tuple[Page, Page]]:
    """The author, who owns the server, and the reviewer, who signs in with a password."""
    subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "shell", "-v", "0", "-c", MAKE_USER],
        env=own_services(home),
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    faults: list[str] = []
    author = watched(chromium, address, faults, storage_state=signed_in, color_scheme="dark")
    reviewer = watched(chromium, address, faults, color_scheme="light")
    author.goto("/")
    reviewer.goto("/sign-in")
    reviewer.get_by_label("Name").fill(REVIEWER)
    reviewer.get_by_label("Password").fill(PASSWORD)
    reviewer.get_by_role("button", name="Sign in", exact=True).click()
    for page in (author, reviewer):
        expect(page.locator(".app")).to_be_visible()
    yield author, reviewer
    RESULTS.mkdir(exist_ok=True)
    author.screenshot(path=RESULTS / f"{request.node.name}-author.png")
    reviewer.screenshot(path=RESULTS / f"{request.node.name}-reviewer.png")
    for page in (author, reviewer):
        page.context.close()
    assert not faults, faults


def choose_workspace(page: Page, name: str) -> None:
    page.locator(".workspace-menu summary").click()
    page.locator(".workspace-menu").get_by_role("button", name=name).click()
    expect(page.locator(".workspace-menu summary")).to_contain_text(name)


def accessible(page: Page) -> None:
    """Nothing for axe to find, in any theme. Threads stand in the list below, outside of Monaco, too."""
    axe = ROOT / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
    if not axe.is_file():
        missing("chromium", "axe-core is not installed: cd frontend && npm ci")
    page.emulate_media(reduced_motion="reduce")
    page.evaluate(axe.read_text())
    for theme in ("high contrast", "light", "dark"):
        page.keyboard.press("Control+k")
        page.keyboard.type(f"theme {theme}")
        page.keyboard.press("Enter")
        expect(page.locator("html")).to_have_attribute("data-theme", theme.replace(" ", "-"))
        found = page.evaluate(
            """async () => (await axe.run({exclude: [['.monaco-editor']]}, {
                runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'],
            })).violations.map(v => ({
                id: v.id, nodes: v.nodes.map(n => n.html.slice(0, 200) + ' ' + n.failureSummary),
            }))"""
        )
        assert not found, f"{page.url}, {theme}: {json.dumps(found, indent=1)}"


def team_of_two(author: Page, reviewer: Page) -> None:
    """The author makes a workspace, and hands the link of an invitation over."""
    author.locator(".workspace-menu summary").click()
    author.get_by_role("button", name="New workspace…").click()
    author.get_by_role("textbox", name="Name").fill("Kernel team")
    author.get_by_role("button", name="Make it").click()
    expect(author.get_by_role("heading", name="Kernel team")).to_be_visible()
    author.get_by_role("button", name="Invite", exact=True).click()
    reviewer.goto(author.get_by_label("Link of the invitation").input_value())
    reviewer.get_by_role("button").click()
    reviewer.goto("/")
    choose_workspace(reviewer, "Kernel team")
    accessible(author)
    author.get_by_role("button", name="Workbench").click()


def run_and_ask(author: Page) -> None:
    author.locator(".side-pane").get_by_role("button", name="SAXPY", exact=True).click()
    author.keyboard.press("Control+Enter")
    expect(author.locator(".timeline .ended")).to_be_visible(timeout=120_000)
    author.keyboard.press("Alt+a")
    asking = author.get_by_role("dialog", name="Ask for a review")
    expect(asking.get_by_role("checkbox", name=REVIEWER)).to_be_checked()
    asking.get_by_role("textbox", name="Title").fill("SAXPY for the team")
    asking.get_by_role("button", name="Ask", exact=True).click()
    expect(author).to_have_url(re.compile("/reviews/[0-9a-f-]{36}$"))
    expect(author.locator("[data-connection='live']")).to_be_visible()


def comment_and_request_changes(reviewer: Page) -> None:
    """On a line, with a suggestion, kept over a reload, sent with a verdict."""
    reviewer.reload()
    expect(reviewer.get_by_role("button", name="Reviews, 1 waits for you")).to_be_visible()
    reviewer.keyboard.press("Alt+r")
    reviewer.get_by_role("tabpanel").get_by_role("button", name="SAXPY for the team").click()
    first = reviewer.locator(".review-host .modified .view-line", has_text="__global__").first
    first.click()
    reviewer.keyboard.press("ArrowDown")
    reviewer.keyboard.press("Alt+c")
    box = reviewer.get_by_role("textbox", name=re.compile("^Comment on line"))
    expect(box).to_be_focused()
    box.fill("What does **this** stand for?")
    reviewer.get_by_role("button", name="Suggest a change").click()
    lines = reviewer.get_by_role("textbox", name="Suggested lines")
    lines.fill(REMARK + lines.input_value())
    reviewer.reload()
    expect(box).to_have_value("What does **this** stand for?")
    expect(lines).to_have_value(re.compile("One block of threads"))
    box.focus()
    reviewer.keyboard.press("Control+Enter")
    expect(reviewer.locator(".threads .comment.draft strong").last).to_have_text("this")
    reviewer.keyboard.press("Alt+s")
    reviewer.get_by_role("radio", name="Request changes").check()
    reviewer.get_by_role("button", name="Submit", exact=True).click()
    expect(reviewer.get_by_role("dialog")).to_have_count(0)


def take_in_and_answer(author: Page) -> None:
    """The author sees it without a reload, takes the suggestion in, and answers where the code is now."""
    thread = author.locator(".threads .thread")
    expect(thread).to_contain_text("What does this stand for?")
    expect(author.locator("[data-check='no_changes_requested']")).to_have_attribute("data-ok", "false")
    line = int(re.sub(r"\D", "", thread.locator(".thread-header .link").first.inner_text()))
    author.keyboard.press("Alt+u")
    author.locator(".review-host").get_by_role("button", name="Apply", exact=True).click()
    expect(thread).to_contain_text("taken into revision")
    expect(thread.locator(".thread-header .link").first).to_have_text(f"Line {line + 1}")
    expect(author.locator(".review-host .line-insert").first).to_be_visible()
    expect(author.locator(".review-aside .verdict-line")).to_contain_text("verified")
    thread.get_by_role("button", name="Answer").click()
    thread.get_by_role("textbox", name=re.compile("^Answer")).fill("Written down now, thank you.")
    thread.get_by_role("button", name="Answer now").click()
    expect(thread.locator(".comment")).to_have_count(2)


def approve(reviewer: Page) -> None:
    thread = reviewer.locator(".threads .thread")
    expect(thread).to_contain_text("Written down now")
    reviewer.get_by_role("button", name="Show what changed since").click()
    expect(reviewer.locator(".review-host .line-insert").first).to_be_visible()
    accessible(reviewer)
    thread.get_by_role("button", name="Resolve").click()
    expect(reviewer.locator("[data-check='no_unresolved']")).to_have_attribute("data-ok", "true")
    reviewer.keyboard.press("Alt+s")
    reviewer.get_by_role("radio", name="Approve").check()
    reviewer.get_by_role("button", name="Submit", exact=True).click()
    expect(reviewer.locator(".review-pane .sign").first).to_contain_text("approved")


def merge(author: Page) -> None:
    expect(author.locator(".checklist li[data-ok='true']")).to_have_count(4)
    author.get_by_role("button", name="Merge into the library").click()
    expect(author.locator(".review-pane .sign").first).to_contain_text("in the library")
    author.keyboard.press("Alt+r")
    if not author.get_by_role("tab", name="Library").is_visible():
        author.keyboard.press("Alt+r")
    author.get_by_role("tab", name="Library").click()
    expect(author.get_by_role("tabpanel").locator(".review-row")).to_contain_text("SAXPY for the team")


def test_from_a_run_into_the_library(people: tuple[Page, Page]) -> None:
    author, reviewer = people
    team_of_two(author, reviewer)
    run_and_ask(author)
    comment_and_request_changes(reviewer)
    take_in_and_answer(author)
    approve(reviewer)
    merge(author)
