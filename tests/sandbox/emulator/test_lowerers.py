"""Compiler processes that wait for their one request: used once each, gone with whoever started them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sandbox.cancellation import Cancellation
from sandbox.emulator.lowerers import Lowerer, lowerer, warm
from tests.conftest import all_end

pytestmark = pytest.mark.usefixtures("jail")

ROOT = Path(__file__).resolve().parents[3]
PTX = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry empty()\n{\n  ret;\n}\n"
REQUEST = json.dumps(
    {"modules": [PTX], "kernels": [[0, "empty"]], "mode": "checked", "cpu": "native"}
).encode()


def commands() -> Iterator[tuple[int, str]]:
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield int(process.parent.name), process.read_text(errors="replace")


def test_each_takes_one_request() -> None:
    with lowerer() as first:
        finished, product = first.lower(REQUEST, Cancellation())
    assert finished.ok
    assert product.startswith(b"\x7fELF")
    with lowerer() as second:
        assert second is not first
        finished, product = second.lower(REQUEST.replace(b"ret", b"nonsense"), Cancellation())
    assert finished.returncode == 3
    assert product == b""


def test_many_at_once() -> None:
    def one(_: int) -> bool:
        with lowerer() as compiler:
            return compiler.lower(REQUEST, Cancellation())[0].ok

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(one, range(6)))


def test_one_that_waits_outlives_the_thread_that_wished_for_it() -> None:
    thread = threading.Thread(target=warm)
    thread.start()
    thread.join()
    time.sleep(0.3)
    with lowerer() as compiler:
        assert compiler.lower(REQUEST, Cancellation())[0].ok


def test_waiting_does_not_count_as_working() -> None:
    made = Lowerer()
    time.sleep(1)
    try:
        finished, _ = made.lower(REQUEST, Cancellation())
    finally:
        made.close()
    assert finished.ok
    assert finished.seconds < 10


def test_a_cancelled_request_is_over_at_once() -> None:
    cancel = Cancellation()
    cancel.set()
    with lowerer() as compiler:
        assert compiler.lower(REQUEST, cancel)[0].reason == "cancelled"


def test_one_that_waits_is_gone_with_its_process() -> None:
    script = (
        "import os, time; from sandbox.emulator.lowerers import lowerer, warm\n"
        "from sandbox.cancellation import Cancellation\n"
        f"with lowerer() as one: assert one.lower({REQUEST!r}, Cancellation())[0].ok\n"
        "warm(); time.sleep(0.5); print('ready', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    children = [pid for pid, _ in commands() if _parent(pid) == process.pid]
    assert children
    process.kill()
    process.wait()
    process.stdout.close()
    assert all_end(children)


def _parent(pid: int) -> int:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return 0
