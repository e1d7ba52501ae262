"""The suite in the emulator, once for all tests."""

from __future__ import annotations

from functools import cache

from sandbox.agreement.build import Built, Flags, build
from sandbox.agreement.cases import all_cases
from sandbox.agreement.replays import Outcome, emulate

TARGET = "sm_90"
CASES = all_cases()


@cache
def built(flags: Flags) -> Built:
    return build(flags, TARGET)


@cache
def outcomes(flags: Flags) -> dict[str, Outcome]:
    """By case."""
    return dict(zip((case.name for case in CASES), emulate(built(flags), CASES), strict=True))
