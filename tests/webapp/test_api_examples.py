"""The examples of docs/api.md are run as they stand, against a running server."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.webapp.stack import ROOT, Stack

EXAMPLES = re.findall(r"^```sh\n(.*?)^```$", (ROOT / "docs/api.md").read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_examples_do_what_the_page_says(tmp_path: Path) -> None:
    stack = Stack(tmp_path, {})
    browser = stack.start()
    try:
        around = os.environ | {"SERVER": browser.address, "TOKEN": browser.api_token()}
        outputs = []
        for example in EXAMPLES:
            finished = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", example],
                env=around,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert finished.returncode == 0, (example, finished.stdout, finished.stderr)
            outputs.append(finished.stdout)
        assert len(outputs) == 3
        judged, batch, run = outputs
        assert '"candidate":"// your CUDA"' in judged
        assert '"states":' in batch
        assert "event: event" in run
        assert '"type":"run_ended"' in run.replace(" ", "")
        assert run.endswith("// turn 2\n")
    finally:
        stack.end()
