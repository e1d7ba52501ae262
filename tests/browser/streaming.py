"""How a browser fares while a model streams: first token, events a second, how responsive the page stays.

python -m tests.browser.streaming [--rate 200] [--seconds 10]

starts a server, a scripted endpoint and Chromium, and prints what docs/measurements/stream.md quotes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect, sync_playwright

from tests.webapp.endpoint import Endpoint, kernel, set_up
from tests.webapp.stack import Browser, Process

ROOT = Path(__file__).resolve().parents[2]
PIECE = 8  # characters

#: Counts in the page itself: frames of the websocket, the first text seen, gaps between frames of the screen.
WATCH = """
(() => {
  const seen = {asked: 0, first: 0, frames: [], deltas: 0, events: 0, gaps: [], long: [], on: false};
  window.__seen = seen;
  const Real = window.WebSocket;
  window.WebSocket = class extends Real {
    constructor(...words) {
      super(...words);
      this.addEventListener('message', (message) => {
        const frame = JSON.parse(message.data);
        if (frame.type === 'delta') { seen.deltas += 1; seen.frames.push(performance.now()); seen.on = true; }
        else if (frame.type === 'event') {
          seen.events += 1;
          if (frame.event.type === 'stage' && frame.event.stage === 'model') seen.asked ||= performance.now();
          if (frame.event.type === 'answered') seen.on = false;
        }
      });
    }
  };
  new MutationObserver(() => {
    const live = document.querySelector('.agent-live');
    if (!seen.first && live && live.textContent) seen.first = performance.now();
  }).observe(document, {subtree: true, childList: true, characterData: true});
  let last = 0;
  const tick = (now) => {
    if (seen.on && last) seen.gaps.push(now - last);
    last = now;
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (seen.on) seen.long.push(entry.duration);
  }).observe({type: 'long-animation-frame'});
})();
"""


@dataclass(frozen=True)
class Seen:
    """Times in milliseconds."""

    first_text: float  # from "asking the model" in the page to its first text on the screen
    websocket_frames_per_second: float
    characters_per_second: float
    animation_frames: int
    gap_median: float
    gap_p95: float
    gap_longest: float
    long_frames: int  # of more than 50 ms, as Chromium counts them
    longest_frame: float


def watched(page: Page, characters: int, patience: float = 90.0) -> Seen:
    """Call it once the run is under way on a page with WATCH in it; returns when the answer is whole."""
    deadline = time.monotonic() + patience
    while not page.evaluate("window.__seen.frames.length > 0 && !window.__seen.on"):
        assert time.monotonic() < deadline, "the model's answer did not come to its end"
        page.wait_for_timeout(200)
    seen: dict[str, Any] = page.evaluate("window.__seen")
    times, gaps = seen["frames"], sorted(seen["gaps"])
    seconds = (times[-1] - times[0]) / 1000
    return Seen(
        first_text=seen["first"] - seen["asked"],
        websocket_frames_per_second=len(times) / seconds,
        characters_per_second=characters / seconds,
        animation_frames=len(gaps),
        gap_median=statistics.median(gaps),
        gap_p95=gaps[int(len(gaps) * 0.95)],
        gap_longest=gaps[-1],
        long_frames=len(seen["long"]),
        longest_frame=max(seen["long"], default=0.0),
    )


def text(rate: float, seconds: float) -> str:
    """An answer of so many pieces, a right kernel at its end."""
    line = "Each thread takes one element; neighbours read neighbouring words, so requests are whole.\n"
    wanted = int(rate * seconds) * PIECE - len(kernel(128))
    return (line * (wanted // len(line) + 1))[:wanted] + "\n" + kernel(128)


def start_run(page: Page, model: str) -> None:
    """Chooses the model and one turn, opens an example, and translates it."""
    page.get_by_role("combobox", name="Agent").select_option(f"llm:{model}")
    page.get_by_label("Turn budget").select_option("1")
    page.locator(".side-pane").get_by_role("button", name="saxpy", exact=False).first.click()
    page.keyboard.press("Control+Enter")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=float, default=200.0, help="pieces a second (default 200)")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long (default 10)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    environment = {k: v for k, v in os.environ.items() if not k.startswith("KERNELWRIGHT_")}
    with tempfile.TemporaryDirectory(prefix="kw-stream-") as folder:
        environment |= {"KERNELWRIGHT_HOME": folder, "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-m", "webapp.cli.serve", "--port", "0"]
        server = Process(command, environment, Path(folder) / "server.log")
        endpoint = Endpoint(Path(folder), environment)
        answer = text(options.rate, options.seconds)
        try:
            link = server.wait_for("/enter/").rpartition(" ")[2]
            base_url = endpoint.start([{"says": answer, "pause": 1 / options.rate, "size": PIECE}])
            browser = Browser(link.partition("/enter/")[0], link)
            set_up(browser, base_url, "streaming")
            with sync_playwright() as playwright:
                path = shutil.which("chromium") or shutil.which("google-chrome")
                switches = ["--no-sandbox", "--disable-gpu"]
                chromium = playwright.chromium.launch(executable_path=path, args=switches)
                context = chromium.new_context(viewport={"width": 1440, "height": 900})
                for it in browser.cookies:
                    context.add_cookies([{"name": it.name, "value": it.value or "", "url": browser.address}])
                page = context.new_page()
                page.add_init_script(WATCH)
                page.goto(browser.address)
                expect(page.locator(".app")).to_be_visible()
                start_run(page, "streaming")
                seen = watched(page, len(answer))
                chromium.close()
        finally:
            endpoint.kill()
            server.end()
    load = os.getloadavg()[0]
    if options.json:
        print(json.dumps({"rate": options.rate, "load": load, **asdict(seen)}))
        return 0
    print(f"{options.rate:g} pieces of {PIECE} characters a second for {options.seconds:g} s;")
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {load:.1f}:")
    for name, value in asdict(seen).items():
        print(f"  {name.replace('_', ' '):<28} {value:8.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
