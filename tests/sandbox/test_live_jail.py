"""The jail in which a person's own program runs: what it sees, what it may change, how its end is told."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.cancellation import Cancellation
from sandbox.jail import Ended, run_live

pytestmark = pytest.mark.usefixtures("jail")

#: Not the virtual environment's link: a checkout below /tmp is not there in the jail.
PYTHON = os.path.realpath(sys.executable)


def run(
    script: str, cwd: Path, *, writable: bool = True, seconds: float | None = 60, memory: int | None = None
) -> tuple[Ended, str]:
    """`script` by a shell; how it ended, and what it said."""
    reader, writer = os.pipe()
    with os.fdopen(reader) as said:
        ended = run_live(
            ["/bin/sh", "-c", script],
            cwd=cwd,
            writable=[cwd] if writable else [],
            stdout=writer,
            stderr=writer,
            env={"PATH": os.environ["PATH"], "MINE": "kept"},
            seconds=seconds,
            memory_bytes=memory,
            cancel=Cancellation(),
        )
        os.close(writer)
        return ended, said.read()


def commands() -> Iterator[str]:
    """Of every process on the machine."""
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield process.read_text(errors="replace")


@pytest.fixture
def outside() -> Iterator[Path]:
    """A folder that is neither the program's own nor hidden from it."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        (Path(name) / "data").write_text("there\n")
        yield Path(name)


def test_it_reads_the_machine_and_writes_only_where_it_is_and_to_its_tmp(
    tmp_path: Path, outside: Path
) -> None:
    script = f"""
        cat {outside}/data
        echo new > {outside}/file || echo refused
        rm {outside}/data || echo refused
        echo mine > result && echo x > /tmp/scratch && cat /tmp/scratch
        echo $MINE $HOME.
    """
    ended, said = run(f"({script}) 2> /dev/null", tmp_path)
    assert ended == Ended(0, "exited")
    assert said.split() == ["there", "refused", "refused", "x", "kept", "."]
    assert (tmp_path / "result").read_text() == "mine\n"
    assert (tmp_path / "result").stat().st_uid == os.geteuid()
    assert not Path("/tmp/scratch").exists()
    assert [file.name for file in outside.iterdir()] == ["data"]


def test_other_temporary_files_sockets_and_devices_are_not_there(tmp_path: Path) -> None:
    other = tmp_path.parent / "other"
    other.mkdir(exist_ok=True)
    _, said = run(f"ls {other} /run 2>&1; ls /dev; ls /sys/class/net", tmp_path)
    assert "No such file" in said
    assert "nvidia" not in said
    assert "kvm" not in said


def test_the_network_is_not_reachable(tmp_path: Path) -> None:
    connect = "import socket; socket.create_connection(('192.0.2.1', 80), 5)"
    _, said = run(f'{PYTHON} -c "{connect}" 2>&1 | tail -1', tmp_path)
    assert "unreachable" in said


def test_the_machines_settings_and_other_processes_are_out_of_reach(tmp_path: Path) -> None:
    before = Path("/proc/sys/kernel/core_pattern").read_text()
    script = f"""
        cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern || echo refused
        kill -0 {os.getpid()} || echo refused
        mount -t tmpfs none /mnt || echo refused
        chown 54321 . || echo refused
    """
    _, said = run(f"({script}) 2> /dev/null", tmp_path)
    assert said.split() == ["refused"] * 4
    assert Path("/proc/sys/kernel/core_pattern").read_text() == before


def capabilities(said: str) -> set[int]:
    """The masks that a process says it has, and could make use of."""
    kinds = ("CapInh:", "CapPrm:", "CapEff:", "CapAmb:")
    return {int(line.split()[1], 16) for line in said.splitlines() if line.startswith(kinds)}


def test_the_program_has_no_capabilities(tmp_path: Path) -> None:
    ended, said = run("cat /proc/self/status", tmp_path)
    assert ended.status == 0
    assert capabilities(said) == {0}


@pytest.mark.skipif(os.geteuid() != 0, reason="what root may use by capability alone, others may not anyway")
def test_roots_program_cannot_read_what_is_closed_to_root(tmp_path: Path, outside: Path) -> None:
    closed = outside / "closed"
    closed.write_text("secret")
    os.chown(closed, 12345, 12345)
    closed.chmod(0o600)
    ended, said = run(f"cat {closed}", tmp_path)
    assert ended.status != 0
    assert "secret" not in said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder that belongs to somebody else")
def test_roots_program_may_write_to_a_folder_of_somebody_else(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, 12345)
    ended, said = run("echo x > file && cat file && cat /proc/self/status", folder)
    assert ended.status == 0
    assert said.startswith("x\n")
    assert capabilities(said) == {1 << 1}  # CAP_DAC_OVERRIDE


@pytest.mark.parametrize(
    ("script", "status"), [("exit 7", 7), ("kill -SEGV $$", 139), ("kill -KILL $$", 137)]
)
def test_the_end_is_told_as_a_shell_does(tmp_path: Path, script: str, status: int) -> None:
    assert run(script, tmp_path)[0] == Ended(status, "exited")


def test_without_a_writable_folder_nothing_is_written(tmp_path: Path) -> None:
    _, said = run("(echo x > file || echo refused) 2> /dev/null", tmp_path, writable=False)
    assert said == "refused\n"


def test_limits_of_time_and_memory_end_it(tmp_path: Path) -> None:
    assert run("sleep 60", tmp_path, seconds=0.3)[0] == Ended(None, "timeout")
    grow = "import time; b = bytearray(400 << 20); b[::4096] = b'x' * len(b[::4096]); time.sleep(9)"
    grow = f'{PYTHON} -c "{grow}"'
    ended, said = run(grow, tmp_path, memory=200 << 20)
    # Its own allocation may fail first.
    assert ended.reason == "memory" or "MemoryError" in said


def test_cancelling_ends_everything_it_started(tmp_path: Path) -> None:
    cancel = Cancellation()
    threading.Timer(0.5, cancel.set).start()
    began = time.monotonic()
    ended = run_live(
        ["/bin/sh", "-c", "(sleep 47) & (trap '' INT TERM; sleep 47)"],
        cwd=tmp_path,
        env=dict(os.environ),
        cancel=cancel,
    )
    assert ended == Ended(None, "cancelled")
    assert time.monotonic() - began < 10
    assert not [line for line in commands() if line.startswith("sleep\x0047")]


def test_stdin_goes_through(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"typed\n")
    os.close(writer)
    out, end = os.pipe()
    run_live(["/bin/cat"], cwd=tmp_path, stdin=reader, stdout=end, env={}, cancel=Cancellation())
    os.close(end)
    os.close(reader)
    with os.fdopen(out) as said:
        assert said.read() == "typed\n"
