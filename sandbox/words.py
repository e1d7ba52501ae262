"""Words that several messages share."""

from __future__ import annotations

from collections.abc import Mapping


def named(values: Mapping[str, object]) -> str:
    """ "n = 7, m = 3"; empty where there are none."""
    return ", ".join(f"{name} = {value}" for name, value in values.items())
