"""What a matrix instruction multiplies: shape and element types, from its opcode."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sandbox.ptx.model import Instruction

# As the runtime numbers them (emulator/runtime/matrix.h).
ELEMENTS = ("f16", "bf16", "tf32", "f64", "f32", "s32", "s8", "u8", "s4", "u4", "b1", "e4m3", "e5m2")
ELEMENT_BITS = {"f16": 16, "bf16": 16, "f64": 64, "tf32": 32, "f32": 32, "s32": 32} | {
    **dict.fromkeys(("s8", "u8", "e4m3", "e5m2"), 8),
    **dict.fromkeys(("s4", "u4"), 4),
    "b1": 1,
}
REGISTER_BITS = {"f64": 64}  # 32 for all others

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)$")
_MMA_SHAPES = {
    "f16": ("m8n8k4", "m16n8k8", "m16n8k16"),
    "bf16": ("m16n8k8", "m16n8k16"),
    "tf32": ("m16n8k4", "m16n8k8"),
    "f64": ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"),
    **dict.fromkeys(("s8", "u8"), ("m8n8k16", "m16n8k16", "m16n8k32")),
    **dict.fromkeys(("s4", "u4"), ("m8n8k32", "m16n8k32", "m16n8k64")),
    "b1": ("m8n8k128", "m16n8k128", "m16n8k256"),
    **dict.fromkeys(("e4m3", "e5m2"), ("m16n8k16", "m16n8k32")),
}
_WMMA_SHAPES = {
    **dict.fromkeys(("f16", "bf16", "s8", "u8"), ("m16n16k16", "m32n8k16", "m8n32k16")),
    "tf32": ("m16n16k8",),
    "f64": ("m8n8k4",),
    **dict.fromkeys(("s4", "u4"), ("m8n8k32",)),
    "b1": ("m8n8k128",),
}
_FAMILIES = ({"s8", "u8"}, {"s4", "u4"}, {"e4m3", "e5m2"})  # whose members may be mixed
_ACCUMULATORS = {
    **dict.fromkeys(("f16", "e4m3", "e5m2"), frozenset({"f16", "f32"})),
    **dict.fromkeys(("bf16", "tf32"), frozenset({"f32"})),
    "f64": frozenset({"f64"}),
    **dict.fromkeys(("s8", "u8", "s4", "u4", "b1"), frozenset({"s32"})),
}
_PRECISIONS = {"f16": 0, "bf16": 0, "e4m3": 0, "e5m2": 0, "tf32": 1, "f64": 2}
_WORDS = {"sync", "aligned", "row", "col"}
_ACCESS_WORDS = _WORDS | {"global", "shared", "shared::cta"}


@dataclass(frozen=True, slots=True)
class MatrixKind:
    """Element types of D = A * B + C; of a wmma.load or wmma.store only the part at hand is meant."""

    shape: tuple[int, int, int]  # m, n, k
    a: str
    b: str
    c: str
    d: str
    wmma: bool

    @property
    def quads(self) -> bool:
        """mma.m8n8k4 of f16: four products at once, each by eight lanes."""
        return self.shape == (8, 8, 4) and self.a == "f16"

    def registers(self, part: str) -> int:
        """Registers a lane of the fragment of part a, b, c or d."""
        m, n, k = self.shape
        element = {"a": self.a, "b": self.b, "c": self.c, "d": self.d}[part]
        if self.wmma and element == "f16" and part in "ab":
            return 8  # every element is held twice or more
        elements = {"a": m * k, "b": k * n}.get(part, m * n) * (4 if self.quads else 1)
        return elements * ELEMENT_BITS[element] // 32 // REGISTER_BITS.get(element, 32)

    def flop(self) -> tuple[int, int] | None:
        """(precision: 0 half and below, 1 single, 2 double; FLOP a lane); None for integers."""
        precision = _PRECISIONS.get(self.a)
        m, n, k = self.shape
        return None if precision is None else (precision, 2 * m * n * k * (4 if self.quads else 1) // 32)


def matrix_kind(instruction: Instruction) -> MatrixKind | None:
    """Of mma.sync, wmma.mma, wmma.load and wmma.store; None for what no device of these has."""
    parts = instruction.parts
    if parts[0] == "mma":
        return _product(parts[1:], _MMA_SHAPES, wmma=False)
    if parts[:2] == ("wmma", "mma"):
        return _product(parts[2:], _WMMA_SHAPES, wmma=True)
    if parts[:2] in (("wmma", "load"), ("wmma", "store")):
        return _access(parts)
    return None


def _product(parts: tuple[str, ...], shapes: dict[str, tuple[str, ...]], wmma: bool) -> MatrixKind | None:
    words = list(parts)
    types = [word for word in words if word in ELEMENT_BITS]
    if len(types) == 2 and wmma:
        types = [types[0], "f16", "f16", types[1]]
    shape = next((word for word in words if _SHAPE.match(word)), "")
    if len(types) != 4:
        return None
    d, a, b, c = types
    allowed = _WORDS | set(types) | {shape}
    if a == "b1":
        allowed |= {"xor", "and", "popc"}
    elif c == "s32":
        allowed.add("satfinite")
    elif a == "f64":
        allowed.add("rn")
    layouts = [word for word in words if word in ("row", "col")]
    free = (wmma and a not in ("s4", "u4", "b1")) or (shape == "m8n8k4" and a == "f16")
    mixed = a == b or {a, b} in _FAMILIES
    if (
        not {*words} <= allowed
        or not {"sync", "aligned"} <= {*words}
        or shape not in shapes.get(a, ())
        or not mixed
        or not {c, d} <= _ACCUMULATORS[a]
        or len(layouts) != 2
        or (layouts != ["row", "col"] and not free)
        or (a == "b1" and not ("popc" in words and ("xor" in words) != ("and" in words)))
    ):
        return None
    return MatrixKind(_extents(shape), a, b, c, d, wmma)


def _access(parts: tuple[str, ...]) -> MatrixKind | None:
    part, element = parts[2], parts[-1]
    shape = next((word for word in parts if _SHAPE.match(word)), "")
    if part not in (("d",) if parts[1] == "store" else ("a", "b", "c")):
        return None
    if not {*parts[3:]} <= _ACCESS_WORDS | {shape, element} or not {"sync", "aligned"} <= {*parts}:
        return None
    if element not in ELEMENT_BITS:
        return None
    if part in "ab" and shape not in _WMMA_SHAPES.get(element, ()):
        return None
    if part in "cd" and not any(
        shape in shapes and element in _ACCUMULATORS[a] for a, shapes in _WMMA_SHAPES.items()
    ):
        return None
    return MatrixKind(_extents(shape), element, element, element, element, wmma=True)


def _extents(shape: str) -> tuple[int, int, int]:
    match = _SHAPE.match(shape)
    assert match is not None
    return int(match[1]), int(match[2]), int(match[3])
