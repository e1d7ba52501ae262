"""Where Kernelwright keeps its data: one folder, named by KERNELWRIGHT_HOME."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from sandbox.errors import TaskProblem
from sandbox.types import Problem


def home() -> Path:
    """The data folder; made, for its owner only, when it is not there."""
    configured = os.environ.get("KERNELWRIGHT_HOME")
    folder = Path(configured).expanduser() if configured else Path("~/.local/share/kernelwright").expanduser()
    folder = folder.absolute()
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def require_writable() -> None:
    """Raises TaskProblem, saying what to do, where nothing can be kept in the data folder."""
    try:
        with tempfile.TemporaryFile(dir=cache("lowered")) as file:
            file.write(bytes(1 << 16))
    except OSError as error:
        raise TaskProblem(Problem(kind="no_home", message=explained(error))) from error


def explained(error: Exception) -> str:
    """Why something failed; what to do where it was the data folder that could not be written."""
    named = os.environ.get("KERNELWRIGHT_HOME") or "~/.local/share/kernelwright"
    folder = Path(named).expanduser().absolute()
    if not isinstance(error, OSError):
        return f"{type(error).__name__}: {error}"
    file = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else None
    if file is not None and not (file.is_relative_to(folder) or folder.is_relative_to(file)):
        return f"{file}: {error.strerror}"
    return (
        f"the data folder {folder} cannot be written: {error.strerror or error}. "
        "Make room there, or let KERNELWRIGHT_HOME name a folder that can"
    )


def cache(kind: str) -> Path:
    """Folder of one cache ("compiled", "native", ...). Its entries may be deleted at any time."""
    folder = home() / "cache" / kind
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextlib.contextmanager
def scratch(purpose: str) -> Iterator[Path]:
    """A fresh folder for one jail, gone afterwards.

    Its parent is private to this user; the folder itself is open, because a jail that root starts reads it as
    another user.
    """
    parent = Path(tempfile.mkdtemp(prefix=f"kernelwright-{purpose}-"))
    folder = parent / "work"
    try:
        folder.mkdir()
        folder.chmod(0o755)
        yield folder
    finally:
        shutil.rmtree(parent, ignore_errors=True)


def store(entry: Path, fill: Callable[[Path], None], *, keep: int = 1000) -> Path:
    """Makes the cache folder `entry` with what `fill` puts into it, whole or not at all; returns it.

    Somebody else may be first: then theirs stays. The oldest entries beyond `keep` are dropped.
    """
    making = Path(tempfile.mkdtemp(prefix=".making-", dir=entry.parent))
    try:
        fill(making)
        making.chmod(0o755)
        with contextlib.suppress(OSError):
            making.rename(entry)
    finally:
        shutil.rmtree(making, ignore_errors=True)
    entries = [path for path in entry.parent.iterdir() if not path.name.startswith(".")]
    if len(entries) > keep:
        for old in sorted(entries, key=_age)[: len(entries) - keep]:
            shutil.rmtree(old, ignore_errors=True)
    return entry


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
