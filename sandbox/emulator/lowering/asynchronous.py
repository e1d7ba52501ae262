"""Lowering of asynchronous copies, mbarriers and what a cluster of one block has.

runtime/asynchronous.h says when a copy is done.
"""

from __future__ import annotations

from sandbox.emulator.lowering.abi import SITE_ACCESS
from sandbox.emulator.lowering.arithmetic import handles
from sandbox.emulator.lowering.builder import Builder, Value
from sandbox.emulator.lowering.memory import SPACES, address_value
from sandbox.ptx.model import Immediate, Instruction, Operand, Register

_HINTS = frozenset({"L2::cache_hint", "L2::64B", "L2::128B", "L2::256B"})
_SEMANTICS = frozenset({"release", "relaxed", "acquire", "cta", "cluster"})
_SHARED = frozenset({"shared", "shared::cta", "shared::cluster"})
_REDUCTIONS = ("", "add", "min", "max", "and", "or", "xor")
_NUMBERS = {"u32": 0, "s32": 1, "b32": 0, "u64": 2, "s64": 3, "b64": 2, "f32": 4, "f64": 5, "f16": 6}


def _require(build: Builder, instruction: Instruction, known: frozenset[str] | set[str]) -> None:
    """Parts beyond the first that are not known here make the instruction unsupported."""
    if not set(instruction.parts[1:]) <= known:
        raise build.unsupported(instruction.opcode)


def _site(build: Builder, text: str) -> int:
    return build.context.site(SITE_ACCESS, build.line, text)


def _addresses(build: Builder, operand: Operand, buffer: str) -> str:
    """All 64 bits of each lane's address, as arguments of a helper: pointer and offset."""
    base, offset = address_value(build, operand, "x")
    return f"ptr {build.pass_vector(buffer, base)}, i64 {offset}"


def _numbers(build: Builder, operand: Operand, buffer: str, kind: str = "i32") -> str:
    return f"ptr {build.pass_vector(buffer, build.operand(operand, kind))}"


def _call(build: Builder, helper: str, *arguments: str) -> None:
    build.declare(helper, "void", ", ".join(argument.split()[0] for argument in ("ptr", *arguments)))
    build.emit(f"call void @{helper}({', '.join(('ptr %w', *arguments))})")


def _mask(build: Builder) -> str:
    return f"i32 {build.effective_mask()}"


@handles("cp")
def copy(build: Builder, instruction: Instruction) -> None:
    parts = instruction.parts
    if "bulk" in parts:
        _bulk(build, instruction)
    elif parts[:2] != ("cp", "async"):
        raise build.unsupported(instruction.opcode)
    elif parts[2] in ("commit_group", "wait_group", "wait_all"):
        _group(build, instruction, bulk=False)
    elif parts[2] == "mbarrier":
        _arrive_with_copies(build, instruction)
    else:
        _copy(build, instruction)


def _group(build: Builder, instruction: Instruction, bulk: bool) -> None:
    _require(build, instruction, {"async", "bulk", "commit_group", "wait_group", "wait_all", "read"})
    parts = instruction.parts
    if "commit_group" in parts:
        _call(build, "kw_commit_group", _mask(build), f"i32 {int(bulk)}")
        return
    recent = -1
    if "wait_group" in parts:
        [count] = instruction.operands
        if not isinstance(count, Immediate):
            raise build.unsupported(instruction.opcode)
        recent = count.value
    _call(build, "kw_wait_group", _mask(build), f"i32 {int(bulk)}", f"i32 {recent}")


def _copy(build: Builder, instruction: Instruction) -> None:
    """cp.async.{ca,cg}.shared.global [to], [from], bytes{, source bytes | ignore}{, policy}"""
    _require(build, instruction, {"async", "ca", "cg", "shared", "shared::cta", "global", *_HINTS})
    target, source, size, *rest = instruction.operands
    if not isinstance(size, Immediate) or size.value not in (4, 8, 16):
        raise build.unsupported(instruction.opcode)
    if "L2::cache_hint" in instruction.parts and rest:
        rest.pop()
    read = "ptr null"
    if rest:
        [given] = rest
        if isinstance(given, Register) and build.width(given.name) == "i1":
            ignored = build.as_lanes(build.read(given.name, "i1"))
            amount = build.op(
                f"select <32 x i1> {ignored}, <32 x i32> zeroinitializer, <32 x i32> splat (i32 {size.value})"
            )
            read = f"ptr {build.pass_vector('in2', Value(amount, 'i32'))}"
        elif given != size:
            read = _numbers(build, given, "in2")
    _call(
        build,
        "kw_cp_async",
        f"i32 {_site(build, 'ld.global')}",
        f"i32 {_site(build, 'st.shared')}",
        _mask(build),
        f"i32 {size.value}",
        _addresses(build, target, "in0"),
        _addresses(build, source, "in1"),
        read,
    )


def _arrive_with_copies(build: Builder, instruction: Instruction) -> None:
    """cp.async.mbarrier.arrive{.noinc}{.shared}.b64 [barrier]"""
    _require(build, instruction, {"async", "mbarrier", "arrive", "noinc", "b64", "shared", "shared::cta"})
    _call(
        build,
        "kw_cp_async_arrive",
        *_barrier_arguments(build, instruction, instruction.operands[0], int("noinc" in instruction.parts)),
    )


def _bulk(build: Builder, instruction: Instruction) -> None:
    """cp{.reduce}.async.bulk.to.from.completion [to], [from], bytes{, [barrier]}{, policy}"""
    parts, operands = instruction.parts, instruction.operands
    if "commit_group" in parts or "wait_group" in parts:
        _group(build, instruction, bulk=True)
        return
    if "prefetch" in parts and "tensor" not in parts:
        _require(build, instruction, {"async", "bulk", "prefetch", "L2", "global", "L2::cache_hint"})
        return  # a hint
    reduces = parts[1] == "reduce"
    start = 4 if reduces else 3
    known = {"mbarrier::complete_tx::bytes", "bulk_group", "L2::cache_hint"}
    operation = number = 0
    words = set(parts[start + 2 :])
    if reduces:
        kind, name = parts[-1], next((part for part in parts if part in _REDUCTIONS[1:]), "")
        if kind not in _NUMBERS or not name or (name in ("and", "or", "xor") and kind[0] == "f"):
            raise build.unsupported(instruction.opcode)
        operation, number = _REDUCTIONS.index(name), _NUMBERS[kind]
        words -= {kind, name, "noftz"}
    spaces = parts[start : start + 2]
    if not words <= known or not set(spaces) <= _SHARED | {"global"}:
        raise build.unsupported(instruction.opcode)
    by_barrier = "mbarrier::complete_tx::bytes" in parts
    to, source = (SPACES[space.partition("::")[0]] for space in spaces)
    target, origin, size, *rest = operands
    barrier = "ptr null, i64 0"
    if by_barrier:
        barrier = _addresses(build, rest[0], "in3")
    _call(
        build,
        "kw_cp_async_bulk",
        f"i32 {_site(build, 'ld.global' if source == 'g' else 'ld.shared')}",
        f"i32 {_site(build, 'st.global' if to == 'g' else 'st.shared')}",
        _mask(build),
        f"i32 {ord(to)}",
        f"i32 {ord(source)}",
        f"i32 {int(by_barrier) | operation << 8 | number << 16}",
        _addresses(build, target, "in0"),
        _addresses(build, origin, "in1"),
        _numbers(build, size, "in2"),
        barrier,
    )


# mbarriers ----------------------------------------------------------------------------------------------


def _barrier_arguments(
    build: Builder, instruction: Instruction, address: Operand, *numbers: int
) -> tuple[str, ...]:
    space = "s" if not _SHARED.isdisjoint(instruction.parts) else "x"
    return (
        f"i32 {_site(build, 'atom.relaxed.shared')}",
        _mask(build),
        f"i32 {ord(space)}",
        *(f"i32 {number}" for number in numbers),
        _addresses(build, address, "address"),
    )


@handles("mbarrier")
def barrier(build: Builder, instruction: Instruction) -> None:
    parts = instruction.parts
    operation = parts[1]
    known = {operation, "b64", *_SHARED}
    if operation in ("init", "inval"):
        _require(build, instruction, known)
        address, *counts = instruction.operands
        arguments = _barrier_arguments(build, instruction, address)
        if operation == "init":
            arguments += (_numbers(build, counts[0], "in0"),)
        _call(build, f"kw_mbarrier_{operation}", *arguments)
    elif operation in ("arrive", "arrive_drop"):
        _require(build, instruction, known | _SEMANTICS | {"expect_tx", "noComplete"})
        _arrive(build, instruction)
    elif operation in ("expect_tx", "complete_tx"):
        _require(build, instruction, known | _SEMANTICS)
        address, amount = instruction.operands
        sign = 1 if operation == "expect_tx" else -1
        arguments = _barrier_arguments(build, instruction, address, sign)
        _call(build, "kw_mbarrier_transact", *arguments, _numbers(build, amount, "in0"))
    elif operation in ("test_wait", "try_wait"):
        _require(build, instruction, known | _SEMANTICS | {"parity"})
        _test(build, instruction)
    elif operation == "pending_count":
        _require(build, instruction, known)
        state = build.splat(build.operand(instruction.operands[1], "i64"))
        low = build.op(f"and <32 x i64> {state.text}, splat (i64 {(1 << 20) - 1})")
        build.write(instruction.operands[0], build.convert("trunc", Value(low, "i64"), "i32"))
    else:
        raise build.unsupported(instruction.opcode)


def _arrive(build: Builder, instruction: Instruction) -> None:
    """mbarrier.arrive state, [barrier]{, count} and mbarrier.arrive.expect_tx state, [barrier], bytes"""
    parts = instruction.parts
    state, address, *rest = instruction.operands
    amount = _numbers(build, rest[0], "in0") if rest else "ptr null"
    expects = "expect_tx" in parts
    flags = (parts[1] == "arrive_drop") | ("noComplete" in parts) << 1
    out = build.buffer("out0")
    _call(
        build,
        "kw_mbarrier_arrive",
        *_barrier_arguments(build, instruction, address, flags),
        "ptr null" if expects else amount,
        amount if expects else "ptr null",
        f"ptr {out}",
    )
    if isinstance(state, Register):
        build.write(state, Value(build.op(f"load <32 x i64>, ptr {out}, align 64"), "i64"))


def _test(build: Builder, instruction: Instruction) -> None:
    """mbarrier.{test,try}_wait{.parity} done, [barrier], state or parity{, hint}"""
    done, address, phase, *_ = instruction.operands
    parity = "parity" in instruction.parts
    given = _numbers(build, phase, "in0", "i32" if parity else "i64")
    arguments = (
        *_barrier_arguments(build, instruction, address),
        "ptr null" if parity else given,
        given if parity else "ptr null",
    )
    helper = "kw_mbarrier_test"
    kinds = ["ptr", "i32", "i32", "i32", "ptr", "i64", "ptr", "ptr"]
    build.declare(helper, "i32", ", ".join(kinds))
    result = build.op(f"call i32 @{helper}({', '.join(('ptr %w', *arguments))})")
    build.write(done, Value(result, "mask", True))
