"""Lowering of calls: direct ones, through registers, and of what the CUDA runtime provides to kernels.

A device function is entered by some lanes of a warp and returns when all of them have. What it takes and
gives are blocks of bytes a lane (parameters.py), so lanes of one call may go to different functions, one
after the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sandbox.emulator.lowering.arithmetic import handles
from sandbox.emulator.lowering.builder import Builder, Value
from sandbox.emulator.lowering.parameters import addressed_parameters
from sandbox.emulator.lowering.program import Place, prototype
from sandbox.ptx.model import Call, Immediate, Instruction, Prototype, Register

if TYPE_CHECKING:
    from sandbox.emulator.lowering.function import FunctionLowering


def function_symbol(place: Place) -> str:
    """LLVM's name for a PTX function; quoted, since PTX allows `$`."""
    return f'"kw.{place.module}.{place.function.name}"'


def lower_call(build: FunctionLowering, instruction: Instruction) -> None:
    call = instruction.call
    assert call is not None
    given = _given(build, call)
    if isinstance(call.callee, Register):
        _indirect(build, call, given)
        return
    place = build.program.function(build.module, call.callee)
    if place is None or place.function.entry:
        runtime = _RUNTIME.get(call.callee)
        if runtime is None:
            raise build.unsupported(_undefined(call.callee))
        runtime(build, call, given)
        return
    _require(build, place.function.name, prototype(place.function), given)
    arguments = _arguments(build, call)
    mask = build.effective_mask()
    text = f"call void @{function_symbol(place)}(ptr %w, i32 {mask}, {arguments})"
    if build.guard is None:
        build.emit(text)
        return
    go, on = build.label(), build.label()
    some = build.op(f"icmp ne i32 {mask}, 0")
    build.emit(f"br i1 {some}, label %{go}, label %{on}")
    build.lines.append(f"{go}:")
    build.emit(text)
    build.emit(f"br label %{on}")
    build.lines.append(f"{on}:")


def _undefined(name: str) -> str:
    """What nvcc leaves to a library of the device, in the words of the source."""
    wanted = re.fullmatch(r"(?:__cudaCDP2|cuda)(\w+)", name)
    if wanted is None:
        return f"call of {name}, which nothing here defines"
    if wanted[1].startswith(("GetParameterBuffer", "LaunchDevice")):
        return "a kernel that launches kernels (<<<...>>> in device code): launch them from the host"
    return f"call of cuda{wanted[1]} in a kernel: the CUDA runtime is there for the host alone"


def _given(build: Builder, call: Call) -> Prototype:
    """What the call's own parameters look like."""
    for name in (*call.returns, *call.arguments):
        if name not in build.parameter_blocks:
            callee = "a register" if isinstance(call.callee, Register) else call.callee
            raise build.unsupported(f"call of {callee} with {name}")
    returns, arguments = (
        tuple(build.parameter_blocks[name][1] for name in names) for names in (call.returns, call.arguments)
    )
    return Prototype(returns, arguments)


def _require(build: Builder, name: str, wanted: Prototype, given: Prototype) -> None:
    if (len(wanted.returns), len(wanted.parameters)) != (len(given.returns), len(given.parameters)):
        raise build.unsupported(f"call of {name} with another number of parameters")
    if wanted != given:
        raise build.unsupported(f"call of {name} with parameters of another size")


def _arguments(build: FunctionLowering, call: Call) -> str:
    """What follows the lanes: where the callee's locals start, and the blocks."""
    blocks = [f"ptr {build.parameter_blocks[name][0]}" for name in (*call.returns, *call.arguments)]
    return ", ".join([f"i64 {_depth(build)}", *blocks])


def _depth(build: FunctionLowering) -> str:
    if build.dynamic:
        build.declare("kw_top", "i64", "i32, ptr")
        return build.op("call i64 @kw_top(i32 %M, ptr %tops)")
    return build.op(f"add i64 %locals, {build.layout.own_locals(build.function)}")


def _indirect(build: FunctionLowering, call: Call, given: Prototype) -> None:
    """Lanes may have different targets: each distinct one runs for its lanes."""
    assert isinstance(call.callee, Register)
    places = build.program.targets(build.module, call)
    for place in places:
        _require(build, place.function.name, prototype(place.function), given)
    if call.prototype is not None:
        _require(build, "a function", call.prototype, given)
    targets = build.pass_vector("in0", build.operand(call.callee, "i64"))
    rest, lanes = build.scratch("call.rest", 4), build.scratch("call.lanes", 4)
    build.emit(f"store i32 {build.effective_mask()}, ptr {rest}")
    arguments = _arguments(build, call)
    loop, go, bad, done = (build.label() for _ in range(4))
    labels = [build.label() for _ in places]
    build.declare("kw_call_target", "i64", "ptr, ptr, ptr")
    build.declare("kw_bad_call", "void", "ptr, i32, i32, i64")
    build.emit(f"br label %{loop}")
    build.lines.append(f"{loop}:")
    left = build.op(f"load i32, ptr {rest}")
    none = build.op(f"icmp eq i32 {left}, 0")
    build.emit(f"br i1 {none}, label %{done}, label %{go}")
    build.lines.append(f"{go}:")
    target = build.op(f"call i64 @kw_call_target(ptr {rest}, ptr {targets}, ptr {lanes})")
    mask = build.op(f"load i32, ptr {lanes}")
    build.emit(f"switch i64 {target}, label %{bad} [")
    for place, label in zip(places, labels, strict=True):
        build.emit(f"  i64 {build.program.place_address(place)}, label %{label}")
    build.emit("]")
    for place, label in zip(places, labels, strict=True):
        build.lines.append(f"{label}:")
        build.emit(f"call void @{function_symbol(place)}(ptr %w, i32 {mask}, {arguments})")
        build.emit(f"br label %{loop}")
    build.lines.append(f"{bad}:")
    build.emit(f"call void @kw_bad_call(ptr %w, i32 {build.line}, i32 {mask}, i64 {target})")
    build.emit("unreachable")
    build.lines.append(f"{done}:")


def frame_code(build: FunctionLowering) -> list[str]:
    """The function's local memory: is there room, and what is in it at first."""
    own = build.layout.own_locals(build.function)
    code: list[str] = []
    if not build.function.entry and (own or build.program.is_recursive(build.place)):
        build.declare("kw_frame", "void", "ptr, i32, i32, i64, i64")
        line = next((i.line for block in build.analysis.blocks for i in block.instructions), 0)
        code.append(f"  call void @kw_frame(ptr %w, i32 {line}, i32 %lanes, i64 %locals, i64 {own})")
    for name, size in addressed_parameters(build.function):
        build.declare("kw_parameter_copy", "void", "ptr, i32, i64, i32, ptr")
        place = f"%copy.{len(code)}"
        code.append(f"  {place} = add i64 %locals, {build.local_offsets[name]}")
        pointer = build.parameter_blocks[name][0]
        code.append(
            f"  call void @kw_parameter_copy(ptr %w, i32 %lanes, i64 {place}, i32 {size}, ptr {pointer})"
        )
    if build.dynamic:
        build.declare("kw_start_tops", "void", "ptr, i64")
        code.append("  %tops = alloca [256 x i8], align 64")
        code.append(f"  %tops.start = add i64 %locals, {own}")
        code.append("  call void @kw_start_tops(ptr %tops, i64 %tops.start)")
    return code


# What the CUDA runtime provides -------------------------------------------------------------------------


def _runtime_call(
    helper: str, returns: Sequence[int], parameters: Sequence[int]
) -> Callable[[FunctionLowering, Call, Prototype], None]:
    """A call of `void helper(warp, line, mask, return blocks..., argument blocks...)`."""

    def lower(build: FunctionLowering, call: Call, given: Prototype) -> None:
        wanted = Prototype(tuple(returns), tuple(parameters))
        if not given.returns:  # nobody wants the result
            given = Prototype(wanted.returns, given.parameters)
        assert isinstance(call.callee, str)
        _require(build, call.callee, wanted, given)
        blocks = [build.parameter_blocks[name][0] for name in (*call.returns, *call.arguments)]
        blocks = ["null"] * (len(wanted.returns) - len(call.returns)) + blocks
        build.declare(helper, "void", ", ".join(["ptr, i32, i32"] + ["ptr"] * len(blocks)))
        mask = build.effective_mask()
        build.emit(
            f"call void @{helper}(ptr %w, i32 {build.line}, i32 {mask}, "
            + ", ".join(f"ptr {block}" for block in blocks)
            + ")"
        )

    return lower


_RUNTIME = {
    "vprintf": _runtime_call("kw_vprintf", [4], [8, 8]),
    "malloc": _runtime_call("kw_malloc", [8], [8]),
    "free": _runtime_call("kw_free", [], [8]),
    "__assertfail": _runtime_call("kw_assert", [], [8, 8, 4, 8, 8]),
}


# Local memory of a size known when it runs --------------------------------------------------------------

DYNAMIC_STACK = ("alloca", "stacksave", "stackrestore")


@handles("alloca")
def allocate(build: Builder, instruction: Instruction) -> None:
    """alloca.type address, size{, alignment}: `%tops` is where each lane's free local memory starts."""
    target, size, *rest = instruction.operands
    align = rest[0].value if rest and isinstance(rest[0], Immediate) else 8
    sizes = build.pass_vector("in0", build.operand(size, "i64"))
    out, mask = build.buffer("out0"), build.effective_mask()
    build.declare("kw_alloca", "void", "ptr, i32, i32, ptr, ptr, i64, ptr")
    build.emit(
        f"call void @kw_alloca(ptr %w, i32 {build.line}, i32 {mask}, ptr %tops, ptr {sizes}, "
        f"i64 {align}, ptr {out})"
    )
    _write_address(build, instruction, target, build.op(f"load <32 x i64>, ptr {out}, align 64"))


@handles("stacksave")
def save_stack(build: Builder, instruction: Instruction) -> None:
    _write_address(
        build, instruction, instruction.operands[0], build.op("load <32 x i64>, ptr %tops, align 64")
    )


def _write_address(build: Builder, instruction: Instruction, target: object, text: str) -> None:
    value = Value(text, "i64")
    if instruction.parts[-1].endswith("32"):
        value = build.convert("trunc", value, "i32")
    assert isinstance(target, Register)
    build.write(target, value)


@handles("stackrestore")
def restore_stack(build: Builder, instruction: Instruction) -> None:
    kind = "i32" if instruction.parts[-1].endswith("32") else "i64"
    value = build.splat(build.convert("zext", build.operand(instruction.operands[0], kind), "i64"))
    old = build.op("load <32 x i64>, ptr %tops, align 64")
    lanes = build.op(f"bitcast i32 {build.effective_mask()} to <32 x i1>")
    new = build.op(f"select <32 x i1> {lanes}, <32 x i64> {value.text}, <32 x i64> {old}")
    build.emit(f"store <32 x i64> {new}, ptr %tops, align 64")
