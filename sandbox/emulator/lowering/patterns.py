"""Where the lanes of a full warp access memory, when that is regular.

A pattern is regular when each group of lanes (as many as fill a vector register) stays within one window of
a register's width: rows, broadcasts, permutations. A load is then one vector load and one permutation a
group, and a store to places in a row one vector store. The classification is a small function in LLVM IR that
each lowered module brings along; a kernel calls it once for a base address in a basic block.
"""

from __future__ import annotations

from dataclasses import dataclass

from sandbox.plan import DEVICE_BASE

IRREGULAR, REGULAR, ROWS = 0, 1, 3  # ROWS: every group's places lie in a row


@dataclass(frozen=True)
class Shape:
    """Elements of `size` bytes in vector registers of `bits`."""

    size: int
    bits: int

    @property
    def group(self) -> int:
        return self.bits // (8 * self.size)

    @property
    def groups(self) -> int:
        return 32 // self.group

    @property
    def index_type(self) -> str:
        return f"<{self.group} x i{8 * self.size}>"

    @property
    def result_type(self) -> str:
        """Kind, the window of every group, the place of every lane in its group's window in elements."""
        return f"{{i32, {', '.join(['ptr'] * self.groups + [self.index_type] * self.groups)}}}"


@dataclass(frozen=True)
class Pattern:
    """What the code of a basic block knows of one base address: LLVM values."""

    kind: str  # with checks: how many loads of the batch are done with
    origins: list[str]
    indices: list[str]


def function_name(space: str, shape: Shape) -> str:
    return f"kw.pattern.{space}.{shape.size}"


def definitions(space: str, shape: Shape) -> dict[str, str]:
    """The functions that find patterns, by name.

    They take the lanes, for shared memory where it lies, and the addresses; they return `shape.result_type`.
    """
    found = {function_name("s", shape): _narrow(shape)}
    if space == "g":
        found[function_name("g", shape)] = _wide(shape)
    return found


def batch_definition(space: str, shape: Shape) -> str:
    """The function that finds a pattern and has the runtime check a batch of loads (runtime/batch.h).

    Like the pattern's own function, but the first result is the number of loads that are done with.
    """
    result = shape.result_type
    shared = space == "s"
    kind = "i32" if shared else "i64"
    base = ("ptr %base, ", "ptr %base, ") if shared else ("", "")
    lines = [
        f"define internal fastcc {result} @{batch_name(space, shape)}"
        f"(ptr %w, ptr %items, i32 %count, i32 %mask, {base[0]}<32 x {kind}> %a) #1 {{",
        "  %p = alloca [320 x i8], align 64",
        f"  %r = call fastcc {result} @{function_name('s' if shared else 'g', shape)}"
        f"(i32 %mask, {base[1]}<32 x {kind}> %a)",
        f"  %kind = extractvalue {result} %r, 0",
        f"  %irregular = icmp eq i32 %kind, {IRREGULAR}",
        "  br i1 %irregular, label %no, label %go",
        "no:",
        f"  ret {result} %r",
        "go:",
    ]
    for n in range(shape.groups):
        lines += [
            f"  %o{n} = extractvalue {result} %r, {1 + n}",
            f"  %op{n} = getelementptr i8, ptr %p, i64 {256 + 8 * n}",
            f"  store ptr %o{n}, ptr %op{n}, align 8",
            f"  %i{n} = extractvalue {result} %r, {1 + shape.groups + n}",
            f"  %ip{n} = getelementptr i8, ptr %p, i64 {n * shape.group * shape.size}",
            f"  store {shape.index_type} %i{n}, ptr %ip{n}, align 64",
            *_touched_words(shape, n),
        ]
    return "\n".join(
        [
            *lines,
            f"  %done = call i32 @{helper_name(space, shape)}(ptr %w, ptr %p, ptr %items, i32 %count)",
            f"  %q = insertvalue {result} %r, i32 %done, 0",
            f"  ret {result} %q",
            "}",
        ]
    )


def _touched_words(shape: Shape, n: int) -> list[str]:
    """Stores the map of the words of 4 bytes that the lanes touch in window n."""
    kind, part = f"i{8 * shape.size}", shape.index_type
    lines, place = [], f"%i{n}"
    if shape.size == 8:
        place = f"%double{n}"
        lines.append(f"  {place} = shl {part} %i{n}, splat (i64 1)")
    return [
        *lines,
        f"  %bit{n} = shl {part} splat ({kind} {shape.size // 4 * 2 - 1}), {place}",
        f"  %bits{n} = call {kind} @llvm.vector.reduce.or.v{shape.group}{kind}({part} %bit{n})",
        f"  %word{n} = {'trunc i64' if shape.size == 8 else 'add i32 0,'} %bits{n}"
        + (" to i32" if shape.size == 8 else ""),
        f"  %wp{n} = getelementptr i8, ptr %p, i64 {288 + 4 * n}",
        f"  store i32 %word{n}, ptr %wp{n}, align 4",
    ]


def batch_name(space: str, shape: Shape) -> str:
    return f"kw.batch.{space}.{shape.size}"


def helper_name(space: str, shape: Shape) -> str:
    return f"kw_batch_{space}_{shape.size}"


def _narrow(shape: Shape) -> str:
    """32-bit addresses."""
    group, result = shape.group, shape.result_type
    part = f"<{group} x i32>"
    lines = [
        f"define internal fastcc {result} @{function_name('s', shape)}"
        "(i32 %mask, ptr %base, <32 x i32> %a) #1 {",
        "  %full = icmp eq i32 %mask, -1",
        "  br i1 %full, label %go, label %no",
        "no:",
        f"  ret {result} zeroinitializer",
        "go:",
    ]
    row = "<" + ", ".join(f"i32 {lane}" for lane in range(group)) + ">"
    outside = -1 - shape.size * (group - 1)
    for n in range(shape.groups):
        order = ", ".join(f"i32 {n * group + lane}" for lane in range(group))
        lines += [
            f"  %a{n} = shufflevector <32 x i32> %a, <32 x i32> poison, <{group} x i32> <{order}>",
            f"  %low{n} = call i32 @llvm.vector.reduce.umin.v{group}i32({part} %a{n})",
            f"  %one{n} = insertelement {part} poison, i32 %low{n}, i32 0",
            f"  %all{n} = shufflevector {part} %one{n}, {part} poison, {part} zeroinitializer",
            f"  %d{n} = sub {part} %a{n}, %all{n}",
            f"  %bad{n} = and {part} %d{n}, splat (i32 {outside})",
            f"  %i{n} = lshr {part} %d{n}, splat (i32 {shape.size.bit_length() - 1})",
            f"  %moved{n} = xor {part} %i{n}, {row}",
            f"  %far{n} = zext i32 %low{n} to i64",
            f"  %origin{n} = getelementptr i8, ptr %base, i64 %far{n}",
        ]
    lines += _all_or(shape, part, "bad") + _all_or(shape, part, "moved")
    skewed = "%low0"
    for n in range(1, shape.groups):
        lines.append(f"  %skew{n} = or i32 {skewed}, %low{n}")
        skewed = f"%skew{n}"
    lines += [
        f"  %skewed = and i32 {skewed}, {shape.size - 1}",
        "  %aligned = icmp eq i32 %skewed, 0",
        "  %regular = and i1 %no.bad, %aligned",
        f"  %rows = select i1 %no.moved, i32 {ROWS}, i32 {REGULAR}",
        f"  %kind = select i1 %regular, i32 %rows, i32 {IRREGULAR}",
        f"  %r = insertvalue {result} poison, i32 %kind, 0",
    ]
    last = "%r"
    for n in range(shape.groups):
        index = f"%i{n}"
        if shape.size == 8:
            index = f"%wide{n}"
            lines.append(f"  {index} = zext {part} %i{n} to {shape.index_type}")
        lines += [
            f"  %p{n} = insertvalue {result} {last}, ptr %origin{n}, {1 + n}",
            f"  %q{n} = insertvalue {result} %p{n}, {shape.index_type} {index}, {1 + shape.groups + n}",
        ]
        last = f"%q{n}"
    return "\n".join([*lines, f"  ret {result} {last}", "}"])


def _all_or(shape: Shape, part: str, name: str) -> list[str]:
    """%no.NAME: whether every element of every %NAME0, %NAME1, ... is zero."""
    lines, last = [], f"%{name}0"
    for n in range(1, shape.groups):
        lines.append(f"  %or.{name}{n} = or {part} {last}, %{name}{n}")
        last = f"%or.{name}{n}"
    return [
        *lines,
        f"  %set.{name} = icmp ne {part} {last}, zeroinitializer",
        f"  %bits.{name} = bitcast <{shape.group} x i1> %set.{name} to i{shape.group}",
        f"  %no.{name} = icmp eq i{shape.group} %bits.{name}, 0",
    ]


def _wide(shape: Shape) -> str:
    """64-bit addresses in device memory, which have to agree in their upper halves."""
    result = shape.result_type
    return "\n".join(
        [
            f"define internal fastcc {result} @{function_name('g', shape)}(i32 %mask, <32 x i64> %a) #1 {{",
            "  %first = extractelement <32 x i64> %a, i32 0",
            "  %one = insertelement <32 x i64> poison, i64 %first, i32 0",
            "  %all = shufflevector <32 x i64> %one, <32 x i64> poison, <32 x i32> zeroinitializer",
            "  %x = xor <32 x i64> %a, %all",
            "  %differs = icmp ugt <32 x i64> %x, splat (i64 4294967295)",
            "  %lanes = bitcast <32 x i1> %differs to i32",
            "  %near = icmp eq i32 %lanes, 0",
            f"  %device = icmp uge i64 %first, {DEVICE_BASE}",
            "  %both = and i1 %near, %device",
            "  %asked = select i1 %both, i32 %mask, i32 0",
            "  %low = trunc <32 x i64> %a to <32 x i32>",
            "  %high = and i64 %first, -4294967296",
            "  %base = inttoptr i64 %high to ptr",
            f"  %r = tail call fastcc {result} @{function_name('s', shape)}"
            "(i32 %asked, ptr %base, <32 x i32> %low)",
            f"  ret {result} %r",
            "}",
        ]
    )
