"""What is wrong with a kernel, at its line: as SARIF 2.1.0 for code scanning, as annotations for GitHub."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Literal
from urllib.parse import quote

from sandbox.types import Evaluation

Level = Literal["error", "warning", "note"]
_LINE = re.compile(r"\bline (\d+)\b")

#: Each kind of finding, in words. Verdicts are the judge's; the rest is ours.
RULES = {
    "compile_error": "nvcc does not take the candidate",
    "compile_warning": "nvcc warns",
    "launch_error": "The candidate's host code or a launch fails",
    "wrong_result": "The candidate's output differs from the reference's",
    "runtime_error": "A kernel accesses what it may not, races, or never meets at a barrier",
    "timeout": "The candidate takes too long",
    "unsupported": "The candidate does something that cannot be judged here",
    "rule_violation": "The candidate breaks a rule of judging",
    "degenerate_task": "The task cannot tell right from wrong",
    "internal_error": "Kernelwright's own fault",
    "bad_task": "The task cannot be judged",
    "score_floor": "The structural score is below the floor",
    "score_regression": "The structural score is below the baseline",
    "metrics": "What the structural score is made of",
}


@dataclass(frozen=True)
class Finding:
    rule: str
    level: Level
    message: str
    file: str  # from the project's folder, with slashes
    line: int | None = None
    column: int | None = None


def findings_of(evaluation: Evaluation, file: str) -> Iterator[Finding]:
    """What a judgement says of a candidate, most important first."""
    diagnostics = evaluation.compile.diagnostics if evaluation.compile else []
    errors = [it for it in diagnostics if it.severity == "error"]
    if evaluation.verdict == "compile_error" and errors:
        for error in errors:
            yield Finding("compile_error", "error", error.message, file, error.line, error.column)
    elif evaluation.verdict != "passed":
        yield Finding(evaluation.verdict, "error", evaluation.message, file, line_in(evaluation.message))
    for warning in diagnostics:
        if warning.severity == "warning":
            yield Finding("compile_warning", "warning", warning.message, file, warning.line, warning.column)
    if evaluation.metrics is not None:
        for note in evaluation.metrics.notes:
            if (line := line_in(note)) is not None:
                yield Finding("metrics", "note", note, file, line)


def line_in(text: str) -> int | None:
    """The first line that a sentence of the judge names."""
    found = _LINE.search(text)
    return int(found[1]) if found and int(found[1]) > 0 else None


def sarif(findings: Sequence[Finding], *, done: bool) -> dict[str, Any]:
    """A SARIF log; `done`: whether every kernel could be judged."""
    rules = sorted({finding.rule for finding in findings})
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "kernelwright",
                        "version": version("kernelwright"),
                        "rules": [{"id": rule, "shortDescription": {"text": RULES[rule]}} for rule in rules],
                    }
                },
                "invocations": [{"executionSuccessful": done}],
                "columnKind": "unicodeCodePoints",
                "results": [_result(finding, rules.index(finding.rule)) for finding in findings],
            }
        ],
    }


def _result(finding: Finding, rule_index: int) -> dict[str, Any]:
    place: dict[str, Any] = {
        "artifactLocation": {"uri": quote(finding.file, safe="/"), "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": finding.line or 1},
    }
    if finding.column:
        place["region"]["startColumn"] = finding.column
    # Code scanning follows a finding over commits by this: not by its line, nor by numbers that change.
    same = re.sub(r"[\d.]+", "#", f"{finding.rule}\n{finding.file}\n{finding.message}")
    return {
        "ruleId": finding.rule,
        "ruleIndex": rule_index,
        "level": finding.level,
        "message": {"text": finding.message},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {"kernelwright/v1": hashlib.sha256(same.encode()).hexdigest()[:32]},
    }


def annotation(finding: Finding) -> str:
    """A workflow command of GitHub; a line of it, whatever the message holds."""
    kind = "notice" if finding.level == "note" else finding.level
    place = {"file": finding.file, "line": finding.line or 1, "col": finding.column}
    pairs = {**{name: it for name, it in place.items() if it}, "title": RULES[finding.rule]}
    said = ",".join(f"{name}={_escaped(str(it), ':,')}" for name, it in pairs.items())
    return f"::{kind} {said}::{_escaped(finding.message, '')}"


def _escaped(text: str, also: str) -> str:
    for letter in "%\r\n" + also:
        text = text.replace(letter, f"%{ord(letter):02X}")
    return text
