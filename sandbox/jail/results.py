"""Reading what a jailed program left behind, and owning the folders it may write to."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

#: A writable folder with more entries than this counts as flooded.
MAX_ENTRIES = 20_000


class NotAResult(Exception):
    """What lies there is not a plain file within the limit; the message says what it is."""


def read_result(path: Path, limit: int, *, within: Path | None = None) -> bytes:
    """The content of a file that a jailed program wrote: at most `limit` bytes, through no symbolic link.

    `within` is the folder that was bound into the jail, when the file lies deeper than directly in it: every
    folder below it is opened without following links as well. Raises FileNotFoundError, NotAResult.
    """
    folder = within if within is not None else path.parent
    *between, name = path.relative_to(folder).parts
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in between:
            deeper = _open_below(opened, part, os.O_DIRECTORY, path)
            os.close(opened)
            opened = deeper
        file = _open_below(opened, name, 0, path)
    finally:
        os.close(opened)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise NotAResult(f"{path.name} is not a regular file")
        if status.st_size > limit:
            raise NotAResult(f"{path.name} has {status.st_size} bytes; the limit is {limit}")
        with os.fdopen(file, "rb", closefd=False) as stream:
            return stream.read(limit)
    finally:
        os.close(file)


def _open_below(folder: int, name: str, flags: int, path: Path) -> int:
    # O_NONBLOCK: opening a FIFO must not wait for somebody to write to it.
    try:
        return os.open(
            name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | flags, dir_fd=folder
        )
    except FileNotFoundError:
        raise
    except OSError as error:
        raise NotAResult(f"{path.name}: {error.strerror}") from None


@contextlib.contextmanager
def lent(folders: Iterable[Path], uid: int | None) -> Iterator[None]:
    """While this lasts, the folders and what is in them belong to `uid`; then to the caller again."""
    folders = list(folders)
    if uid is None or not folders:
        yield
        return
    try:
        for folder in folders:
            _own(folder, uid)
        yield
    finally:
        for folder in folders:
            _own(folder, os.geteuid())


def _own(path: Path, uid: int) -> None:
    os.chown(path, uid, uid, follow_symlinks=False)
    for folder, folders, files in os.walk(path):
        for name in [*folders, *files]:
            os.chown(os.path.join(folder, name), uid, uid, follow_symlinks=False)


def used_bytes(folder: Path) -> int | None:
    """Bytes in all files below `folder`; None when it holds too many entries to be counted."""
    total, seen, waiting = 0, 0, [os.fspath(folder)]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                seen += 1
                if seen > MAX_ENTRIES:
                    return None
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
    return total
