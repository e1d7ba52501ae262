"""The fragments of mma as the PTX ISA's tables give them, and numbers as the bits that registers hold."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.generic]

BITS = {
    "f16": 16,
    "bf16": 16,
    "tf32": 32,
    "f32": 32,
    "f64": 64,
    "s32": 32,
    "s8": 8,
    "u8": 8,
    "s4": 4,
    "u4": 4,
}
BITS |= {"b1": 1, "e4m3": 8, "e5m2": 8}


def extents(shape: str) -> tuple[int, int, int]:
    m, n, k = re.findall(r"\d+", shape)
    return int(m), int(n), int(k)


def bits_of(kind: str, values: Numbers) -> npt.NDArray[np.uint64]:
    """Each number's bits in this format; small integers are exact in all of them."""
    if kind in ("f64", "f32", "f16"):
        return values.astype(f"f{BITS[kind] // 8}").view(f"u{BITS[kind] // 8}").astype("u8")
    if kind == "tf32":
        return values.astype("f4").view("u4").astype("u8")
    if kind == "bf16":
        return (values.astype("f4").view("u4") >> 16).astype("u8")
    if kind in ("e4m3", "e5m2"):
        # The upper bits of a half, for the numbers here: e5m2 has its exponent, e4m3 another bias.
        halves = (values.astype("f8") * (1 if kind == "e5m2" else 2.0**-8)).astype("f2").view("u2")
        return (
            halves.astype("u8") >> 8
            if kind == "e5m2"
            else (halves >> 8 & 0x80 | halves >> 7 & 0x7F).astype("u8")
        )
    return values.astype("i8").astype("u8") & np.uint64((1 << BITS[kind]) - 1)


def values_of(kind: str, bits: Numbers) -> Numbers:
    if kind in ("f64", "f32", "f16"):
        return bits.astype(f"u{BITS[kind] // 8}").view(f"f{BITS[kind] // 8}").astype("f8")
    assert kind == "s32"
    return bits.astype("u4").view("i4")


def rounded(kind: str, values: Numbers) -> Numbers:
    """As doubles, the numbers this format makes of them (bf16 and tf32: cut off)."""
    if kind in ("f64", "f32", "f16"):
        return values.astype(f"f{BITS[kind] // 8}").astype("f8")
    cut = 0xFFFF0000 if kind == "bf16" else 0xFFFFE000
    return (values.astype("f4").view("u4") & np.uint32(cut)).view("f4").astype("f8")


def packed(kind: str, values: Numbers) -> Numbers:
    """A matrix as memory holds it, rows after rows, low elements first."""
    bits = bits_of(kind, np.ascontiguousarray(values)).ravel()
    if BITS[kind] >= 8:
        return bits.astype(f"u{BITS[kind] // 8}")
    return pack_words(kind, bits)


def pack_words(kind: str, bits: Numbers) -> Numbers:
    """Elements of up to 32 bits in words, low elements first; wider ones as they are."""
    if BITS[kind] == 64:
        return bits.astype("u8")
    per_word = 32 // BITS[kind]
    shifts = np.arange(per_word, dtype="u8") * np.uint64(BITS[kind])
    return (bits.reshape(-1, per_word) << shifts).sum(axis=1).astype("u4")


def unpacked(kind: str, data: Numbers) -> Numbers:
    return values_of(kind, data.view(f"u{BITS[kind] // 8}"))


def registers(shape: str, part: str, kind: str, matrices: int = 1) -> int:
    m, n, k = extents(shape)
    elements = {"a": m * k, "b": k * n, "c": m * n}[part] * matrices
    return max(1, elements * BITS[kind] // 1024 // (2 if kind == "f64" else 1))


def place(shape: str, part: str, kind: str, lane: int, i: int) -> tuple[int, int]:
    """Row and column of element i of a lane: the ISA's tables, which differ by the width of elements only."""
    m, _, _ = extents(shape)
    group, thread = divmod(lane, 4)
    run = max(1, 32 // BITS[kind])  # elements in a register: neighbours along k
    if part == "c":
        return group + (8 if i >= 2 else 0), 2 * thread + i % 2
    register, within = divmod(i, run)
    if part == "b":
        return thread * run + within + 4 * run * register, group
    if m == 8:
        return group, thread * run + within
    return group + (8 if register % 2 else 0), thread * run + within + 4 * run * (register // 2)


def fragments(shape: str, part: str, kind: str, values: Numbers) -> Numbers:
    """A matrix as [lane][register]."""
    bits = bits_of(kind, values)
    count = values.size // 32
    spread = np.array(
        [[bits[place(shape, part, kind, lane, i)] for i in range(count)] for lane in range(32)], "u8"
    )
    return pack_words(kind, spread.ravel()).reshape(32, -1)


def matrix(shape: str, part: str, kind: str, given: Numbers) -> Numbers:
    """The matrix whose fragments are `given`."""
    m, n, k = extents(shape)
    rows, columns = {"a": (m, k), "b": (k, n), "c": (m, n)}[part]
    values = unpacked(kind, np.ascontiguousarray(given)).reshape(32, -1)
    result = np.zeros((rows, columns))
    for lane in range(32):
        for i in range(values.shape[1]):
            result[place(shape, part, kind, lane, i)] = values[lane, i]
    return result


def quad_fragments(part: str, kind: str, values: Numbers) -> Numbers:
    """Four matrices of mma.m8n8k4 with f16 as [lane][register]."""
    bits = bits_of(kind, values)
    rows = []
    for lane in range(32):
        quad, half, member = lane % 16 // 4, 4 * (lane // 16), lane % 4
        if part == "c" and kind == "f32":
            places = [((lane & 1) + (i & 2) + half, (i & 4) + (lane & 2) + (i & 1)) for i in range(8)]
        elif part == "c":
            places = [(member + half, i) for i in range(8)]
        else:
            places = {
                "a": [(member + half, i) for i in range(4)],
                "a by column": [(i + half, member) for i in range(4)],
                "b": [(i, member + half) for i in range(4)],
                "b by row": [(member, i + half) for i in range(4)],
            }[part]
        rows.append([bits[quad][at] for at in places])
    return pack_words(kind, np.array(rows, "u8").ravel()).reshape(32, -1)
