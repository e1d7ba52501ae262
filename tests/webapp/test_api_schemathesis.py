"""Schemathesis against the whole API of a running server, links between operations included: no 5xx, nothing
that the OpenAPI document does not say.

Bounded here; docs/api.md says how to let it run for longer, docs/measurements/api.md what came of that.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.webapp.stack import ROOT, Stack

#: The same requests each time in the suite; others where it runs for longer.
SEED = os.environ.get("KERNELWRIGHT_SCHEMATHESIS_SEED", "1")
SECONDS = int(os.environ.get("KERNELWRIGHT_SCHEMATHESIS_SECONDS", "20"))
UNLIMITED = {"KERNELWRIGHT_API_READS_PER_MINUTE": "1000000", "KERNELWRIGHT_API_WRITES_PER_MINUTE": "1000000"}
COMMAND = [sys.executable, "-m", "schemathesis.cli", "--config-file", "tests/webapp/schemathesis.toml", "run"]


def test_the_api_is_what_its_document_says(tmp_path: Path) -> None:
    stack = Stack(tmp_path, UNLIMITED)
    browser = stack.start()
    try:
        finished = subprocess.run(
            [
                *COMMAND,
                f"{browser.address}/api/v1/schema",
                "--max-time",
                str(SECONDS),
                "--seed",
                SEED,
                "--no-color",
            ],
            cwd=ROOT,
            env=os.environ | {"SCHEMATHESIS_TOKEN": browser.api_token()},
            capture_output=True,
            text=True,
            timeout=SECONDS + 120,
            check=False,
        )
        if log := os.environ.get("KERNELWRIGHT_SCHEMATHESIS_LOG"):
            Path(log).write_text(finished.stdout)
        if finished.returncode:
            pytest.fail(finished.stdout[-20_000:] + finished.stderr[-2000:], pytrace=False)
        assert "Stateful" in finished.stdout
        server_log = stack.server.log.read_text()
        assert "Traceback" not in server_log, server_log[-5000:]
    finally:
        stack.end()
