"""What a run says about the program: findings as they happen, a line at the end, and all of it as data."""

from __future__ import annotations

import contextlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sandbox.program.names import Demangler, shortened

if TYPE_CHECKING:
    from sandbox.emulator.trace import LaunchTrace
    from sandbox.program.profile import Profile
    from sandbox.targets import Target
    from sandbox.types import KernelMetrics

_MAX_FINDINGS = 1000
_MAX_NOTES = 200
_TEXT = 4096

Place = tuple[int, int, int]


class Finding(BaseModel):
    """One thing a check saw. What else the runtime tells is data alone: the message says it."""

    model_config = ConfigDict(frozen=True, extra="allow")

    kind: str = Field(max_length=100)  # "out of bounds", "race", ...
    message: str = Field(max_length=_TEXT)
    severity: str = Field(default="error", max_length=20)  # "error", or "note" for what does not fail a run
    kernel: str = Field(default="", max_length=_TEXT)  # mangled; empty when the host did it
    file: str = Field(default="", max_length=_TEXT)
    line: int | None = None
    block: Place | None = None
    thread: Place | None = None
    address: int | None = None
    space: str = Field(default="", max_length=100)
    count: int = 1  # how often it happened in this launch

    @property
    def is_error(self) -> bool:
        return self.severity != "note"


class Leak(BaseModel):
    """What the runtime says was never freed: an allocation, or all that a kernel's line took from malloc."""

    address: int  # the first one's
    bytes: int
    count: int = Field(default=1, ge=1)
    kernel: str = Field(default="", max_length=_TEXT)
    file: str = Field(default="", max_length=_TEXT)
    line: int | None = None

    def finding(self) -> Finding:
        by = f" by {_plural(self.count, 'malloc')} in a kernel" if self.kernel else ""
        return Finding(
            kind="leak",
            message=f"{self.bytes:,} bytes{f' taken{by}' if by else ''} were never freed",
            **self.model_dump(include={"kernel", "file", "line", "address"}),
            space="global",
        )


def _leaks(told: object) -> Iterator[Leak]:
    """The runtime lives in the program's process: nothing is sure."""
    for item in told if isinstance(told, list) else ():
        with contextlib.suppress(ValidationError):
            yield Leak.model_validate(item)


@dataclass
class Report:
    """Filled by the service's thread. `say` gets every piece of text for the person when it is there."""

    say: Callable[[str], None]
    demangle: Demangler
    profile: Profile | None = None
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unsupported: dict[str, str] = field(default_factory=dict)  # kernel -> why it could not be run
    summary: dict[str, Any] = field(default_factory=dict)  # the runtime's own
    own_faults: list[str] = field(default_factory=list)  # Kernelwright's: the run says nothing of the program
    left_out: int = 0  # findings beyond what is kept
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, finding: Finding) -> None:
        with self._lock:
            if len(self.findings) >= _MAX_FINDINGS:
                self.left_out += 1
                return
            self.findings.append(finding)
        self.say(self.text(finding))

    def add_unsupported(self, kernel: str, why: str) -> None:
        first = kernel not in self.unsupported
        if first and len(self.unsupported) < _MAX_NOTES:
            self.unsupported[kernel] = why
            self.say(f"kernelwright: {shortened(self.demangle(kernel))} cannot be run: {printable(why)}")

    def own_fault(self, why: str) -> None:
        with self._lock:
            if why in self.own_faults or len(self.own_faults) >= _MAX_NOTES:
                return
            self.own_faults.append(why)
        self.say(f"kernelwright: {printable(why)}")

    def add_trace(self, trace: LaunchTrace) -> None:
        if self.profile is not None:
            self.profile.add(trace)

    def kernels(self, target: Target) -> list[KernelMetrics]:
        """What was measured of each kernel; empty unless there is a profile."""
        if self.profile is None:
            return []
        return self.profile.kernels(target, self.summary.get("kernels"), self.demangle)

    def note(self, text: str) -> None:
        if text not in self.notes and len(self.notes) < _MAX_NOTES:
            self.notes.append(text)
            self.say(f"kernelwright: {text}")

    def finish(self, document: bytes) -> None:
        try:
            summary = json.loads(document)
        except ValueError:
            return
        if isinstance(summary, dict):
            self.summary = summary

    def add_leaks(self, *, errors: bool) -> None:
        """Device memory that the runtime says was never freed: all of it as one note, or each an error."""
        listed = self.summary.get("left_allocated")
        left = [*_leaks(listed), *_leaks(self.summary.get("left_in_heap"))]
        if errors:
            for leak in left:
                self.add(leak.finding())
        elif left and not self.errors:  # after a failed launch the program's own frees fail, too
            message = f"{sum(leak.bytes for leak in left):,} bytes were never freed"
            count = sum(leak.count for leak in left)
            self.add(Finding(kind="leak", message=message, severity="note", count=count))

    @property
    def errors(self) -> int:
        """Findings that fail a run; a kernel that could not be run is one, too."""
        return sum(finding.is_error for finding in self.findings) + len(self.unsupported)

    def text(self, finding: Finding) -> str:
        """A finding as a person reads it: what, where in the source, who, and on what."""
        what = "error" if finding.is_error else "note"
        lines = [f"kernelwright: {what}: {printable(finding.kind)}: {printable(finding.message)}"]
        place = printable(finding.file.rsplit("/", 1)[-1]) or "line"
        where = (
            [f"{place}:{finding.line}" if finding.file else f"line {finding.line}"] if finding.line else []
        )
        if finding.kernel:
            where.append(f"in {shortened(self.demangle(finding.kernel))}")
        if finding.block is not None and finding.kernel:
            where.append(f"block {_triple(finding.block)}")
        if finding.thread is not None and finding.kernel:
            where.append(f"thread {_triple(finding.thread)}")
        if where:
            lines.append("    at " + ", ".join(where))
        if finding.address is not None:
            space = f" in {printable(finding.space)} memory" if finding.space else ""
            lines.append(f"    address {finding.address:#x}{space}")
        if finding.count > 1:
            lines.append(f"    {finding.count:,} times")
        return "\n".join(lines)

    def conclusion(self) -> str:
        """One line; empty when there is nothing to tell."""
        kinds = Counter(finding.kind for finding in self.findings if finding.is_error)
        if self.unsupported:
            kinds["unsupported"] = len(self.unsupported)
        notes = sum(not finding.is_error for finding in self.findings)
        parts = [_plural(self.errors, "error")] if self.errors else []
        if len(kinds) > 1:
            parts[0] += f" ({', '.join(f'{kind} {count}' for kind, count in kinds.most_common())})"
        parts += [_plural(notes, "note")] if notes else []
        parts += [f"{self.left_out:,} more were left out"] if self.left_out else []
        return f"kernelwright: {', '.join(parts)}" if parts else ""


def printable(text: str) -> str:
    """What a program's process said, without what could steer a terminal."""
    return "".join(c if c.isprintable() else " " for c in text)


def _triple(place: Place) -> str:
    return f"({place[0]},{place[1]},{place[2]})"


def _plural(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"
