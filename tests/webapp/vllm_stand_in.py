#!/usr/bin/env python
"""Stands in for the program `vllm`, for its supervision only: it serves a scripted API, not a model.

vllm serve MODEL [--lora-modules NAME=PATH ...] --host HOST --port PORT

Takes STAND_IN_SECONDS to be healthy, asks for the key in VLLM_API_KEY, and starts a child of its own, as vLLM
does, which must be gone when it is stopped. STAND_IN_FAILS in the environment ends it before it is healthy.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from http.server import ThreadingHTTPServer
from typing import Any

from tests.chat_server import ChatServer, Handler, says


class Standing(Handler):
    ready_at: float
    names: list[str]

    def do_GET(self) -> None:
        if self.path == "/health":
            ready = time.monotonic() >= self.ready_at
            self.whole(200 if ready else 503, b"")
        elif self.headers.get("Authorization") != f"Bearer {os.environ['VLLM_API_KEY']}":
            self.whole(401, b"{}")
        else:
            self.whole(200, json.dumps({"data": [{"id": name} for name in self.names]}).encode())


def main() -> None:
    words = sys.argv[1:]
    assert words[0] == "serve", words
    print(f"loading {words[1]}", flush=True)
    if "STAND_IN_FAILS" in os.environ:
        sys.exit("out of memory")
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    print(f"engine {child.pid}", flush=True)
    adapters = [word.partition("=")[0] for word in words if "=" in word]
    script = ChatServer([says("ready")] * 100)
    fields: dict[str, Any] = {
        "script": script,
        "ready_at": time.monotonic() + float(os.environ.get("STAND_IN_SECONDS", "0.5")),
        "names": [words[1], *adapters],
    }
    port = int(words[words.index("--port") + 1])
    ThreadingHTTPServer(("127.0.0.1", port), type("Stands", (Standing,), fields)).serve_forever()


if __name__ == "__main__":
    main()
