"""What the command prints, and with which exit code it ends."""

from __future__ import annotations

import re
import sys
from typing import Any

from pydantic_core import to_json

from sandbox.types import Evaluation, Problem
from sandbox.words import named

GOOD, NOT_GOOD, BAD_INPUT, OWN_FAULT, STOPPED = 0, 1, 2, 3, 130


class ServerFault(Exception):
    """The fault of a server that was asked, not of what it was asked."""


def dump(document: Any) -> None:
    """One JSON document on stdout. Floats that are not finite are strings, as in events: JSON has none."""
    print(to_json(document, indent=1, inf_nan_mode="strings").decode())


def say(text: str) -> None:
    """Progress and logs: stderr, so that stdout stays a result."""
    print(printable(text), file=sys.stderr, flush=True)


def printable(text: str) -> str:
    """Words of candidates and models, on a terminal, must stay words: no escape sequences."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "\ufffd" for letter in text)


def one_line(problem: Problem) -> str:
    """A problem as one clear line: place, what, what to do."""
    place = ":".join(str(part) for part in (problem.file, problem.line, problem.column) if part)
    said = f"{place}: {problem.message}" if place else problem.message
    words = set(re.findall(r"\w+", problem.message))
    if not words.issuperset(problem.choices):
        said += f" ({', '.join(problem.choices)})"
    if problem.hint:
        said += f". {problem.hint[0].upper()}{problem.hint[1:]}"
    return " ".join(said.split())  # a hint may show a block of several lines


def complain(problem: Problem, as_json: bool) -> int:
    """Bad input: the line on stderr, with --json the problem on stdout as well."""
    if as_json:
        dump({"verdict": None, "problem": problem.model_dump(mode="json")})
    say(f"kernelwright: {one_line(problem)}")
    return BAD_INPUT


def exit_code(evaluation: Evaluation) -> int:
    if evaluation.verdict == "passed":
        return GOOD
    return OWN_FAULT if evaluation.verdict == "internal_error" else NOT_GOOD


def summary(evaluation: Evaluation) -> str:
    """An evaluation for a terminal, a few lines."""
    lines = [f"{evaluation.verdict.replace('_', ' ')}: {evaluation.message}"]
    mismatch = evaluation.verification.first_mismatch if evaluation.verification else None
    if mismatch is not None:
        sizes = named(mismatch.sizes)
        inputs = named(mismatch.inputs)
        lines.append(
            f"  first mismatch: {mismatch.place} is {mismatch.got}, expected {mismatch.expected}"
            f" (draw {mismatch.draw}; {sizes}{'; ' + inputs if inputs else ''})"
        )
    if evaluation.metrics is not None:
        lines.append(f"  structural score {evaluation.metrics.structural_score:.1f}")
        lines += [f"  {name:<20} {value:.2f}" for name, value in evaluation.metrics.families.items()]
        lines += [f"  {note}" for note in evaluation.metrics.notes]
    return "\n".join(lines)
