"""What every database takes."""

from __future__ import annotations

from typing import Any


def plain(value: Any) -> Any:
    """JSON data that every database takes: no NUL, no half surrogate pairs, only finite numbers."""
    match value:
        case str():
            return value.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
        case float() if value != value:
            return "NaN"
        case float() if value in (float("inf"), float("-inf")):
            return "Infinity" if value > 0 else "-Infinity"
        case dict():
            return {plain(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case _:
            return value
