"""Lowering of one PTX function to one LLVM function that runs one warp.

Every basic block runs under a mask `%M` of lanes. While all live lanes stand together, branches jump
directly; otherwise lanes wait in `state.waiting[block]` and the runtime's scheduler picks the lowest block
that has some. Block-wide barriers, and blocks whose shuffles name lanes that have not come yet, park until
they can run.
"""

from __future__ import annotations

from sandbox.emulator.lowering import (
    abi,
    access,
    atomics,
    bits,
    choices,
    conversions,
    floats,
    hints,
    integers,
    memory,
    video,
    video_scalars,
)
from sandbox.emulator.lowering.analysis import (
    TERMINATORS,
    analyse,
    block_has,
    is_apart,
)
from sandbox.emulator.lowering.arithmetic import HANDLERS, checked
from sandbox.emulator.lowering.builder import ModuleContext, Value
from sandbox.emulator.lowering.calls import DYNAMIC_STACK, frame_code, function_symbol, lower_call
from sandbox.emulator.lowering.control import ControlFlow
from sandbox.emulator.lowering.layout import Layout
from sandbox.emulator.lowering.program import Place, Program
from sandbox.emulator.lowering.tensor import add_matrix_cost
from sandbox.emulator.lowering.warp import special_register
from sandbox.ptx.model import Instruction, PtxError, Register, Symbol

# Importing them filled HANDLERS.
_HANDLER_MODULES = (
    *(access, atomics, bits, choices, conversions, floats, hints, integers, memory, video, video_scalars),
)

# What handlers, which are written for instructions that NVIDIA's assembler takes, raise about others.
_NOT_THIS_FORM = (LookupError, ValueError, TypeError, AssertionError, StopIteration)
_PRECISIONS = {"f16": 0, "bf16": 0, "f16x2": 0, "bf16x2": 0, "f32": 1, "f64": 2}
_FLOP = {"add": 1, "sub": 1, "mul": 1, "fma": 2, "mad": 2}


class FunctionLowering(ControlFlow):
    """Writes one function. `layout` places what PTX declares by name; `%locals` is where its locals start."""

    def __init__(self, context: ModuleContext, program: Program, place: Place, layout: Layout) -> None:
        function = place.function
        self.program = program
        self.ending_calls = {
            id(item)
            for item in function.body
            if isinstance(item, Instruction) and program.call_may_exit(place.module, item)
        }
        analysis = analyse(function, self._ends_block, lambda item: program.call_may_wait(place.module, item))
        super().__init__(context, place.module, function, analysis)
        self.place = place
        self.layout = layout
        self.local_offsets = layout.local_offsets(function)
        self.dynamic = any(block_has(block, *DYNAMIC_STACK) for block in analysis.blocks)

    def _ends_block(self, instruction: Instruction) -> bool:
        return id(instruction) in self.ending_calls

    # Names ----------------------------------------------------------------------------------------------

    def symbol(self, symbol: Symbol) -> Value:
        special = special_register(self, symbol.name)
        if special is not None:
            return special
        name, offset = symbol.name, symbol.offset
        if name in self.local_offsets:
            base = self.op(f"add i64 %locals, {self.local_offsets[name] + offset}")
            return Value(base, "i64", True)
        shared = self.layout.shared(self.module, name)
        if shared is not None:
            return Value(str(shared + offset), "i64", True)
        if self.function.entry and name in self.kernel_parameters:
            return Value(str(self.kernel_parameters[name] + offset), "i64", True)
        if self.program.has_variable(self.module, name):
            slot = self.context.address_slots.setdefault(
                f"{self.module} {name}", len(self.context.address_slots)
            )
            place = self.op(f"getelementptr i64, ptr @kw_addresses, i64 {slot}")
            value = self.op(f"load i64, ptr {place}")
            return Value(self.op(f"add i64 {value}, {offset}") if offset else value, "i64", True)
        function = self.program.address(self.module, name)
        if function is not None:
            return Value(str(function + offset), "i64", True)
        raise self.unsupported(f"the address of {name}")

    # The function ---------------------------------------------------------------------------------------

    def lower(self) -> str:
        """The LLVM function's text."""
        self._declare_parameter_blocks()
        body: list[str] = []
        for block in self.analysis.blocks:
            self.lines = []
            self._block(block.index)
            body.append("\n".join(self.lines))
        self.lines = []
        self._shared_blocks()
        body.append("\n".join(self.lines))
        return "\n".join([self._header(), *self.entry, *self._entry_code(), *body, "}"])

    def _declare_parameter_blocks(self) -> None:
        function = self.function
        if not function.entry:
            for index, parameter in enumerate(function.returns):
                self.parameter_blocks[parameter.name] = (f"%return{index}", parameter.size)
            for index, parameter in enumerate(function.parameters):
                self.parameter_blocks[parameter.name] = (f"%argument{index}", parameter.size)
        area = max((parameter.offset + parameter.size for parameter in function.locals.values()), default=0)
        if area:
            self.entry.append(f"  %blocks = alloca [{32 * area} x i8], align 64")
        for index, parameter in enumerate(function.locals.values()):
            pointer = f"%block{index}"
            self.entry.append(f"  {pointer} = getelementptr i8, ptr %blocks, i64 {32 * parameter.offset}")
            self.parameter_blocks[parameter.name] = (pointer, parameter.size)

    def _header(self) -> str:
        function = self.function
        arguments = ["ptr %w"]
        if not function.entry:
            arguments += ["i32 %lanes", "i64 %locals"]
            arguments += [f"ptr %return{index}" for index in range(len(function.returns))]
            arguments += [f"ptr %argument{index}" for index in range(len(function.parameters))]
        linkage = "" if function.entry else "internal "
        return f"define {linkage}void @{function_symbol(self.place)}({', '.join(arguments)}) #0 {{\nentry:"

    def _entry_code(self) -> list[str]:
        count = len(self.analysis.blocks)
        words = abi.STATE_HEADER + 3 * count
        code = [f"  %state = alloca [{words} x i32], align 64"]
        code.append(f"  call void @llvm.memset.p0.i64(ptr %state, i8 0, i64 {4 * words}, i1 false)")
        self.context.declarations["llvm.memset"] = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"
        for word, name in (
            (abi.STATE_TARGET, "target"),
            (abi.STATE_BLOCKS, "blocks"),
            (abi.STATE_LIVE, "own_live"),
            (abi.STATE_IS_KERNEL, "is_kernel"),
            (abi.STATE_LINE, "line"),
            (abi.STATE_LOWEST, "lowest"),
            (abi.STATE_HEADER, "waiting"),
        ):
            code.append(f"  %state.{name} = getelementptr i32, ptr %state, i64 {word}")
        for offset, name in (
            (abi.WARP_COUNTERS, "counters"),
            (abi.WARP_INSTRUCTIONS, "instructions"),
            (abi.WARP_LIVE, "warp_live"),
            (abi.WARP_FUEL, "fuel"),
        ):
            code.append(f"  %{name}.place = getelementptr i8, ptr %w, i64 {offset}")
        code.append("  %counters = load ptr, ptr %counters.place")
        code.append(f"  store i32 {count}, ptr %state.blocks")
        if self.function.entry:
            code.append("  %parameters = load ptr, ptr %w")
            code.append("  %locals = add i64 0, 0")
            code.append("  %lanes = load i32, ptr %warp_live.place")
            code.append("  store i32 1, ptr %state.is_kernel")
            code.append("  %live.place = getelementptr i8, ptr %w, i64 " + str(abi.WARP_LIVE))
        else:
            code.append("  store i32 %lanes, ptr %state.own_live")
            code.append("  %live.place = getelementptr i32, ptr %state, i64 " + str(abi.STATE_LIVE))
        code += frame_code(self)
        code.append("  store i32 %lanes, ptr %state")
        code.append(f"  %in_order.place = getelementptr i8, ptr %w, i64 {abi.WARP_IN_ORDER}")
        code.append("  %in_order = load i32, ptr %in_order.place")
        code.append(f"  %none.waits = and i32 %in_order, {count}")
        code.append("  store i32 %none.waits, ptr %state.lowest")
        code.append("  br label %b0")
        return code

    def _shared_blocks(self) -> None:
        for name, arguments in (("kw_schedule", "ptr, ptr"), ("kw_fuel", "ptr, ptr")):
            self.declare(name, "i32", arguments)
        self.lines += [
            "park:",  # the running lanes wait at state.target
            "  %park.target = load i32, ptr %state.target",
            "  %park.index = zext i32 %park.target to i64",
            "  %park.place = getelementptr i32, ptr %state.waiting, i64 %park.index",
            "  %park.old = load i32, ptr %park.place",
            "  %park.mask = load i32, ptr %state",
            "  %park.new = or i32 %park.old, %park.mask",
            "  store i32 %park.new, ptr %park.place",
            "  br label %schedule",
            "tired:",  # out of fuel at a back edge to state.target
            "  %tired.next = call i32 @kw_fuel(ptr %w, ptr %state)",
            "  br label %dispatch",
            "schedule:",
            "  %schedule.next = call i32 @kw_schedule(ptr %w, ptr %state)",
            "  br label %dispatch",
            "dispatch:",
            "  %next = phi i32 [ %tired.next, %tired ], [ %schedule.next, %schedule ]",
            "  switch i32 %next, label %finished [",
            *(f"    i32 {block.index}, label %b{block.index}" for block in self.analysis.blocks),
            "  ]",
            "finished:",
            "  ret void",
        ]

    # Blocks ---------------------------------------------------------------------------------------------

    def _block(self, index: int) -> None:
        block = self.analysis.blocks[index]
        self.begin_block()
        self.lines.append(f"b{index}:")
        # Each block has its own %M; the names must differ in LLVM.
        mark = len(self.lines)
        self.emit("%M = load i32, ptr %state")
        if block.instructions:
            self.line = block.instructions[0].line
        if block.barrier:
            self._gather_at_barrier(index)
        elif block.collective is not None or block.members:
            self._gather_at_collective(index, block.collective or 0, block.members)
        self.emit("%notM = xor i32 %M, -1")
        self._count_block(index)
        self.members = access.find_batches(self, block)
        ended = False
        for instruction in block.instructions:
            ended = self._instruction(instruction, index)
        if not ended:
            self._leave(index, index + 1)
        for position in range(mark, len(self.lines)):
            line = self.lines[position]
            if "%M" in line or "%notM" in line:
                self.lines[position] = line.replace("%M", f"%M{index}").replace("%notM", f"%notM{index}")

    def _gather_at_barrier(self, index: int) -> None:
        """All live lanes of the warp must stand here before the warp arrives at the barrier."""
        live = self.op("load i32, ptr %warp_live.place")
        here = self.op(f"icmp eq i32 %M, {live}")
        apart = is_apart(self.analysis.blocks[index].instructions[0])
        self._park_unless(here, index, flag=abi.PARKED_APART if apart else 0)

    def _gather_at_collective(self, index: int, constant: int, members: list[Register]) -> None:
        """Lanes that a shuffle or vote names should be here; the others get the chance to come."""
        named = str(constant - (1 << 32) if constant >> 31 else constant)
        for register in members:
            named = self.op(f"or i32 {named}, {self._named_by_any(register)}")
        live = self.op("load i32, ptr %live.place")
        wanted = self.op(f"and i32 {live}, {named}")
        missing = self.op(f"and i32 {wanted}, {self.op('xor i32 %M, -1')}")
        self._park_unless(self.op(f"icmp eq i32 {missing}, 0"), index, flag=1)

    def _named_by_any(self, register: Register) -> str:
        """The lanes that the masks of the running ones name together."""
        value = self.operand(register, "i32")
        if value.scalar:
            return value.text
        self.context.declarations["reduce.or"] = "declare i32 @llvm.vector.reduce.or.v32i32(<32 x i32>)"
        given = self.op(
            f"select <32 x i1> {self.running()}, <32 x i32> {value.text}, <32 x i32> zeroinitializer"
        )
        return self.op(f"call i32 @llvm.vector.reduce.or.v32i32(<32 x i32> {given})")

    def _park_unless(self, condition: str, index: int, flag: int) -> None:
        go, wait = self.label(), self.label()
        self.declare("kw_park", "i32", "ptr, ptr, i32, i32")
        self.emit(f"br i1 {condition}, label %{go}, label %{wait}")
        self.lines.append(f"{wait}:")
        again = self.op(f"call i32 @kw_park(ptr %w, ptr %state, i32 {index}, i32 {2 * self.line + flag})")
        run = self.op(f"icmp ne i32 {again}, 0")
        self.emit(f"br i1 {run}, label %{go}, label %schedule")
        self.lines.append(f"{go}:")

    def _count_block(self, index: int) -> None:
        """Static costs of the unguarded instructions of a block: one site, two counters."""
        if self.context.mode == "plain":
            return
        block = self.analysis.blocks[index]
        costs: dict[int, list[int]] = {}
        for instruction in block.instructions:
            if instruction.guard is None or instruction.parts[0] == "bra":
                _add_cost(costs.setdefault(instruction.line, [0, 0, 0, 0]), instruction)
        if not costs:
            return
        site = self.context.site(abi.SITE_BLOCK, 0)
        for line, cost in sorted(costs.items()):
            self.context.site_lines.append(f"cost {site} {line} {' '.join(map(str, cost))}")
        self._bump(site, 0, "1")
        self._bump(site, 1, self._population("%M"))
        self._add_instructions(str(sum(cost[0] for cost in costs.values())))

    # Instructions ---------------------------------------------------------------------------------------

    def _instruction(self, instruction: Instruction, index: int) -> bool:
        """Lowers one instruction; True when it ended the block."""
        self.line = instruction.line
        name = instruction.parts[0]
        self.guard = None
        if instruction.guard is not None:
            self.guard = self._guard(instruction)
            if name != "bra":
                self._count_guarded(instruction)
        try:
            if name in TERMINATORS:
                self._terminator(instruction, index)
                return True
            if name == "call":
                lower_call(self, instruction)
                if not self._ends_block(instruction):
                    return False
                self._after_exits(index)
                return True
            handler = HANDLERS.get(name)
            if handler is None:
                raise self.unsupported(instruction.opcode)
            handler(self, checked(self, instruction))
        except PtxError as error:
            if instruction.opcode in error.message:
                raise
            raise PtxError(f"{error.message} ({instruction.opcode})", self.line) from error
        except _NOT_THIS_FORM as error:
            raise PtxError(f"unsupported: {instruction.opcode} in this form ({error})", self.line) from error
        finally:
            self.guard = None
        return False

    def _guard(self, instruction: Instruction) -> Value:
        assert instruction.guard is not None
        value = self.read(instruction.guard.name, "i1")
        if not instruction.guard_negated:
            return value
        if value.scalar:
            return Value(self.op(f"xor i1 {value.text}, true"), "i1", True)
        return Value(self.op(f"xor i32 {self.as_mask(value)}, -1"), "mask", True)

    def _count_guarded(self, instruction: Instruction) -> None:
        if self.context.mode == "plain":
            return
        cost = [0, 0, 0, 0]
        _add_cost(cost, instruction)
        site = self.context.site(abi.SITE_GUARDED, 0)
        self.context.site_lines.append(f"cost {site} {instruction.line} {' '.join(map(str, cost))}")
        mask = self.effective_mask()
        some = self.op(f"icmp ne i32 {mask}, 0")
        one = self.op(f"zext i1 {some} to i64")
        self._bump(site, 0, one)
        self._bump(site, 1, self._population(mask))
        self._add_instructions(one)


def _add_cost(cost: list[int], instruction: Instruction) -> None:
    cost[0] += 1
    flop = _FLOP.get(instruction.parts[0])
    precision = _PRECISIONS.get(instruction.parts[-1])
    add_matrix_cost(cost, instruction)
    if flop and precision is not None:
        cost[1 + precision] += flop * (2 if instruction.parts[-1].endswith("x2") else 1)
