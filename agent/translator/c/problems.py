"""How the translator says that it cannot go on."""

from __future__ import annotations

from typing import Any, NoReturn

from sandbox.errors import TaskProblem
from sandbox.types import Problem


def place(node: Any) -> tuple[int | None, int | None]:
    """Line and column of a pycparser node, as far as it knows them."""
    coord = getattr(node, "coord", None)
    return (getattr(coord, "line", None), getattr(coord, "column", None))


def unsupported(node: Any, message: str, hint: str = "") -> NoReturn:
    """Raises TaskProblem: `message` names the construct and why it cannot be translated."""
    line, column = place(node)
    raise TaskProblem(
        Problem(kind="unsupported_construct", message=message, hint=hint, line=line, column=column)
    )


def line_of(node: Any) -> int:
    """0 where the node does not know."""
    return getattr(getattr(node, "coord", None), "line", 0) or 0
