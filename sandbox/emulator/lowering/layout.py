"""Where variables lie that PTX declares by name: shared and local ones."""

from __future__ import annotations

from collections.abc import Sequence

from sandbox.emulator.lowering.parameters import addressed_parameters
from sandbox.emulator.lowering.program import Place, Program
from sandbox.ptx.model import Function, Instruction, Symbol, Variable

DYNAMIC_LOCALS = 1 << 14  # bytes a thread may use on top of what is known beforehand
RESERVED_SHARED = 1024  # bytes of a block that are the system's, at the start of its shared memory
RESERVED_NAMES = "%reserved_smem_offset_"


class Layout:
    """Of all that is lowered together. Device functions serve several kernels: their shared variables lie at
    one place for all of them, behind the modules' own and before the kernels'."""

    def __init__(self, program: Program, places: Sequence[Place]) -> None:
        self.program = program
        self.static_bytes: dict[tuple[int, str], int] = {}  # of kernels
        self._shared: dict[tuple[int, str], int] = {}
        self._depths: dict[tuple[int, str], int] = {}
        # Only where code asks for it, as cooperative groups do for tiles of several warps.
        self.reserved_shared = RESERVED_SHARED if any(map(_uses_reserved, places)) else 0
        self._place_shared(places)

    def _place_shared(self, places: Sequence[Place]) -> None:
        modules = sorted({place.module for place in places})
        common = {
            index: [v for v in self.program.modules[index].variables if v.space == "shared"]
            for index in modules
        }
        offset = self.reserved_shared
        for index, variables in common.items():
            offset = self._stack(index, variables, offset)
        for place in places:
            if not place.function.entry:
                offset = self._stack(place.module, _shared(place.function), offset)
        for place in places:
            if place.function.entry:
                end = self._stack(place.module, _shared(place.function), offset)
                self.static_bytes[place.key] = end - self.reserved_shared
        longest = max([offset - self.reserved_shared, *self.static_bytes.values()])
        self.dynamic_offset = self.reserved_shared - (-longest // 128) * 128
        for index, variables in common.items():
            self._dynamic(index, variables)
        for place in places:
            self._dynamic(place.module, _shared(place.function))

    def _stack(self, module: int, variables: Sequence[Variable], offset: int) -> int:
        for variable in variables:
            if not variable.external:
                offset = -(-offset // variable.align) * variable.align
                self._shared[module, variable.name] = offset
                offset += variable.size
        return offset

    def _dynamic(self, module: int, variables: Sequence[Variable]) -> None:
        for variable in variables:
            if variable.external:
                self._shared[module, variable.name] = self.dynamic_offset

    def shared(self, module: int, name: str) -> int | None:
        return self._shared.get((module, name))

    def local_offsets(self, function: Function) -> dict[str, int]:
        """Where its local variables lie, and copies of its parameters whose address it takes."""
        offsets: dict[str, int] = {}
        place = 0
        for name, size in _locals(function):
            offsets[name] = place
            place += -(-size // 16) * 16
        return offsets

    def own_locals(self, function: Function) -> int:
        """Bytes a thread needs for the function's own local variables, a multiple of 16."""
        return sum(-(-size // 16) * 16 for _, size in _locals(function))

    def local_bytes(self, place: Place) -> int:
        """Bytes a thread of a kernel has."""
        return self._depth(place, frozenset()) + (DYNAMIC_LOCALS if self.program.unbounded(place) else 0)

    def _depth(self, place: Place, active: frozenset[tuple[int, str]]) -> int:
        """Callees included, each but once where they call each other."""
        if place.key in active:
            return 0
        if place.key not in self._depths:
            inside = active | {place.key}
            deepest = max((self._depth(callee, inside) for callee in self.program.callees(place)), default=0)
            depth = self.own_locals(place.function) + deepest
            if self.program.is_recursive(place):
                return depth  # it depends on where the cycle was entered
            self._depths[place.key] = depth
        return self._depths[place.key]


def _uses_reserved(place: Place) -> bool:
    return any(
        isinstance(operand, Symbol) and operand.name.startswith(RESERVED_NAMES)
        for item in place.function.body
        if isinstance(item, Instruction)
        for operand in item.operands
    )


def _locals(function: Function) -> list[tuple[str, int]]:
    variables = [(v.name, v.size) for v in function.variables if v.space == "local"]
    return variables + addressed_parameters(function)


def _shared(function: Function) -> list[Variable]:
    return [variable for variable in function.variables if variable.space == "shared"]
