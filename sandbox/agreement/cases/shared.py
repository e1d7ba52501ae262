"""Shared memory (`kernels/shared.cu`)."""

from __future__ import annotations

import numpy as np

from sandbox.agreement.case import Arrays, Case, In, Out, case, floats, integers, permutation

#: Kernel -> bytes of an element.
WIDTHS = {"banks_1_byte": 1, "banks_2_bytes": 2, "banks_4_bytes": 4, "banks_8_bytes": 8, "banks_16_bytes": 16}
STRIDES = (1, 2, 3, 8, 32)
SIDE = 96


def cases() -> list[Case]:
    x, y = In("x", floats(128)), Out("y", 128)
    return [
        *(_banks(kernel, width, stride) for kernel, width in WIDTHS.items() for stride in STRIDES),
        *(_broadcast(x, y, lanes) for lanes in (1, 4, 32)),
        case(
            "banks_random",
            1,
            128,
            In("x", floats(1024)),
            In("index", integers(1024, 1024, 6)),
            Out("y", 1024),
            reference=lambda given: {"y": given["x"][given["index"]]},
        ),
        case(
            "banks_random",
            1,
            128,
            In("x", floats(1024)),
            In("index", permutation(1024, 7)),
            Out("y", 1024),
            name="banks_permuted",
            reference=lambda given: {"y": given["x"][given["index"]]},
        ),
        *(_transpose(f"transpose_{how}") for how in ("conflicts", "padded", "swizzled")),
        case(
            "much_shared",
            4,
            256,
            In("x", floats(1024)),
            Out("y", 1024),
            shared=256 * 64 * 4,
            reference=lambda given: {"y": given["x"].reshape(4, 256)[:, ::-1].ravel()},
        ),
        case(
            "stencil_shared",
            8,
            128,
            In("x", floats(1000)),
            Out("y", 1000),
            1000,
            reference=_stencil,
            chain=3,
        ),
    ]


def _banks(kernel: str, width: int, stride: int) -> Case:
    threads = 64 if width == 16 else 128
    kind = {1: "uint8", 2: "uint16"}.get(width, "uint32")
    words = max(1, width // 4)
    return case(
        kernel,
        1,
        threads,
        In("x", integers(threads * words, 1 << min(31, 8 * width), dtype=kind)),
        Out("y", threads * words, kind),
        stride,
        name=f"{kernel}_stride_{stride}",
        shared=threads * stride * width,
        reference=lambda given: {"y": np.roll(given["x"].reshape(threads, words), -1, axis=0).ravel()},
    )


def _broadcast(x: In, y: Out, lanes: int) -> Case:
    return case(
        "banks_broadcast",
        1,
        128,
        x,
        y,
        lanes,
        name=f"banks_broadcast_{lanes}",
        reference=lambda given: {"y": given["x"][np.arange(128) // lanes]},
    )


def _transpose(kernel: str) -> Case:
    return case(
        kernel,
        (SIDE // 32, SIDE // 32),
        (32, 8),
        In("x", floats(SIDE * SIDE)),
        Out("y", SIDE * SIDE),
        SIDE,
        reference=lambda given: {"y": given["x"].reshape(SIDE, SIDE).T.ravel()},
    )


def _stencil(given: Arrays) -> Arrays:
    x = np.pad(given["x"], 1)
    quarter, half = np.float32(0.25), np.float32(0.5)
    return {"y": quarter * x[:-2] + half * x[1:-1] + quarter * x[2:]}
