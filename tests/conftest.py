"""What tests need of the machine: skip with a sentence, or fail where KERNELWRIGHT_REQUIRE names it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from sandbox import jail as jail_module
from sandbox import toolchain
from sandbox.errors import ToolchainMissing
from sandbox.gpu.client import usable
from sandbox.gpu.devices import NoDevice


def missing(name: str, sentence: str) -> NoReturn:
    """Skip, or fail where KERNELWRIGHT_REQUIRE says that `name` must be there."""
    if name in os.environ.get("KERNELWRIGHT_REQUIRE", "").split(","):
        pytest.fail(sentence)
    pytest.skip(sentence)


def all_end(pids: Iterable[int], seconds: float = 30.0) -> bool:
    """Whether these processes end in that time. What nobody has waited for yet (a zombie) has ended."""
    waiting, deadline = set(pids), time.monotonic() + seconds
    while waiting := {pid for pid in waiting if _runs(pid)}:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _runs(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> None:
    """What a shell starts in its background is deaf to Ctrl-C, and so are the programs of tests."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder of the tests' own, so that nobody's caches or database are touched."""
    folder = tmp_path_factory.mktemp("home")
    before = os.environ.get("KERNELWRIGHT_HOME")
    os.environ["KERNELWRIGHT_HOME"] = str(folder)
    yield folder
    if before is None:
        del os.environ["KERNELWRIGHT_HOME"]
    else:
        os.environ["KERNELWRIGHT_HOME"] = before


@pytest.fixture(scope="session")
def nvcc() -> None:
    try:
        toolchain.find_toolkit()
    except ToolchainMissing as error:
        missing("nvcc", str(error))


@pytest.fixture(scope="session")
def jail(nvcc: None) -> None:
    """Judging needs the jail and the compiler."""
    status = jail_module.status()
    if not status.available:
        missing("jail", f"{status.reason}; {status.how}")


@pytest.fixture(scope="session")
def gpu(jail: None) -> None:
    """A card that candidates can run on."""
    try:
        usable()
    except NoDevice as problem:
        missing("gpu", str(problem))


@pytest.fixture(params=["emulator", "gpu"])
def backend(request: pytest.FixtureRequest) -> str:
    """Where candidates run, each in turn; a GPU only where there is one."""
    if request.param == "gpu":
        request.getfixturevalue("gpu")
    return str(request.param)
