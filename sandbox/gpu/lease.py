"""One process a card: a lock for each, and a mark on those that are out of service.

Both lie in /dev/shm, named by the card's UUID: every user and every data folder of a machine meets there, a
lock ends with its process, and a restart of the machine, which resets the cards, ends the marks too.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from sandbox.cancellation import Cancellation
from sandbox.gpu.devices import Device, NoDevice

_FOLDER = Path("/dev/shm")
_PAUSE = 0.05
HOW_TO_HEAL = "once the card is well again: kernelwright doctor --heal"


@contextlib.contextmanager
def leased(devices: Sequence[Device], cancel: Cancellation, *, folder: Path = _FOLDER) -> Iterator[Device]:
    """The first of these cards that is free and in service, for as long as this lasts; waits for one.

    Raises NoDevice when all are out of service, Cancelled.
    """
    while True:
        cancel.check()
        reasons = {device.uuid: quarantined(device.uuid, folder=folder) for device in devices}
        serving = [device for device in devices if not reasons[device.uuid]]
        if not serving:
            said = "; ".join(f"{device.name} {device.uuid}: {reasons[device.uuid]}" for device in devices)
            raise NoDevice(f"every card is out of service: {said}", HOW_TO_HEAL)
        for device in serving:
            with _locked(folder / f"kernelwright-{device.uuid}.lock") as got:
                if got:
                    yield device
                    return
        time.sleep(_PAUSE)


def quarantine(uuid: str, reason: str, *, folder: Path = _FOLDER) -> None:
    """Takes a card out of service until somebody has looked at it (`heal`), or the machine restarts."""
    mark = folder / f"kernelwright-{uuid}.quarantine"
    with contextlib.suppress(OSError):  # another user's mark says the same
        mark.write_text(f"{' '.join(reason.split())}\n")


def quarantined(uuid: str, *, folder: Path = _FOLDER) -> str:
    """Why the card is out of service; empty when it is not. Only our own marks and root's count."""
    mark = folder / f"kernelwright-{uuid}.quarantine"
    try:
        if mark.stat().st_uid not in (0, os.geteuid()):
            return ""
        return mark.read_text(errors="replace").strip()[:500] or "no reason was given"
    except OSError:
        return ""


def heal(uuid: str, *, folder: Path = _FOLDER) -> None:
    (folder / f"kernelwright-{uuid}.quarantine").unlink(missing_ok=True)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Whether the lock was free. A file that is only readable, another user's, locks as well."""
    file = _open(path)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        os.close(file)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        with contextlib.suppress(FileExistsError):
            return os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
