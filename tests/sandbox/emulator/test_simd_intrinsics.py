"""CUDA's SIMD intrinsics as nvcc compiles them, video instructions among them, against Python's integers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from emulated import Machine, Out, compile_cuda

THREADS = 256
Elements = list[int]


def unsigned(word: int, bits: int) -> Elements:
    return [word >> position & (1 << bits) - 1 for position in range(0, 32, bits)]


def signed(word: int, bits: int) -> Elements:
    return [value - (value >> bits - 1 << bits) for value in unsigned(word, bits)]


def packed(values: Elements, bits: int) -> int:
    return sum((value & (1 << bits) - 1) << bits * index for index, value in enumerate(values))


def each(
    read: Callable[[int, int], Elements], bits: int, function: Callable[[int, int], int]
) -> Callable[[int, int], int]:
    """The same on all elements of two words."""
    return lambda a, b: packed(
        [function(*pair) for pair in zip(read(a, bits), read(b, bits), strict=True)], bits
    )


def distance(read: Callable[[int, int], Elements], bits: int) -> Callable[[int, int], int]:
    return lambda a, b: sum(abs(x - y) for x, y in zip(read(a, bits), read(b, bits), strict=True))


INTRINSICS: dict[str, Callable[[int, int], int]] = {
    "__vabsdiffu4": each(unsigned, 8, lambda a, b: abs(a - b)),
    "__vabsdiffs4": each(signed, 8, lambda a, b: abs(a - b)),
    "__vabsdiffu2": each(unsigned, 16, lambda a, b: abs(a - b)),
    "__vabsdiffs2": each(signed, 16, lambda a, b: abs(a - b)),
    "__vsadu4": distance(unsigned, 8),
    "__vsads4": distance(signed, 8),
    "__vsadu2": distance(unsigned, 16),
    "__vsads2": distance(signed, 16),
    "__vmaxu4": each(unsigned, 8, max),
    "__vmins2": each(signed, 16, min),
    "__vavgs2": each(signed, 16, lambda a, b: (abs(a + b) + 1) // 2 * (1 if a + b >= 0 else -1)),
    "__vavgu4": each(unsigned, 8, lambda a, b: (a + b + 1) // 2),
    "__vadd4": each(unsigned, 8, lambda a, b: a + b),
    "__vaddss4": each(signed, 8, lambda a, b: max(-128, min(127, a + b))),
    "__vadd2": each(unsigned, 16, lambda a, b: a + b),
    "__vsubus2": each(unsigned, 16, lambda a, b: max(0, a - b)),
    "__vcmpgtu4": each(unsigned, 8, lambda a, b: -(a > b)),
    "__vsetles2": each(signed, 16, lambda a, b: int(a <= b)),
}
STORES = "\n".join(
    f"  out[{index * THREADS} + i] = {name}(a[i], b[i]);" for index, name in enumerate(INTRINSICS)
)
CUDA = f"""
extern "C" __global__ void all(unsigned* out, const unsigned* a, const unsigned* b) {{
  const int i = threadIdx.x;
{STORES}
}}
"""


def test_intrinsics_do_what_they_are_defined_to(nvcc: None, jail: None, tmp_path: Path) -> None:
    ptx = compile_cuda(CUDA, tmp_path)
    assert {"vabsdiff4.u32.u32.u32", "vabsdiff4.u32.u32.u32.add"} <= set(
        ptx.split()
    )  # else nothing new is run
    generator = np.random.default_rng(3)
    bytes_of = generator.choice([0, 1, 0x7F, 0x80, 0x81, 0xFE, 0xFF, 0x35], (2, THREADS, 4)).astype("uint8")
    a, b = bytes_of.view("uint32").reshape(2, THREADS)
    b = np.where(np.arange(THREADS) % 8 == 0, a, b)  # equal ones too
    run = Machine(ptx).run("all", 1, THREADS, Out(len(INTRINSICS) * THREADS, "uint32"), a, b)
    assert run.result.status == "ok", run.result
    rows = run.arrays["a0"].reshape(len(INTRINSICS), THREADS).tolist()
    for (name, meaning), row in zip(INTRINSICS.items(), rows, strict=True):
        assert row == [meaning(int(x), int(y)) for x, y in zip(a, b, strict=True)], name
