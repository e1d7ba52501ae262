"""Values and registers of one function while its LLVM IR is written.

A PTX register is a vector of 32 lanes, a predicate one bit a lane in an i32 (or `<32 x i1>` where that is
what an instruction gave); a warp-uniform register is one scalar (i1 for predicates). Within a basic block
values are LLVM's own; registers that cross blocks live in stack slots, and a write changes only the lanes
that run. IR is written as text: much faster than building objects, and LLVM parses it in no time.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from sandbox.emulator.lowering.abi import WARP_SHARED
from sandbox.emulator.lowering.analysis import CARRY, Analysis
from sandbox.emulator.lowering.batches import Member
from sandbox.emulator.lowering.patterns import Pattern
from sandbox.ptx.model import Function, Immediate, Negated, Operand, PtxError, Register, Symbol

INTEGER_OF = {"b8": "i8", "b16": "i16", "b32": "i32", "b64": "i64", "b128": "i128", "pred": "i1"}
BITS = {
    "i1": 1,
    "i8": 8,
    "i16": 16,
    "i32": 32,
    "i64": 64,
    "i128": 128,
    "half": 16,
    "bfloat": 16,
    "float": 32,
    "double": 64,
}
FLOATS = frozenset({"half", "bfloat", "float", "double"})


def spelled(kind: str) -> str:
    """How LLVM's text has an element type. A bfloat16 is its bits: LLVM may keep its own `bfloat` as float32,
    and goes back by an instruction (AVX512-BF16) that turns subnormals into zero."""
    return "i16" if kind == "bfloat" else kind


@dataclass(frozen=True, slots=True)
class Value:
    """An LLVM value: its text, its element type, and whether it is one scalar for the warp.

    Element type "mask" is a predicate as one bit a lane in an i32.
    """

    text: str
    type: str
    scalar: bool = False

    @property
    def full_type(self) -> str:
        if self.type == "mask":
            return "i32"
        return spelled(self.type) if self.scalar else f"<32 x {spelled(self.type)}>"


def element_type(ptx_type: str) -> str:
    """The LLVM type in which a PTX type is computed: "u32" -> "i32", "f32" -> "float"."""
    if ptx_type == "pred":
        return "i1"
    if ptx_type == "bf16":
        return "bfloat"
    kind, digits = ptx_type[0], ptx_type.lstrip("bsuf")
    if kind in "bsu" and digits in ("8", "16", "32", "64", "128"):
        return f"i{digits}"
    if kind == "f" and digits in ("16", "32", "64"):
        return {"16": "half", "32": "float", "64": "double"}[digits]
    raise PtxError(f"unsupported type .{ptx_type}")


def constant_text(immediate: Immediate, kind: str) -> str:
    """An immediate as an LLVM constant of element type `kind`."""
    if kind == "i1":
        return "true" if immediate.value else "false"
    if kind not in FLOATS:
        bits = BITS[kind]
        value = immediate.value & ((1 << bits) - 1)
        return str(value - (1 << bits) if value >> (bits - 1) else value)
    raw = immediate.value
    if immediate.float_bits == 0 and kind == "double":
        raw &= (1 << 64) - 1
    if kind == "double":
        return f"0x{raw if immediate.float_bits != 32 else _widen(raw):016X}"
    if kind == "float":
        if immediate.float_bits == 64:
            raw = _narrow(raw)
        return f"0x{_widen(raw & 0xFFFFFFFF):016X}"
    return f"0xH{raw & 0xFFFF:04X}" if kind == "half" else str(raw & 0xFFFF)


def _widen(bits: int) -> int:
    """The bits of the double that equals this float, NaN payloads kept: LLVM writes float constants so."""
    if bits & 0x7F800000 == 0x7F800000:
        return (bits >> 31) << 63 | 0x7FF << 52 | (bits & 0x7FFFFF) << 29
    return int.from_bytes(struct.pack("<d", struct.unpack("<f", struct.pack("<I", bits))[0]), "little")


def _narrow(bits: int) -> int:
    value = struct.unpack("<d", struct.pack("<Q", bits))[0]
    return int.from_bytes(struct.pack("<f", value), "little")


class ModuleContext:
    """What the functions of all modules share: helper declarations, address slots, sites."""

    def __init__(self, mode: str = "checked", vector_bits: int = 0) -> None:
        self.mode = mode  # "checked", or "plain": without checks and counters
        self.vector_bits = vector_bits  # of the widest registers that code may be written for; 0: any CPU
        self.declarations: dict[str, str] = {}
        self.helpers: dict[str, str] = {}  # functions of the lowering's own, by name
        self.sites: list[str] = []  # one description line each
        self.site_lines: list[str] = []  # "line SITE LINE INSTRUCTIONS FLOP16 FLOP32 FLOP64"
        self.constants: list[str] = []  # definitions of constant tables
        self.address_slots: dict[str, int] = {}  # global variable (qualified by module) -> slot

    def site(self, kind: str, line: int, text: str = "") -> int:
        self.sites.append(f"site {kind} {line} {text}".rstrip())
        return len(self.sites) - 1


class Builder:
    """Emission state of one function. Abstract: `symbol` is the function lowering's."""

    def __init__(self, context: ModuleContext, module: int, function: Function, analysis: Analysis) -> None:
        self.context = context
        self.module = module
        self.function = function
        self.analysis = analysis
        self.registers = {**function.registers, CARRY: "pred"}
        self.lines: list[str] = []
        self.entry: list[str] = []  # allocas and what else must stand in the first LLVM block
        self.counter = 0
        self.labels = 0
        self.line = 0  # source line of the instruction at hand
        self.current: dict[str, dict[tuple[str, bool], str]] = {}  # register -> forms of its value
        self.dirty: set[str] = set()
        self.slots: dict[str, str] = {}
        self.buffers: dict[str, str] = {}
        self.splats: dict[tuple[str, str], str] = {}
        self.mask_of: dict[str, str] = {}  # <32 x i1> -> the same as bits of an i32
        self.mask_vector = ""  # the running lanes as <32 x i1>
        self.members: dict[int, Member] = {}  # loads of this block that are checked together, by id
        self.patterns: dict[tuple[str, str, int], Pattern] = {}  # of addresses (access.py)
        self.guard: Value | None = None  # of the instruction at hand
        self.parameter_blocks: dict[str, tuple[str, int]] = {}  # of functions: LLVM pointer, bytes a lane
        self.kernel_parameters = {parameter.name: parameter.offset for parameter in function.parameters}

    # Text -----------------------------------------------------------------------------------------------

    def emit(self, line: str) -> None:
        self.lines.append("  " + line)

    def fresh(self) -> str:
        self.counter += 1
        return f"%v{self.counter}"

    def op(self, text: str) -> str:
        """Emits an instruction with a result; returns its name."""
        name = self.fresh()
        self.lines.append(f"  {name} = {text}")
        return name

    def label(self) -> str:
        self.labels += 1
        return f"x{self.labels}"

    def offset(self, pointer: str, offset: int) -> str:
        """A pointer `offset` bytes further."""
        return pointer if offset == 0 else self.op(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def unsupported(self, what: str) -> PtxError:
        return PtxError(f"unsupported: {what}", self.line)

    def buffer(self, name: str) -> str:
        """A scratch area of 32 lanes of 8 bytes to pass to helpers."""
        return self.scratch(name, 256)

    def scratch(self, name: str, size: int) -> str:
        if name not in self.buffers:
            self.buffers[name] = f"%buffer.{name}"
            self.entry.append(f"  %buffer.{name} = alloca [{size} x i8], align 64")
        return self.buffers[name]

    def kernel_parameter(self, name: str) -> int:
        if not self.function.entry or name not in self.kernel_parameters:
            raise self.unsupported(f"parameter {name}")
        return self.kernel_parameters[name]

    def buffer_wide(self, name: str) -> str:
        """A scratch area of 32 lanes of 16 bytes."""
        return self.scratch(name, 512)

    def declare(self, name: str, returns: str, arguments: str) -> None:
        self.context.declarations[name] = f"declare {returns} @{name}({arguments}) nounwind"

    # Blocks ---------------------------------------------------------------------------------------------

    def begin_block(self) -> None:
        self.current = {}
        self.dirty = set()
        self.splats = {}
        self.mask_of = {}
        self.mask_vector = ""
        self.patterns = {}

    def running(self) -> str:
        """The running lanes as <32 x i1>."""
        if not self.mask_vector:
            self.mask_vector = self.op("bitcast i32 %M to <32 x i1>")
        return self.mask_vector

    def lanes_of_effect(self) -> str:
        """The lanes for which the instruction at hand has an effect, as <32 x i1>."""
        if self.guard is None:
            return self.running()
        return self.op(f"bitcast i32 {self.effective_mask()} to <32 x i1>")

    def shared(self) -> str:
        """The block's shared memory."""
        return self.op(f"load ptr, ptr {self.offset('%w', WARP_SHARED)}")

    def flush(self) -> None:
        """Writes changed registers that cross blocks to their slots, for the running lanes only."""
        for name in sorted(self.dirty):
            forms = self.current[name]
            slot = self.slot(name)
            if name in self.analysis.uniform:
                (kind, _), text = next(iter(forms.items()))
                self.emit(f"store {spelled(kind)} {text}, ptr {slot}")
            elif self.registers[name] == "pred":
                value = self.as_mask(self.read(name, "i1"))
                old = self.op(f"load i32, ptr {slot}")
                kept = self.op(f"and i32 {old}, %notM")
                new = self.op(f"and i32 {value}, %M")
                self.emit(f"store i32 {self.op(f'or i32 {kept}, {new}')}, ptr {slot}")
            else:
                (kind, _), text = next(iter(forms.items()))
                full = f"<32 x {spelled(kind)}>"
                old = self.op(f"load {full}, ptr {slot}, align 64")
                new = self.op(f"select <32 x i1> {self.running()}, {full} {text}, {full} {old}")
                self.emit(f"store {full} {new}, ptr {slot}, align 64")
        self.dirty = set()

    def slot(self, name: str) -> str:
        if name not in self.slots:
            slot = f"%slot.{len(self.slots)}"
            kind = INTEGER_OF[self.registers[name]]
            if name in self.analysis.uniform:
                self.entry.append(f"  {slot} = alloca {kind}")
            elif kind == "i1":
                self.entry.append(f"  {slot} = alloca i32\n  store i32 0, ptr {slot}")
            else:
                self.entry.append(f"  {slot} = alloca <32 x {kind}>, align 64")
            self.slots[name] = slot
        return self.slots[name]

    # Registers ------------------------------------------------------------------------------------------

    def width(self, name: str) -> str:
        """Integer type of a register: "i1", "i16", ..."""
        try:
            return INTEGER_OF[self.registers[name]]
        except KeyError:
            kind = self.registers.get(name)
            raise self.unsupported(f"register {name} of type {kind}") from None

    def read(self, name: str, kind: str) -> Value:
        """A register as element type `kind` of its own width."""
        scalar = name in self.analysis.uniform
        forms = self.current.get(name)
        if forms is None:
            forms = self.current[name] = {}
            own = self.width(name)
            if own == "i1" and not scalar:
                forms["mask", True] = self.op(f"load i32, ptr {self.slot(name)}")
            elif scalar:
                forms[own, True] = self.op(f"load {own}, ptr {self.slot(name)}")
            else:
                forms[own, False] = self.op(f"load <32 x {own}>, ptr {self.slot(name)}, align 64")
        if (kind, scalar) in forms:
            return Value(forms[kind, scalar], kind, scalar)
        if kind == "i1" and not scalar:
            forms["i1", False] = self.op(f"bitcast i32 {forms['mask', True]} to <32 x i1>")
            return Value(forms["i1", False], "i1")
        (have, _), text = next(iter(forms.items()))
        if have in ("i1", "mask") or BITS[have] != BITS[kind]:
            raise self.unsupported(f"register {name} of {have} used as {kind}")
        full = ("{}" if scalar else "<32 x {}>").format
        forms[kind, scalar] = self.op(f"bitcast {full(spelled(have))} {text} to {full(spelled(kind))}")
        return Value(forms[kind, scalar], kind, scalar)

    def write(self, target: Operand, value: Value) -> None:
        """Gives a register a new value, under the instruction's guard. None drops it."""
        if target is None:
            return
        if not isinstance(target, Register):
            raise self.unsupported(f"destination {target!r}")
        name = target.name
        own = self.width(name)
        if own == "i1":
            self._write_predicate(name, value)
            return
        if BITS[value.type] != BITS[own]:
            raise self.unsupported(f"a {value.type} result in {name} of {own}")
        uniform = name in self.analysis.uniform
        if uniform:
            value = self.one(value)
        elif value.scalar:
            value = self.splat(value)
        if self.guard is not None and (name in self.current or name in self.analysis.crossing):
            old = self.read(name, value.type)
            guard = self.as_lanes(self.guard)
            full = value.full_type
            chosen = self.op(f"select <32 x i1> {guard}, {full} {value.text}, {full} {old.text}")
            value = Value(chosen, value.type)
        self.current[name] = {(value.type, uniform): value.text}
        if name in self.analysis.crossing:
            self.dirty.add(name)

    def _write_predicate(self, name: str, value: Value) -> None:
        uniform = name in self.analysis.uniform
        if uniform:
            self.current[name] = {("i1", True): self.one(value).text}
        else:
            if self.guard is not None and (name in self.current or name in self.analysis.crossing):
                guard = self.as_mask(self.guard)
                old = self.as_mask(self.read(name, "i1"))
                new = self.op(f"and i32 {self.as_mask(value)}, {guard}")
                kept = self.op(f"and i32 {old}, {self.op(f'xor i32 {guard}, -1')}")
                value = Value(self.op(f"or i32 {kept}, {new}"), "mask", True)
            if value.type == "i1" and value.scalar:
                value = Value(self.as_mask(value), "mask", True)
            if value.type == "mask":
                self.current[name] = {("mask", True): value.text}
            else:
                self.current[name] = {("i1", False): value.text}
        if name in self.analysis.crossing:
            self.dirty.add(name)

    # Operands and forms ---------------------------------------------------------------------------------

    def operand(self, operand: Operand, kind: str) -> Value:
        """An operand as element type `kind`; wider registers are truncated (`cvt.s32.s8` reads a %r)."""
        if isinstance(operand, Immediate):
            return Value(constant_text(operand, kind), kind, True)
        if isinstance(operand, Register):
            own = self.width(operand.name)
            if own == "i1" or kind == "i1" or BITS[own] == BITS[kind]:
                return self.read(operand.name, kind)
            if BITS[own] > BITS[kind]:
                lower = self.convert("trunc", self.read(operand.name, own), f"i{BITS[kind]}")
                return self.convert("bitcast", lower, kind)
            raise self.unsupported(f"{operand.name} of {own} read as {kind}")
        if isinstance(operand, Negated) and kind == "i1":
            value = self.read(operand.register.name, "i1")
            if value.scalar:
                return Value(self.op(f"xor i1 {value.text}, true"), "i1", True)
            return Value(self.op(f"xor i32 {self.as_mask(value)}, -1"), "mask", True)
        if isinstance(operand, Symbol):
            value = self.symbol(operand)
            if value.type == kind:
                return value
            if kind in FLOATS or kind == "i1":
                raise self.unsupported(f"{operand.name} read as {kind}")
            return self.convert("trunc" if BITS[value.type] > BITS[kind] else "zext", value, kind)
        raise self.unsupported(f"operand {operand!r} as {kind}")

    def symbol(self, symbol: Symbol) -> Value:
        """The value of a name: special register or address."""
        raise NotImplementedError

    def splat(self, value: Value) -> Value:
        """A scalar in all lanes."""
        if not value.scalar:
            return value
        if value.type == "mask":
            return Value(self.op(f"bitcast i32 {value.text} to <32 x i1>"), "i1")
        if not value.text.startswith("%"):
            return Value(f"splat ({spelled(value.type)} {value.text})", value.type)
        key, kind = (value.type, value.text), spelled(value.type)
        if key not in self.splats:
            one = self.op(f"insertelement <32 x {kind}> poison, {kind} {value.text}, i32 0")
            self.splats[key] = self.op(
                f"shufflevector <32 x {kind}> {one}, <32 x {kind}> poison, <32 x i32> zeroinitializer"
            )
        return Value(self.splats[key], value.type)

    def splat_in_place(self, value: Value) -> str:
        """The text of `splat`, leaving nothing for later: for code that only some paths reach."""
        known, self.splats = self.splats, {}
        text = self.splat(value).text
        self.splats = known
        return text

    def one(self, value: Value) -> Value:
        """The scalar of a value that is the same in all lanes, which lowerings may compute as a vector."""
        if value.type == "mask":
            return Value(self.op(f"trunc i32 {value.text} to i1"), "i1", True)
        if value.scalar:
            return value
        return Value(self.op(f"extractelement {value.full_type} {value.text}, i32 0"), value.type, True)

    def together(self, *values: Value) -> list[Value]:
        """The same values, all scalars or all vectors."""
        if all(value.scalar for value in values):
            return list(values)
        return [self.splat(value) for value in values]

    def vector(self, operand: Operand, kind: str) -> str:
        """An operand as the text of a vector."""
        return self.splat(self.operand(operand, kind)).text

    def as_mask(self, value: Value) -> str:
        """A predicate as one bit a lane."""
        if value.type == "mask":
            return value.text
        if value.scalar:
            if value.text in ("true", "false"):
                return "-1" if value.text == "true" else "0"
            return self.op(f"sext i1 {value.text} to i32")
        if value.text not in self.mask_of:
            self.mask_of[value.text] = self.op(f"bitcast <32 x i1> {value.text} to i32")
        return self.mask_of[value.text]

    def as_lanes(self, value: Value) -> str:
        """A predicate as <32 x i1>."""
        if value.type == "mask":
            return self.op(f"bitcast i32 {value.text} to <32 x i1>")
        return self.splat(value).text

    def convert(self, how: str, value: Value, kind: str) -> Value:
        """trunc, zext, sext, bitcast, fpext, ... to another element type."""
        if value.type == kind:
            return value
        if value.type == "bfloat" and how == "fpext":
            value = self._single(value)
            return self.convert(how, value, kind)
        if value.scalar and not value.text.startswith("%"):
            value = self._folded(how, value, kind) or self.splat(value)
            if value.type == kind:
                return value
        full = spelled(kind) if value.scalar else f"<32 x {spelled(kind)}>"
        return Value(self.op(f"{how} {value.full_type} {value.text} to {full}"), kind, value.scalar)

    def _single(self, value: Value) -> Value:
        """A bfloat16 as float32, of which it is the upper half."""
        low = self.convert("zext", Value(self.splat(value).text, "i16"), "i32")
        return self.convert(
            "bitcast", Value(self.op(f"shl {low.full_type} {low.text}, splat (i32 16)"), "i32"), "float"
        )

    def _folded(self, how: str, value: Value, kind: str) -> Value | None:
        if how in ("trunc", "zext", "sext") and value.type not in FLOATS:
            number = int(value.text)
            if how == "zext":
                number &= (1 << BITS[value.type]) - 1
            return Value(constant_text(Immediate(number), kind), kind, True)
        return None

    def effective_mask(self) -> str:
        """The lanes for which the instruction at hand has an effect: running, and its guard holds."""
        if self.guard is None:
            return "%M"
        return self.op(f"and i32 %M, {self.as_mask(self.guard)}")

    def pass_vector(self, buffer: str, value: Value) -> str:
        """Stores a vector where a helper can read it; returns the pointer."""
        place = self.buffer(buffer)
        value = self.splat(value)
        self.emit(f"store {value.full_type} {value.text}, ptr {place}, align 64")
        return place

    def helper(self, name: str, inputs: list[Value], result: str) -> Value:
        """Calls `void name(in0, in1, ..., out)`, all pointers to 32 lanes."""
        places = [self.pass_vector(f"in{index}", value) for index, value in enumerate(inputs)]
        out = self.buffer("out0")
        self.declare(name, "void", ", ".join(["ptr"] * (len(places) + 1)))
        self.emit(f"call void @{name}({', '.join(f'ptr {place}' for place in [*places, out])})")
        return Value(self.op(f"load <32 x {spelled(result)}>, ptr {out}, align 64"), result)
