"""What nvcc's parts say, as data: cudafe++ and cicc, gcc, ptxas, the linker and nvcc itself.

Forms (nvcc gives a line and no column, gcc gives both):
    candidate.cu(12): error: identifier "x" is undefined
    candidate.cu(12): warning #177-D: variable "x" was declared but never referenced
    candidate.cu:5:10: fatal error: nothing.h: No such file or directory
    ptxas candidate.ptx, line 31; error   : Unknown symbol 'x'
    ptxas error   : Entry function '_Z1kv' uses too much shared data (0x10000 bytes, 0xc000 max)
    candidate.cu:(.text+0x1d): undefined reference to `cublasSgemm'
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import Literal

from sandbox.types import Diagnostic

SOURCE = "candidate.cu"
Severity = Literal["error", "warning", "note"]

_CUDAFE = re.compile(
    r"^(?P<file>[^\s(]+)\((?P<line>\d+)\): (?:catastrophic |internal )?(?P<severity>error|warning|remark)"
    r"(?: #\d+(?:-D)?)?: (?P<message>.*)$"
)
_GCC = re.compile(
    r"^(?P<file>[^\s:]+):(?P<line>\d+):(?:(?P<column>\d+):)? (?:fatal )?"
    r"(?P<severity>error|warning|note|Error|Warning): "
    r"(?P<message>.*)$"
)
_PTXAS_LINE = re.compile(
    r"^ptxas (?P<file>\S+), line (?P<line>\d+); (?P<severity>error|warning|fatal)\s*: (?P<message>.*)$"
)
_TOOL = re.compile(
    r"^(?P<tool>nvcc|ptxas|nvlink|fatbinary|cudafe\+\+|cicc|gcc|g\+\+|cc1plus|collect2)\s*:?\s*"
    r"(?P<severity>error|warning|fatal(?: error)?)\s*: (?P<message>.*)$"
)
_UNDEFINED = re.compile(r"undefined reference to [`'](?P<symbol>[^']+)'")
_LINKER = re.compile(r"^(?:\S*/)?ld: (?P<message>.*(?:cannot find|multiple definition).*)$")
_REQUIRED = re.compile(r"required symbol [`'](?P<symbol>[^']+)' not defined")
_DURING = re.compile(rf"at line (\d+) of {re.escape(SOURCE)}")
_ENTRY = re.compile(r"[Ee]ntry function '([^']+)'")
_DEVICE_FUNCTION = re.compile(r"\b(cu[A-Z]\w+|cuda[A-Z]\w+|cublas\w+|cudnn\w+|cufft\w+|cusparse\w+)")

#: Given the log after a match and the mark it made, more of what belongs to it.
_LOOK_AHEAD = 30


def parse(log: str, *, source: str, ptx: str) -> list[Diagnostic]:
    """Diagnostics in the order of the log. `ptx` (may be empty) gives ptxas messages a line of the source."""
    lines = log.splitlines()
    found: list[Diagnostic] = []
    for number, text in enumerate(lines):
        diagnostic = _one(text, lines[number + 1 : number + 1 + _LOOK_AHEAD], source, ptx)
        if diagnostic is not None and diagnostic not in found:
            found.append(diagnostic)
    return found


def _one(text: str, after: Sequence[str], source: str, ptx: str) -> Diagnostic | None:
    if match := _CUDAFE.match(text) or _GCC.match(text):
        return _placed(match, after)
    if match := _PTXAS_LINE.match(text):
        line = _source_line(ptx, int(match["line"]))
        return _diagnostic(match["severity"], match["message"], line)
    if match := _REQUIRED.search(text):
        return _diagnostic("error", _missing_launch(source), None)
    if match := _UNDEFINED.search(text):
        return _diagnostic("error", _undefined(match["symbol"]), _line_of(source, match["symbol"]))
    if match := _LINKER.match(text):
        return _diagnostic("error", match["message"], None)
    if match := _TOOL.match(text):
        if match["tool"] == "collect2":
            return None  # says again that the linker failed
        entry = _ENTRY.search(match["message"])
        line = _entry_line(ptx, entry[1]) if entry else None
        return _diagnostic(match["severity"], f"{match['tool']}: {match['message']}", line)
    return None


def _placed(match: re.Match[str], after: Sequence[str]) -> Diagnostic:
    file, line = os.path.basename(match["file"]), int(match["line"])
    column = match.groupdict().get("column")
    message = match["message"]
    if file != SOURCE:
        # An error in a header: the reader needs the line of their own that led there.
        for text in after:
            if during := _DURING.search(text):
                message, file, line, column = (
                    f"{message} (in {file}, line {line})",
                    SOURCE,
                    int(during[1]),
                    None,
                )
                break
            if not text.strip():
                break
    return Diagnostic(
        file=file,
        line=line,
        column=int(column) if column else None,
        severity=_severity(match["severity"]),
        message=message,
    )


def _diagnostic(severity: str, message: str, line: int | None) -> Diagnostic:
    return Diagnostic(file=SOURCE, line=line, column=None, severity=_severity(severity), message=message)


def _severity(word: str) -> Severity:
    word = word.lower()  # the assembler's are capitalised
    if word.startswith(("error", "fatal")):
        return "error"
    return "warning" if word == "warning" else "note"


def _missing_launch(source: str) -> str:
    if re.search(r"\blaunch\s*\(", source):
        return 'there is a launch, but not with C linkage: declare it extern "C" void launch(...)'
    return 'there is no extern "C" void launch(...): the judge calls it with the prototype the task prints'


def _undefined(symbol: str) -> str:
    if _DEVICE_FUNCTION.match(symbol):
        return f"{symbol} is not available: candidates have the CUDA runtime, not its driver API or libraries"
    return f"undefined reference to {symbol}"


def _line_of(source: str, symbol: str) -> int | None:
    name = symbol.split("(")[0].split("::")[-1]
    for number, text in enumerate(source.splitlines(), 1):
        if re.search(rf"\b{re.escape(name)}\s*\(", text):
            return number
    return None


def _source_line(ptx: str, ptx_line: int) -> int | None:
    """The line of the source behind a line of PTX: that of the last `.loc` before it."""
    for text in reversed(ptx.splitlines()[:ptx_line]):
        if match := re.match(r"\s*\.loc\s+\d+\s+(\d+)", text):
            return int(match[1]) or None
        if ".entry" in text or ".func" in text:
            return None
    return None


def _entry_line(ptx: str, symbol: str) -> int | None:
    """The first line of the source that the entry `symbol` has code for."""
    _, _, body = ptx.partition(f".entry {symbol}(")
    match = re.search(r"\.loc\s+\d+\s+(\d+)", body.split(".entry", 1)[0])
    return int(match[1]) or None if match else None


class Lines:
    """Hands on a stream of text in whole lines, cleaned, as they are complete."""

    def __init__(self, clean: Callable[[str], str], on_text: Callable[[str], None]) -> None:
        self._clean = clean
        self._on_text = on_text
        self._rest = ""

    def add(self, text: str) -> None:
        *whole, self._rest = (self._rest + text).split("\n")
        if whole:
            self._on_text(self._clean("\n".join(whole) + "\n"))

    def end(self) -> None:
        if self._rest:
            self._on_text(self._clean(self._rest))
            self._rest = ""
