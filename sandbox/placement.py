"""Where the task's arrays lie in the device's address range, for every draw the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sandbox.errors import TaskProblem
from sandbox.plan import DEVICE_BASE, GUARD_BYTES, TASK_BYTES
from sandbox.tasks.base import Draw, Parameter
from sandbox.types import Problem


def array_bytes(parameter: Parameter, draw: Draw) -> int:
    return draw.extents[parameter.name] * np.dtype(parameter.dtype).itemsize


def place(parameters: Sequence[Parameter], draws: Sequence[Draw]) -> dict[str, int]:
    """Array name -> device address, with room for its largest draw and guards on both sides.

    Raises TaskProblem when the arrays do not fit the range.
    """
    addresses: dict[str, int] = {}
    cursor = DEVICE_BASE + GUARD_BYTES
    for parameter in parameters:
        if parameter.kind == "array":
            addresses[parameter.name] = cursor
            largest = max(array_bytes(parameter, draw) for draw in draws)
            rounded = -(-largest // GUARD_BYTES) * GUARD_BYTES
            # Guards as wide as the array: an index that runs out of it does not reach the next one.
            cursor += rounded + max(rounded, 2 * GUARD_BYTES)
    if cursor > DEVICE_BASE + TASK_BYTES:
        raise TaskProblem(
            Problem(
                kind="too_large",
                message=f"the arrays need {cursor - DEVICE_BASE:,} bytes; a task may have {TASK_BYTES:,}",
                hint="give smaller sizes in the inputs block",
            )
        )
    return addresses
