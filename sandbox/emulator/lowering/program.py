"""The modules that are lowered together: which function a name means, which functions a kernel reaches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sandbox.emulator.lowering import abi
from sandbox.ptx.model import Call, Function, Instruction, Module, Prototype, PtxError, Register


@dataclass(frozen=True, slots=True)
class Place:
    """A function and the module it is in."""

    module: int
    function: Function

    @property
    def key(self) -> tuple[int, str]:
        return self.module, self.function.name


class Program:
    def __init__(self, modules: Sequence[Module]) -> None:
        self.modules = modules
        self._callees: dict[tuple[int, str], list[Place]] = {}
        self._variables = [
            {variable.name for variable in module.variables if variable.space in ("global", "const")}
            for module in modules
        ]

    def kernels(self) -> list[tuple[int, str]]:
        """All entries, in the order of the text."""
        return [
            (index, name)
            for index, module in enumerate(self.modules)
            for name in module.functions
            if name in module.entries
        ]

    def kernel(self, module: int, name: str) -> Place:
        if module >= len(self.modules) or name not in self.modules[module].entries:
            raise PtxError(f"kernel {name} is not in module {module}")
        return Place(module, self.modules[module].functions[name])

    def has_variable(self, module: int, name: str) -> bool:
        """Whether the module declares this `.global` or `.const` variable."""
        return name in self._variables[module]

    def function(self, module: int, name: str) -> Place | None:
        """The device function that `name` means in a module: its own, or what another module shows."""
        if name in self.modules[module].functions:
            return Place(module, self.modules[module].functions[name])
        for index, other in enumerate(self.modules):
            if name in other.functions and name not in other.entries and other.functions[name].visible:
                return Place(index, other.functions[name])
        return None

    def address(self, module: int, name: str) -> int | None:
        """The address of a function: the same in whatever is lowered from this text."""
        place = self.function(module, name)
        if place is None:
            order = self.modules[module].order.get(name)
            return None if order is None else abi.FUNCTION_BASE + abi.FUNCTION_BYTES * order
        order = self.modules[place.module].order[name]
        return abi.FUNCTION_BASE + place.module * abi.MODULE_FUNCTION_BYTES + abi.FUNCTION_BYTES * order

    def targets(self, module: int, call: Call) -> list[Place]:
        """What an indirect call may call: the functions listed, or all of its kind whose address is taken."""
        if call.targets:
            listed = (self.function(module, name) for name in call.targets)
            return [place for place in listed if place is not None]
        assert call.prototype is not None
        found: dict[tuple[int, str], Place] = {}
        for index, source in enumerate(self.modules):
            for name in sorted(source.addressed):
                place = self.function(index, name)
                if place is not None and prototype(place.function) == call.prototype:
                    found[place.key] = place
        return list(found.values())

    def callees(self, place: Place) -> list[Place]:
        if place.key not in self._callees:
            self._callees[place.key] = list(self._find_callees(place))
        return self._callees[place.key]

    def _find_callees(self, place: Place) -> Iterator[Place]:
        for item in place.function.body:
            if not isinstance(item, Instruction) or item.call is None:
                continue
            if isinstance(item.call.callee, Register):
                yield from self.targets(place.module, item.call)
                continue
            callee = self.function(place.module, item.call.callee)
            if callee is not None:
                yield callee

    def reached(self, kernels: Sequence[tuple[int, str]]) -> list[Place]:
        """Kernels and the functions that they can call, each once."""
        found: dict[tuple[int, str], Place] = {}
        open_ends = [self.kernel(module, name) for module, name in reversed(kernels)]
        while open_ends:
            place = open_ends.pop()
            if place.key not in found:
                found[place.key] = place
                open_ends.extend(self.callees(place))
        return list(found.values())


def prototype(function: Function) -> Prototype:
    return Prototype(
        tuple(parameter.size for parameter in function.returns),
        tuple(parameter.size for parameter in function.parameters),
    )
