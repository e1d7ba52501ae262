"""Where Kernelwright keeps its data: one folder, named by KERNELWRIGHT_HOME."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def home() -> Path:
    """The data folder; made, for its owner only, when it is not there."""
    configured = os.environ.get("KERNELWRIGHT_HOME")
    folder = Path(configured).expanduser() if configured else Path("~/.local/share/kernelwright").expanduser()
    folder = folder.absolute()
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def cache(kind: str) -> Path:
    """Folder of one cache ("compiled", "native", ...). Its entries may be deleted at any time."""
    folder = home() / "cache" / kind
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
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
