"""Where the variables that one PTX module declares lie in shared and local memory."""

from __future__ import annotations

from sandbox.ptx.model import Function, Instruction, Module, PtxError, Variable


class Layout:
    """Where what one PTX module declares lies: shared variables, locals, and which names are globals."""

    def __init__(self, source: Module) -> None:
        self.source = source
        self.globals = {
            variable.name for variable in source.variables if variable.space in ("global", "const")
        }
        self.shared: dict[str, int] = {}
        self.static_bytes: dict[str, int] = {}
        self._place_shared()
        self._depths: dict[str, int] = {}

    def _place_shared(self) -> None:
        """Module-wide shared variables first, then each function's own, then dynamic memory."""
        common = [variable for variable in self.source.variables if variable.space == "shared"]
        offset = self._stack(common, 0)
        devices = [function for function in self.source.functions.values() if not function.entry]
        for function in devices:
            offset = self._stack(_shared(function), offset)
        ends = {
            function.name: self._stack(_shared(function), offset)
            for function in self.source.functions.values()
            if function.entry
        }
        self.dynamic_offset = -(-max([offset, *ends.values()]) // 128) * 128
        for variable in common:
            if variable.external:
                self.shared[variable.name] = self.dynamic_offset
        for function in self.source.functions.values():
            for variable in _shared(function):
                if variable.external:
                    self.shared[variable.name] = self.dynamic_offset
        self.static_bytes = ends

    def _stack(self, variables: list[Variable], offset: int) -> int:
        for variable in variables:
            if not variable.external:
                offset = -(-offset // variable.align) * variable.align
                self.shared[variable.name] = offset
                offset += variable.size
        return offset

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

    def local_bytes(self, function: Function, active: tuple[str, ...] = ()) -> int:
        """Bytes a thread needs, callees included."""
        if function.name in active:
            raise PtxError(f"unsupported: recursion of {function.name}")
        if function.name not in self._depths:
            deepest = 0
            for item in function.body:
                if isinstance(item, Instruction) and item.call is not None:
                    callee = self.source.functions.get(item.call.callee)
                    if callee is not None:
                        deepest = max(deepest, self.local_bytes(callee, (*active, function.name)))
            self._depths[function.name] = self.own_locals(function) + deepest
        return self._depths[function.name]


def _shared(function: Function) -> list[Variable]:
    return [variable for variable in function.variables if variable.space == "shared"]
