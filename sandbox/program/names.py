"""Kernels' names as people write them."""

from __future__ import annotations

import re

from sandbox import jail
from sandbox.cancellation import Cancellation
from sandbox.errors import JailUnavailable
from sandbox.limits import MIB, Limits

_LIMITS = Limits(
    wall_seconds=10, cpu_seconds=5, memory_bytes=512 * MIB, output_bytes=MIB, file_bytes=MIB, processes=8
)
_MANGLED = re.compile(r"_Z[\w$.]+")


class Demangler:
    """c++filt, in a jail since names come from the program; each is asked for once."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def __call__(self, symbol: str) -> str:
        if not _MANGLED.fullmatch(symbol):
            return "".join(c if c.isprintable() else " " for c in symbol)
        if symbol not in self._known:
            self._known[symbol] = _filtered(symbol)
        return self._known[symbol]


def _filtered(symbol: str) -> str:
    try:
        finished = jail.run(
            ["/usr/bin/c++filt"], limits=_LIMITS, cancel=Cancellation(), stdin=symbol.encode() + b"\n"
        )
    except JailUnavailable:
        return symbol
    said = finished.stdout.decode(errors="replace").strip()
    return said if finished.ok and said else symbol


def shortened(name: str, longest: int = 120) -> str:
    """A name for one line: where it is long, arguments of templates and of the function are left out."""
    if len(name) <= longest:
        return name
    kept, depth = [], 0
    for place, character in enumerate(name):
        # "(anonymous namespace)" is part of the name.
        opens = character in "<(" and not name.startswith("(anonymous", place)
        if opens and depth == 0:
            kept.append("<...>" if character == "<" else "(...)")
        depth += opens
        if depth == 0:
            kept.append(character)
        elif character in ">)" and not name.startswith("->", place - 1):
            depth -= 1
    return "".join(kept)[: 2 * longest]
