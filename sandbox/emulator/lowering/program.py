"""The modules that are lowered together: which function a name means, which functions a kernel reaches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sandbox.emulator.lowering import abi
from sandbox.emulator.lowering.analysis import is_barrier, is_collective
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
        self._waiting: dict[tuple[int, str], bool] = {}
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
        return self.place_address(place)

    def place_address(self, place: Place) -> int:
        order = self.modules[place.module].order[place.function.name]
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

    def may_exit(self, place: Place) -> bool:
        """Whether lanes that call the function may leave the kernel in it."""
        return any(_has(other.function, "exit") for other in self._reached([place]))

    def call_may_exit(self, module: int, instruction: Instruction) -> bool:
        call = instruction.call
        if call is None:
            return False
        if isinstance(call.callee, Register):
            return any(map(self.may_exit, self.targets(module, call)))
        callee = self.function(module, call.callee)
        return callee is not None and self.may_exit(callee)

    def call_may_wait(self, module: int, instruction: Instruction) -> bool:
        """Whether a call leads to a barrier, which takes all lanes of a warp at once, or to a collective, to
        which no member can come once others are inside."""
        call = instruction.call
        if call is None:
            return False
        if isinstance(call.callee, Register):
            return any(map(self._may_wait, self.targets(module, call)))
        callee = self.function(module, call.callee)
        return callee is not None and self._may_wait(callee)

    def _may_wait(self, place: Place) -> bool:
        if place.key not in self._waiting:
            self._waiting[place.key] = any(
                isinstance(item, Instruction) and (is_barrier(item) or is_collective(item))
                for other in self._reached([place])
                for item in other.function.body
            )
        return self._waiting[place.key]

    def is_recursive(self, place: Place) -> bool:
        return any(other.key == place.key for other in self._reached(self.callees(place)))

    def unbounded(self, place: Place) -> bool:
        """Whether no number of bytes is surely enough local memory: calls nest, or sizes are computed."""
        return any(
            self.is_recursive(other) or _has(other.function, "alloca") for other in self._reached([place])
        )

    def reached(self, kernels: Sequence[tuple[int, str]]) -> list[Place]:
        """Kernels and the functions that they can call, each once."""
        return self._reached([self.kernel(module, name) for module, name in kernels])

    def _reached(self, start: Sequence[Place]) -> list[Place]:
        found: dict[tuple[int, str], Place] = {}
        open_ends = list(reversed(start))
        while open_ends:
            place = open_ends.pop()
            if place.key not in found:
                found[place.key] = place
                open_ends.extend(self.callees(place))
        return list(found.values())


def _has(function: Function, name: str) -> bool:
    return any(isinstance(item, Instruction) and item.parts[0] == name for item in function.body)


def prototype(function: Function) -> Prototype:
    return Prototype(
        tuple(parameter.size for parameter in function.returns),
        tuple(parameter.size for parameter in function.parameters),
    )
