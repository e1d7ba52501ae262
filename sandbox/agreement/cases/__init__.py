"""Every case of the suite."""

from __future__ import annotations

from dataclasses import replace

from sandbox.agreement.case import Case
from sandbox.agreement.cases import access, arithmetic, atomics, control, matrices, shared, winners

_THEMES = {
    "access": access.cases,
    "shared": shared.cases,
    "control": control.cases,
    "atomics": atomics.cases,
    "arithmetic": arithmetic.cases,
    "matrices": matrices.cases,
    "winners": winners.cases,
}


def all_cases() -> list[Case]:
    return [replace(case, group=theme) for theme, make in _THEMES.items() for case in make()]
