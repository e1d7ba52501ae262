"""Lowering of loads and stores of memory.

With checks (mode "checked") accesses call helpers of the runtime, which check, count and do them. A helper
gets the addresses of all lanes and the lanes that take part; data are arrays [element][lane] of the access's
own width. Loads at regular addresses are checked by the batch (batches.py), and then done as without checks.

Without (mode "plain") weak accesses of 4 and 8 bytes are code of their own: where the addresses of a full
warp have a regular pattern (patterns.py), a vector load or store and a permutation for each group of lanes;
elsewhere a gather or scatter. The pattern of a base address is found once in a basic block and serves all
accesses at constant offsets from it, as unrolled loops have them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sandbox.emulator.lowering import patterns
from sandbox.emulator.lowering.abi import SITE_ACCESS
from sandbox.emulator.lowering.analysis import Block
from sandbox.emulator.lowering.arithmetic import handles, repacked, unpacked
from sandbox.emulator.lowering.batches import Batch, Member, batches_of
from sandbox.emulator.lowering.builder import BITS, Builder, Value, element_type
from sandbox.emulator.lowering.memory import (
    access_site,
    address_value,
    receive,
    space_of,
    vector_length,
)
from sandbox.emulator.lowering.parameters import (
    computed_space,
    is_computed,
    load_parameter,
    store_parameter,
)
from sandbox.emulator.lowering.patterns import Pattern
from sandbox.ptx.model import Address, Instruction, Operand, Vector
from sandbox.ptx.words import is_type, type_bytes

# (bytes of an element, elements) that the runtime's helpers know, and those that are done in halves.
_SHAPES = {(1, 1), (1, 2), (1, 4), (2, 1), (2, 2), (2, 4), (2, 8), (4, 1), (4, 2), (4, 4), (8, 1), (8, 2)}
_HALVED = {(1, 8), (4, 8), (8, 4), (16, 1)}
_STRONG = frozenset({"volatile", "relaxed", "acquire", "release", "mmio"})


@dataclass(frozen=True)
class Access:
    """One load or store: `count` elements of `size` bytes a lane at `base` + `offset`."""

    space: str
    name: str  # type of an element: "f32"
    size: int
    count: int
    base: Value
    offset: int
    strong: bool  # volatile, or ordered

    def pieces(self) -> list[tuple[int, int]]:
        """(bytes, offset) of the accesses of 4 and 8 bytes that do the same; none for narrow elements."""
        if self.size < 4:
            return []
        if self.size * self.count == 8:
            return [(8, 0)]
        return [(self.size, index * self.size) for index in range(self.count)]


def access_of(build: Builder, instruction: Instruction, operand: Operand) -> Access:
    parts = instruction.parts
    space, count, size = space_of(parts), vector_length(parts), type_bytes(parts[-1])
    if (size, count) not in _SHAPES | _HALVED:
        raise build.unsupported(instruction.opcode)
    if space == "p":
        space = computed_space(build)
    base, offset = address_value(build, operand, space)
    strong = not _STRONG.isdisjoint(parts)
    return Access(space, parts[-1], size, count, base, offset, strong)


@handles("ld", "ldu")
def load(build: Builder, instruction: Instruction) -> None:
    if space_of(instruction.parts) == "p" and not is_computed(instruction.operands[1]):
        load_parameter(build, instruction)
        return
    target, operand, *_ = instruction.operands  # a cache policy may follow
    access = access_of(build, instruction, operand)
    targets = target.items if isinstance(target, Vector) else (target,)
    for item, value in zip(targets, _loaded(build, instruction, access), strict=True):
        receive(build, item, value, access.name)


def _loaded(build: Builder, instruction: Instruction, access: Access) -> list[Value]:
    if access.size == 16:
        low, high = _loaded(build, instruction, replace(access, name="b64", size=8, count=2))
        return [repacked(build, build.splat(low), build.splat(high))]
    if (access.size, access.count) in _HALVED:
        return [value for half in _halves(access) for value in _loaded(build, instruction, half)]
    member = build.members.get(id(instruction))
    if inline(build, access):
        pieces = [_load_piece(build, access, *piece) for piece in access.pieces()]
        return _elements(build, access, pieces)
    if member is not None:
        return _load_of_batch(build, instruction, access, member)
    return _load_by_helper(build, instruction, access)


def _halves(access: Access) -> tuple[Access, Access]:
    count = access.count // 2
    half = replace(access, count=count)
    return half, replace(half, offset=access.offset + count * access.size)


def _load_by_helper(
    build: Builder, instruction: Instruction, access: Access, site: int | None = None
) -> list[Value]:
    out = call_helper(build, "ld", instruction, access, site)
    kind = element_type(access.name)
    places = [build.offset(out, index * 32 * access.size) for index in range(access.count)]
    return [Value(build.op(f"load <32 x {kind}>, ptr {place}, align 32"), kind) for place in places]


@handles("st")
def store(build: Builder, instruction: Instruction) -> None:
    if space_of(instruction.parts) == "p":
        store_parameter(build, instruction)
        return
    operand, source, *_ = instruction.operands
    access = access_of(build, instruction, operand)
    items = source.items if isinstance(source, Vector) else (source,)
    if len(items) != access.count:
        raise build.unsupported(f"{instruction.opcode} of {len(items)} values")
    _stored(build, instruction, access, [build.operand(item, f"i{8 * access.size}") for item in items])


def _stored(build: Builder, instruction: Instruction, access: Access, values: list[Value]) -> None:
    if access.size == 16:
        words = replace(access, name="b64", size=8, count=2)
        _stored(build, instruction, words, unpacked(build, build.splat(values[0]), "i64"))
        return
    if (access.size, access.count) in _HALVED:
        first, second = _halves(access)
        _stored(build, instruction, first, values[: first.count])
        _stored(build, instruction, second, values[first.count :])
        return
    if inline(build, access) and len(access.pieces()) == 1:
        _store_piece(build, access, _whole(build, access, values))
        return
    data = build.buffer_wide("data")
    for index, value in enumerate(values):
        place = build.offset(data, index * 32 * access.size)
        build.emit(f"store <32 x i{8 * access.size}> {build.splat(value).text}, ptr {place}, align 32")
    call_helper(build, "st", instruction, access)


def call_helper(
    build: Builder, verb: str, instruction: Instruction, access: Access, site: int | None = None
) -> str:
    """Has the runtime do an access; returns the buffer of its data."""
    place = build.buffer("address")
    base = build.splat_in_place(access.base)
    build.emit(f"store <32 x {access.base.type}> {base}, ptr {place}, align 64")
    site = access_site(build, instruction) if site is None else site
    data = build.buffer_wide("data")
    helper = f"kw_{verb}_{access.space}_{access.size}_{access.count}"
    build.declare(helper, "void", "ptr, i32, i32, ptr, i64, ptr")
    build.emit(
        f"call void @{helper}(ptr %w, i32 {site}, i32 {build.effective_mask()}, ptr {place}, "
        f"i64 {access.offset}, ptr {data})"
    )
    return data


# Batches ------------------------------------------------------------------------------------------------


def find_batches(build: Builder, block: Block) -> dict[int, Member]:
    """The loads of a block that are checked together."""
    if build.context.mode != "checked" or build.context.vector_bits != 512:
        return {}

    def shape(instruction: Instruction) -> tuple[str, int] | None:
        parts = instruction.parts
        space = space_of(parts)
        if instruction.guard is not None or space not in "gsc" or not _STRONG.isdisjoint(parts):
            return None
        if not isinstance(instruction.operands[1], Address) or not is_type(parts[-1]):
            return None  # it is refused when it is lowered
        size, count = type_bytes(parts[-1]), vector_length(parts)
        return (space, size * count) if size >= 4 and size * count <= 8 else None

    def site(instruction: Instruction) -> int:
        return build.context.site(SITE_ACCESS, instruction.line, instruction.opcode)

    return batches_of(block.instructions, shape, site)


def _load_of_batch(build: Builder, instruction: Instruction, access: Access, member: Member) -> list[Value]:
    """Of a batch the runtime checks as many loads, from the first, as it can; the others check themselves."""
    batch, size = member.batch, access.size * access.count
    if batch.pattern is None:
        batch.pattern = _begin_batch(build, access, batch)
    pattern, kind = batch.pattern, element_type(access.name)
    checked, unchecked, done = build.label(), build.label(), build.label()
    condition = build.op(f"icmp ugt i32 {pattern.kind}, {member.index}")
    build.emit(f"br i1 {condition}, label %{checked}, label %{unchecked}, !prof !0")
    build.lines.append(f"{checked}:")
    piece = Value(_permuted_load(build, pattern, f"i{8 * size}", access.offset), f"i{8 * size}")
    regular = _elements(build, access, [piece])
    build.emit(f"br label %{done}")
    build.lines.append(f"{unchecked}:")
    others = _load_by_helper(build, instruction, access, member.site)
    build.emit(f"br label %{done}")
    build.lines.append(f"{done}:")
    return [
        Value(build.op(f"phi <32 x {kind}> [ {one.text}, %{checked} ], [ {two.text}, %{unchecked} ]"), kind)
        for one, two in zip(regular, others, strict=True)
    ]


def _begin_batch(build: Builder, access: Access, batch: Batch) -> Pattern:
    shape = patterns.Shape(batch.size, build.context.vector_bits)
    helpers = build.context.helpers
    helpers.update(patterns.definitions("s" if batch.space == "s" else "g", shape))
    name = patterns.batch_name(batch.space, shape)
    helpers[name] = patterns.batch_definition(batch.space, shape)
    build.declare(patterns.helper_name(batch.space, shape), "i32", "ptr, ptr, ptr, i32")
    items = f"@kw.items.{len(helpers)}"
    content = ", ".join(f"{{i32, i32}} {{i32 {site}, i32 {offset}}}" for site, offset in batch.items)
    helpers[items] = f"{items} = internal constant [{len(batch.items)} x {{i32, i32}}] [{content}]"
    addresses = f"<32 x {access.base.type}> {build.splat(access.base).text}"
    base = f"ptr {build.shared()}, " if batch.space == "s" else ""
    result = build.op(
        f"call fastcc {shape.result_type} @{name}"
        f"(ptr %w, ptr {items}, i32 {len(batch.items)}, i32 %M, {base}{addresses})"
    )
    return _taken_apart(build, shape, result)


def _taken_apart(build: Builder, shape: patterns.Shape, result: str) -> Pattern:
    parts = [build.op(f"extractvalue {shape.result_type} {result}, {n}") for n in range(1 + 2 * shape.groups)]
    return Pattern(parts[0], parts[1 : 1 + shape.groups], parts[1 + shape.groups :])


# Inline accesses ----------------------------------------------------------------------------------------


def inline(build: Builder, access: Access) -> bool:
    if build.context.mode != "plain" or access.strong or access.space not in "gsc":
        return False
    # Below AVX-512, LLVM makes 32 branches of a gather.
    return bool(access.pieces()) and build.context.vector_bits == 512


def _pattern(build: Builder, access: Access, size: int) -> Pattern:
    space = "s" if access.space == "s" else "g"
    key = (access.base.text, space, size)
    found = build.patterns.get(key)
    if found is not None:
        return found
    shape = patterns.Shape(size, build.context.vector_bits)
    build.context.helpers.update(patterns.definitions(space, shape))
    addresses = f"{access.base.full_type} {access.base.text}"
    base = f"ptr {build.shared()}, " if space == "s" else ""
    result = build.op(
        f"call fastcc {shape.result_type} @{patterns.function_name(space, shape)}(i32 %M, {base}{addresses})"
    )
    build.patterns[key] = pattern = _taken_apart(build, shape, result)
    return pattern


def _load_piece(build: Builder, access: Access, size: int, within: int) -> Value:
    kind, offset = f"i{8 * size}", access.offset + within
    if access.base.scalar and build.guard is None:
        place = _scalar_place(build, access, offset)
        return Value(build.op(f"load {kind}, ptr {place}, align {size}"), kind, True)
    if build.guard is not None:
        return Value(_gather(build, access, kind, offset, build.lanes_of_effect()), kind)
    pattern = _pattern(build, access, size)
    lanes = build.running()
    regular, irregular, done = build.label(), build.label(), build.label()
    condition = build.op(f"icmp ne i32 {pattern.kind}, 0")
    build.emit(f"br i1 {condition}, label %{regular}, label %{irregular}, !prof !0")
    build.lines.append(f"{regular}:")
    permuted = _permuted_load(build, pattern, kind, offset)
    build.emit(f"br label %{done}")
    build.lines.append(f"{irregular}:")
    gathered = _gather(build, access, kind, offset, lanes)
    build.emit(f"br label %{done}")
    build.lines.append(f"{done}:")
    full = f"<32 x {kind}>"
    return Value(build.op(f"phi {full} [ {permuted}, %{regular} ], [ {gathered}, %{irregular} ]"), kind)


def _permuted_load(build: Builder, pattern: Pattern, kind: str, offset: int) -> str:
    size = BITS[kind] // 8
    group = build.context.vector_bits // (8 * size)
    permute = f"llvm.x86.avx512.permvar.{'si' if size == 4 else 'di'}.512"
    part = f"<{group} x {kind}>"
    build.context.declarations[permute] = f"declare {part} @{permute}({part}, {part})"
    parts = []
    for index, origin in zip(pattern.indices, pattern.origins, strict=True):
        window = build.op(f"load {part}, ptr {build.offset(origin, offset)}, align {size}")
        parts.append(build.op(f"call {part} @{permute}({part} {window}, {part} {index})"))
    return _joined(build, parts, kind, group)


def _joined(build: Builder, parts: list[str], kind: str, lanes: int) -> str:
    """Vectors of `lanes` elements one after another as one vector."""
    while len(parts) > 1:
        order = ", ".join(f"i32 {lane}" for lane in range(2 * lanes))
        parts = [
            build.op(
                f"shufflevector <{lanes} x {kind}> {first}, <{lanes} x {kind}> {second}, "
                f"<{2 * lanes} x i32> <{order}>"
            )
            for first, second in zip(parts[::2], parts[1::2], strict=True)
        ]
        lanes *= 2
    return parts[0]


def _scalar_place(build: Builder, access: Access, offset: int) -> str:
    if access.space == "s":
        base = build.shared()
        return build.offset(build.op(f"getelementptr i8, ptr {base}, i32 {access.base.text}"), offset)
    return build.offset(build.op(f"inttoptr i64 {access.base.text} to ptr"), offset)


def _places(build: Builder, access: Access, offset: int, order: Sequence[int] = ()) -> str:
    """A pointer a lane, in their order or in another one."""
    base = build.splat_in_place(access.base)
    if order and not access.base.scalar:
        base = _reordered(build, base, access.base.type, order)
    if access.space == "s":
        origin = build.offset(build.shared(), offset)
        return build.op(f"getelementptr i8, ptr {origin}, <32 x i32> {base}")
    pointers = build.op(f"inttoptr <32 x i64> {base} to <32 x ptr>")
    return build.op(f"getelementptr i8, <32 x ptr> {pointers}, i64 {offset}") if offset else pointers


def _gather(build: Builder, access: Access, kind: str, offset: int, lanes: str) -> str:
    full, size = f"<32 x {kind}>", BITS[kind] // 8
    name = f"llvm.masked.gather.v32{kind}.v32p0"
    build.context.declarations[name] = f"declare {full} @{name}(<32 x ptr>, i32 immarg, <32 x i1>, {full})"
    places = _places(build, access, offset)
    return build.op(
        f"call {full} @{name}(<32 x ptr> {places}, i32 {size}, <32 x i1> {lanes}, {full} zeroinitializer)"
    )


def _elements(build: Builder, access: Access, pieces: list[Value]) -> list[Value]:
    """The elements, as their own type, of what was loaded in pieces."""
    if len(pieces) == 1 and access.count == 2:
        low = build.convert("trunc", pieces[0], "i32")
        full = pieces[0].full_type
        amount = "32" if pieces[0].scalar else "splat (i64 32)"
        shifted = Value(build.op(f"lshr {full} {pieces[0].text}, {amount}"), "i64", pieces[0].scalar)
        pieces = [low, build.convert("trunc", shifted, "i32")]
    kind = element_type(access.name)
    return [build.convert("bitcast", piece, kind) for piece in pieces]


def _whole(build: Builder, access: Access, values: list[Value]) -> str:
    """What is stored, as one vector of integers of the whole access's width."""
    if access.count == 1:
        return build.splat(values[0]).text
    low, high = (build.op(f"zext <32 x i32> {build.splat(value).text} to <32 x i64>") for value in values)
    moved = build.op(f"shl <32 x i64> {high}, splat (i64 32)")
    return build.op(f"or <32 x i64> {low}, {moved}")


def _store_piece(build: Builder, access: Access, data: str) -> None:
    """A vector store for every group whose lanes write places in a row; elsewhere lane by lane."""
    size = access.size * access.count
    kind = f"i{8 * size}"
    if build.guard is not None or access.base.scalar:
        _scatter(build, access, kind, data, build.lanes_of_effect())
        return
    pattern = _pattern(build, access, size)
    lanes = build.running()
    rows, others, done = build.label(), build.label(), build.label()
    condition = build.op(f"icmp eq i32 {pattern.kind}, {patterns.ROWS}")
    build.emit(f"br i1 {condition}, label %{rows}, label %{others}, !prof !0")
    build.lines.append(f"{rows}:")
    group = build.context.vector_bits // (8 * size)
    for number in dict.fromkeys(lane // group for lane in store_order(size)):
        part = _reordered(build, data, kind, range(number * group, (number + 1) * group))
        place = build.offset(pattern.origins[number], access.offset)
        build.emit(f"store <{group} x {kind}> {part}, ptr {place}, align {size}")
    build.emit(f"br label %{done}")
    build.lines.append(f"{others}:")
    _scatter(build, access, kind, data, lanes)
    build.emit(f"br label %{done}")
    build.lines.append(f"{done}:")


def store_order(size: int) -> list[int]:
    """The lanes of a store of `size` bytes each; where some meet, the one that a GPU keeps is the last.

    A store goes in passes of 32 lanes of up to 4 bytes, or of 16 lanes of 8 bytes; the lowest lane of a pass
    wins, and a later pass comes over an earlier one (runtime/store_order.h).
    """
    lanes = 32 if size <= 4 else 128 // size
    return [lane for start in range(0, 32, lanes) for lane in reversed(range(start, start + lanes))]


def _reordered(build: Builder, vector: str, kind: str, order: Sequence[int]) -> str:
    places = ", ".join(f"i32 {lane}" for lane in order)
    return build.op(
        f"shufflevector <32 x {kind}> {vector}, <32 x {kind}> poison, <{len(order)} x i32> <{places}>"
    )


def _scatter(build: Builder, access: Access, kind: str, data: str, lanes: str) -> None:
    """Of elements for one place a scatter keeps the last one."""
    full, size = f"<32 x {kind}>", BITS[kind] // 8
    name = f"llvm.masked.scatter.v32{kind}.v32p0"
    build.context.declarations[name] = f"declare void @{name}({full}, <32 x ptr>, i32 immarg, <32 x i1>)"
    order = store_order(size)
    places = _places(build, access, access.offset, order)
    data, lanes = _reordered(build, data, kind, order), _reordered(build, lanes, "i1", order)
    build.emit(f"call void @{name}({full} {data}, <32 x ptr> {places}, i32 {size}, <32 x i1> {lanes})")
