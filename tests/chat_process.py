"""The scripted chat server as a process of its own, so that it can be killed and started again.

python -m tests.chat_process SCRIPT.json [--port N]

The script is a list of plays, one a request: `{"says": TEXT}` or `{"calls": [[NAME, ARGUMENTS], ...]}`. Of a
text, `"pause"` is seconds between pieces, `"size"` their characters, and `"stalls": true` says nothing more
after it. A request after the last play is told so with a 500.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tests.chat_server import Handler, Play, calls, delta, serving


def streams(text: str, *, pause: float = 0.0, size: int = 7, stalls: bool = False) -> Play:
    """A streamed answer at a steady pace, `size` characters a piece."""

    def play(handler: Handler, body: dict[str, Any]) -> None:
        handler.begin_stream()
        began = time.monotonic()
        for number, start in enumerate(range(0, len(text), size)):
            handler.event(delta(content=text[start : start + size]))
            time.sleep(max(0.0, began + (number + 1) * pause - time.monotonic()))
        if stalls:
            time.sleep(600)
        handler.event(delta("stop"))
        handler.event({"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": len(text) // 4}})
        handler.event("[DONE]")
        handler.end_stream()

    return play


def plays_of(script: Path) -> list[Play]:
    plays: list[Play] = []
    for play in json.loads(script.read_text()):
        if "calls" in play:
            plays.append(calls(*((name, arguments) for name, arguments in play["calls"])))
        else:
            text = play.pop("says")
            plays.append(streams(text, **play))
    return plays


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("script", type=Path)
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    with serving(plays_of(options.script), port=options.port) as server:
        print(f"serving {server.base_url}", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    sys.exit(main())
