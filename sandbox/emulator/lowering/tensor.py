"""Matrices, asynchronous copies, textures: importing this module registers their lowerings."""

from __future__ import annotations

from sandbox.emulator.lowering import asynchronous, matrix, texture
from sandbox.ptx.matrix import matrix_kind
from sandbox.ptx.model import Instruction

_HANDLER_MODULES = (asynchronous, matrix, texture)


def add_matrix_cost(cost: list[int], instruction: Instruction) -> None:
    """The FLOP a lane of a matrix product, to [instructions, FLOP16, FLOP32, FLOP64]."""
    if instruction.parts[0] != "mma" and instruction.parts[:2] != ("wmma", "mma"):
        return
    kind = matrix_kind(instruction)
    flop = None if kind is None else kind.flop()
    if flop is not None:
        cost[1 + flop[0]] += flop[1]
