"""Whether two recordings of one call, made with the device's memory in two places, ask for the same work.

On a GPU a plan is recorded where the driver put the device's range, and once more where the emulator has it.
Host code sees the addresses, so it could tell the two apart and show the emulator, which counts, another
kernel than the GPU, which runs. Everything must agree but pointers, and these by the distance of the ranges.
"""

from __future__ import annotations

from itertools import zip_longest

from sandbox.plan import DEVICE_BASE, DEVICE_BYTES, Launch, LaunchPlan, Operation, Upload, WriteSymbol

_POINTER_BYTES = 8


def first_difference(emulated: LaunchPlan, real: LaunchPlan, base: int) -> str:
    """A clause about the first operation that differs; empty when none does. `base`: of the real range."""
    for index, (one, other) in enumerate(zip_longest(emulated.operations, real.operations)):
        if one is None or other is None:
            return f"{len(emulated.operations)} and {len(real.operations)} operations"
        if not _agree(one, other, base - DEVICE_BASE):
            return f"operation {index} ({one.op})"
    return ""


def _agree(one: Operation, other: Operation, distance: int) -> bool:
    if isinstance(one, Launch) and isinstance(other, Launch):
        same = one.model_copy(update={"parameters": other.parameters}) == other
        return same and _same_bytes(one.parameters, other.parameters, distance)
    if isinstance(one, Upload | WriteSymbol) and isinstance(other, Upload | WriteSymbol):
        same = one.model_copy(update={"data": other.data}) == other
        return same and _same_bytes(one.data, other.data, distance)
    return one == other


def _same_bytes(one: str, other: str, distance: int) -> bool:
    """Hex digits: equal, but for aligned words that point to the same place of both ranges."""
    if one == other or len(one) != len(other):
        return one == other
    a, b = bytes.fromhex(one), bytes.fromhex(other)
    for at in range(0, len(a), _POINTER_BYTES):
        word, moved = a[at : at + _POINTER_BYTES], b[at : at + _POINTER_BYTES]
        if word == moved:
            continue
        pointer = int.from_bytes(word, "little")
        if not DEVICE_BASE <= pointer <= DEVICE_BASE + DEVICE_BYTES:
            return False
        if len(word) < _POINTER_BYTES or int.from_bytes(moved, "little") != pointer + distance:
            return False
    return True
