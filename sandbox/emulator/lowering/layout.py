"""Where variables lie that PTX declares by name: shared and local ones."""

from __future__ import annotations

from collections.abc import Sequence

from sandbox.emulator.lowering.program import Place, Program
from sandbox.ptx.model import Function, PtxError, Variable


class Layout:
    """Of all that is lowered together. Device functions serve several kernels: their shared variables lie at
    one place for all of them, behind the modules' own and before the kernels'."""

    def __init__(self, program: Program, places: Sequence[Place]) -> None:
        self.program = program
        self.static_bytes: dict[tuple[int, str], int] = {}  # of kernels
        self._shared: dict[tuple[int, str], int] = {}
        self._depths: dict[tuple[int, str], int] = {}
        self._place_shared(places)

    def _place_shared(self, places: Sequence[Place]) -> None:
        modules = sorted({place.module for place in places})
        common = {
            index: [v for v in self.program.modules[index].variables if v.space == "shared"]
            for index in modules
        }
        offset = 0
        for index, variables in common.items():
            offset = self._stack(index, variables, offset)
        for place in places:
            if not place.function.entry:
                offset = self._stack(place.module, _shared(place.function), offset)
        for place in places:
            if place.function.entry:
                self.static_bytes[place.key] = self._stack(place.module, _shared(place.function), offset)
        self.dynamic_offset = -(-max([offset, *self.static_bytes.values()]) // 128) * 128
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
        offsets: dict[str, int] = {}
        place = 0
        for variable in function.variables:
            if variable.space == "local":
                place = -(-place // 16) * 16
                offsets[variable.name] = place
                place += variable.size
        return offsets

    def own_locals(self, function: Function) -> int:
        """Bytes a thread needs for the function's own local variables, a multiple of 16."""
        total = 0
        for variable in function.variables:
            if variable.space == "local":
                total = -(-total // 16) * 16 + variable.size
        return -(-total // 16) * 16

    def local_bytes(self, place: Place, active: tuple[tuple[int, str], ...] = ()) -> int:
        """Bytes a thread needs, callees included."""
        if place.key in active:
            raise PtxError(f"unsupported: recursion of {place.function.name}")
        if place.key not in self._depths:
            callees = self.program.callees(place)
            deepest = max((self.local_bytes(callee, (*active, place.key)) for callee in callees), default=0)
            self._depths[place.key] = self.own_locals(place.function) + deepest
        return self._depths[place.key]


def _shared(function: Function) -> list[Variable]:
    return [variable for variable in function.variables if variable.space == "shared"]
