"""A language model's endpoint that can be killed, and how a server is told of it."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

from tests.webapp.stack import Browser, Process


def kernel(threads: int) -> str:
    return f"""PLAN: blocks of {threads} threads
```cuda
__global__ void saxpy(int n, float a, const float *x, float *y)
{{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}}

extern "C" void launch(int n, float a, const float *x, float *y)
{{
    if (n > 0)
        saxpy<<<(n + {threads - 1}) / {threads}, {threads}>>>(n, a, x, y);
}}
```
"""


class Endpoint:
    """The scripted chat server in a process of its own, always at the same address."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder, self.environment = folder, environment
        self.port, self.starts = 0, 0
        self.process: Process | None = None

    def start(self, plays: list[dict[str, Any]]) -> str:
        self.starts += 1
        script = self.folder / f"script{self.starts}.json"
        script.write_text(json.dumps(plays))
        arguments = [sys.executable, "-m", "tests.chat_process", str(script), "--port", str(self.port)]
        log = self.folder / f"endpoint{self.starts}.log"
        self.process = Process(arguments, self.environment, log)
        base_url = self.process.wait_for("serving ").split()[-1]
        self.port = int(base_url.rpartition(":")[2].partition("/")[0])
        return base_url

    def kill(self) -> None:
        assert self.process is not None
        self.process.end(signal.SIGKILL)


def set_up(browser: Browser, base_url: str, name: str) -> None:
    browser.post(
        "models",
        {
            "name": name,
            "model": "scripted",
            "base_url": base_url,
            "allow_loopback": True,
            "attempts": 3,
            "backoff_seconds": 0.2,
            "price_prompt": 1.0,
            "price_completion": 4.0,
        },
    )
