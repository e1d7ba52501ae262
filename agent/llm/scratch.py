"""The scratch folder of the tools protocol: a few small text files, in memory.

There is no path that leads out of it, because there is no path: files are names in a table. The judge, the
reference's results and the machine's files are not among them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

MAX_FILES = 16
MAX_BYTES = 1 << 17  # of one file
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}\.(cu|cuh|h|md|txt)")


class Refused(Exception):
    """The file operation does not apply; the message tells the model why, and what would."""


@dataclass
class Scratch:
    files: dict[str, str] = field(default_factory=dict)

    def read(self, name: str, first: int = 1, last: int | None = None) -> str:
        """Lines `first` to `last`, numbered from 1, as `number | line`."""
        lines = self._text(name).split("\n")
        chosen = lines[max(first, 1) - 1 : last]
        return "\n".join(f"{number:4} | {line}" for number, line in enumerate(chosen, max(first, 1)))

    def write(self, name: str, text: str) -> None:
        if not _NAME.fullmatch(name):
            raise Refused(
                f"{name!r} is no file name here: a plain name that ends in .cu, .cuh, .h, .md or .txt"
            )
        if name not in self.files and len(self.files) >= MAX_FILES:
            raise Refused(f"there are {MAX_FILES} files already; use one of {', '.join(sorted(self.files))}")
        if len(text.encode(errors="replace")) > MAX_BYTES:
            raise Refused(f"the text is longer than {MAX_BYTES:,} bytes")
        self.files[name] = text if text.endswith("\n") or not text else text + "\n"

    def edit(self, name: str, old: str, new: str, *, everywhere: bool = False) -> int:
        """Replaces `old`, which must stand exactly once; `everywhere`: at least once. Returns how often."""
        text = self._text(name)
        if not old:
            raise Refused("old is empty: use write_file for a new file")
        if old == new:
            raise Refused("old and new are the same")
        count = text.count(old)
        if count == 0:
            raise Refused(f"conflict: old does not stand in {name}.{_nearest(text, old)}")
        if count > 1 and not everywhere:
            where = ", ".join(str(line) for line in _places(text, old))
            raise Refused(
                f"conflict: old stands {count} times in {name}, at lines {where}; give more of what is "
                "around it, or say everywhere"
            )
        self.write(name, text.replace(old, new))
        return count

    def _text(self, name: str) -> str:
        if name not in self.files:
            names = ", ".join(sorted(self.files)) or "empty"
            raise Refused(f"there is no {name!r} here; the folder holds: {names}")
        return self.files[name]


def _places(text: str, part: str) -> Iterator[int]:
    start = text.find(part)
    while start >= 0:
        yield text.count("\n", 0, start) + 1
        start = text.find(part, start + len(part))


def _nearest(text: str, part: str) -> str:
    """The lines most like the first line that was looked for: a space or a name is often all that differs."""
    first = next((line for line in part.split("\n") if line.strip()), "")
    lines = text.split("\n")
    close = difflib.get_close_matches(first, lines, n=1, cutoff=0.6)
    if not close:
        return " Read the file again."
    number = lines.index(close[0]) + 1
    return f" Most like it is line {number}: {close[0].strip()[:160]}"
