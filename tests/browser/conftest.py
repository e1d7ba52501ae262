"""A real server in a process of its own, and a real Chromium in front of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Page, expect, sync_playwright

from tests.conftest import missing
from tests.webapp.stack import Process

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "test-results"
CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
#: Two busy cores: what takes a second on a free machine may take several here.
PATIENCE_MS = 30_000


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Closed with its file: while Playwright's loop runs, Django refuses its database to other tests."""
    path = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
    if path is None:
        missing("chromium", "Chromium is not installed: apt-get install chromium")
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_ARGUMENTS)
        except Error as error:
            missing("chromium", f"Chromium does not start: {error.message}")
        expect.set_options(timeout=PATIENCE_MS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the server keeps what it has: an empty folder at first."""
    return tmp_path_factory.mktemp("served")


def own_services(home: Path) -> dict[str, str]:
    """The environment of a server that needs nothing but itself: SQLite, the worker in its process."""
    unwanted = ("KERNELWRIGHT_DATABASE_URL", "KERNELWRIGHT_BROKER_URL", "KERNELWRIGHT_CHANNEL_URL")
    environment = {name: value for name, value in os.environ.items() if name not in unwanted}
    return environment | {"KERNELWRIGHT_HOME": str(home), "PYTHONUNBUFFERED": "1"}


@pytest.fixture(scope="module")
def link(jail: None, home: Path) -> Iterator[str]:
    """The one-time link of a fresh server."""
    if not (ROOT / "webapp" / "static" / "ide" / ".vite" / "manifest.json").is_file():
        missing("chromium", "the front end is not built: cd frontend && npm ci && npm run build")
    command = shutil.which("kernelwright", path=str(ROOT / ".venv" / "bin")) or "kernelwright"
    server = Process([command, "serve", "--port", "0"], own_services(home), home / "server.log")
    try:
        yield server.wait_for("/enter/").rpartition(" ")[2]
    finally:
        server.end()


@pytest.fixture(scope="module")
def address(link: str) -> str:
    return link.partition("/enter/")[0]


@pytest.fixture(scope="module")
def signed_in(chromium: Browser, link: str) -> Any:
    """The cookies of somebody who has followed the link: it works once."""
    context = chromium.new_context()
    page = context.new_page()
    page.goto(link)
    expect(page.locator(".app")).to_be_visible()
    state = context.storage_state()
    context.close()
    return {"cookies": state["cookies"], "origins": []}


@pytest.fixture
def context(chromium: Browser, signed_in: Any, address: str) -> Iterator[BrowserContext]:
    context = chromium.new_context(
        storage_state=signed_in,
        base_url=address,
        viewport={"width": 1600, "height": 950},
        color_scheme="dark",
        accept_downloads=True,
    )
    context.set_default_timeout(PATIENCE_MS)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A fresh tab on the empty page. Any fault of the page's own fails the test."""
    faults: list[str] = []
    page = context.new_page()
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.goto("/")
    expect(page.locator(".app")).to_be_visible()
    yield page
    RESULTS.mkdir(exist_ok=True)
    page.screenshot(path=RESULTS / f"{request.node.name}.png")
    assert not faults, faults
