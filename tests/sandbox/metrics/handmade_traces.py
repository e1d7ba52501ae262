"""Traces made by hand: what the emulator would count for textbook kernels, from a count per warp and line."""

from __future__ import annotations

from collections.abc import Sequence

from sandbox.emulator.trace import LaunchTrace, LineCounts, Spread
from sandbox.types import CompiledKernel

SYMBOL = "_Z1kv"


def line(number: int, instructions: int, **counts: int) -> LineCounts:
    """One line, per warp; all lanes active unless said."""
    counts.setdefault("active_lanes", 32 * instructions)
    return LineCounts(line=number, instructions=instructions, **counts)


def even(count: int, mean: float) -> Spread:
    return Spread(count=count, mean=mean, minimum=int(mean), maximum=int(mean), standard_deviation=0.0)


def launch(
    warps: int,
    lines: Sequence[LineCounts],
    *,
    block: int = 256,
    load_sectors: int = 0,
    store_sectors: int = 0,
    shared: int = 0,
    barriers: int = 0,
    useless_barriers: int = 0,
    spread: float = 0.0,
    symbol: str = SYMBOL,
) -> LaunchTrace:
    """`warps` equal warps (their instructions vary by the coefficient `spread`) in blocks of `block` threads.
    Distinct sectors are those of the whole launch."""
    scaled = [
        LineCounts(
            line=each.line,
            **{name: value * warps for name, value in each.model_dump().items() if name != "line"},
        )
        for each in lines
    ]
    per_warp = sum(each.instructions for each in lines)
    blocks = max(1, warps * 32 // block)
    return LaunchTrace(
        kernel=symbol,
        grid=(blocks, 1, 1),
        block=(block, 1, 1),
        static_shared_bytes=shared,
        dynamic_shared_bytes=0,
        threads=warps * 32,
        barriers_executed=barriers,
        useless_barriers=useless_barriers,
        distinct_load_sectors=load_sectors,
        distinct_store_sectors=store_sectors,
        warps=even(warps, per_warp).model_copy(update={"standard_deviation": spread * per_warp}),
        blocks=even(blocks, per_warp * warps / blocks),
        lines=scaled,
    )


def compiled(registers: int = 32, spilled: int = 0, symbol: str = SYMBOL) -> CompiledKernel:
    return CompiledKernel(
        name="k",
        symbol=symbol,
        registers=registers,
        shared_bytes=0,
        local_bytes=spilled,
        spill_store_bytes=spilled,
        spill_load_bytes=spilled,
    )


def streaming_loads(requests: int) -> dict[str, int]:
    """`requests` loads of 32 consecutive floats."""
    return {
        "global_load_requests": requests,
        "global_load_sectors": 4 * requests,
        "global_load_bytes": 128 * requests,
        "global_load_ideal": 4 * requests,
    }


def strided_loads(requests: int) -> dict[str, int]:
    """`requests` loads of 32 floats that lie a row apart."""
    return {
        "global_load_requests": requests,
        "global_load_sectors": 32 * requests,
        "global_load_bytes": 128 * requests,
        "global_load_ideal": 4 * requests,
    }


def broadcast_loads(requests: int) -> dict[str, int]:
    """`requests` loads of one float by all lanes."""
    return {
        "global_load_requests": requests,
        "global_load_sectors": requests,
        "global_load_bytes": 4 * requests,
        "global_load_ideal": requests,
    }


def streaming_stores(requests: int) -> dict[str, int]:
    return {
        "global_store_requests": requests,
        "global_store_sectors": 4 * requests,
        "global_store_bytes": 128 * requests,
        "global_store_ideal": 4 * requests,
    }


def strided_stores(requests: int) -> dict[str, int]:
    return {
        "global_store_requests": requests,
        "global_store_sectors": 32 * requests,
        "global_store_bytes": 128 * requests,
        "global_store_ideal": 4 * requests,
    }


def shared_loads(requests: int, ways: int = 1) -> dict[str, int]:
    return {
        "shared_load_requests": requests,
        "shared_load_wavefronts": ways * requests,
        "shared_load_ideal": requests,
    }


def shared_stores(requests: int, ways: int = 1) -> dict[str, int]:
    return {
        "shared_store_requests": requests,
        "shared_store_wavefronts": ways * requests,
        "shared_store_ideal": requests,
    }


def saxpy(warps: int = 512) -> LaunchTrace:
    lines = [
        line(3, 8, branches=1),
        line(4, 7, flop_fp32=64, **streaming_loads(2), **streaming_stores(1)),
    ]
    return launch(warps, lines, load_sectors=8 * warps, store_sectors=4 * warps)


def strided_saxpy(warps: int = 512) -> LaunchTrace:
    """The same, but a thread's elements lie 32 apart."""
    lines = [
        line(3, 8, branches=1),
        line(
            4,
            7,
            flop_fp32=64,
            **strided_loads(2),
            **strided_stores(1),
        ),
    ]
    return launch(warps, lines, load_sectors=8 * warps, store_sectors=4 * warps)


def transpose(kind: str, warps: int = 512) -> LaunchTrace:
    """ "naive": strided stores; "tile": through shared memory [32][32]; "padded": [32][33]."""
    sectors = {"load_sectors": 4 * warps, "store_sectors": 4 * warps}
    if kind == "naive":
        return launch(warps, [line(5, 16, **streaming_loads(1), **strided_stores(1))], **sectors)
    lines = [
        line(5, 10, **streaming_loads(1), **shared_stores(1)),
        line(6, 1, barriers=1),
        line(7, 10, **shared_loads(1, ways=32 if kind == "tile" else 1), **streaming_stores(1)),
    ]
    return launch(warps, lines, shared=32 * 33 * 4, barriers=warps // 8, **sectors)


def matrix_product(kind: str, n: int = 128) -> LaunchTrace:
    """n x n x n floats. "row_per_thread": neighbours lie a row apart; "naive": neighbours lie in a row;
    "tiled": 16 x 16 tiles; "registers": 4 x 4 results per thread from 64 x 64 tiles, 16 deep.
    """
    sectors = {"load_sectors": 2 * n * n // 8, "store_sectors": n * n // 8}
    warps = n * n // 32
    if kind == "row_per_thread":
        loads = {name: value + broadcast_loads(n)[name] for name, value in strided_loads(n).items()}
        lines = [line(9, 6 * n, flop_fp32=64 * n, **loads), line(10, 4, **strided_stores(1))]
        return launch(warps, lines, **sectors)
    if kind == "naive":
        loads = {name: value + broadcast_loads(n)[name] for name, value in streaming_loads(n).items()}
        lines = [line(9, 6 * n, flop_fp32=64 * n, **loads), line(10, 4, **streaming_stores(1))]
        return launch(warps, lines, **sectors)
    if kind == "tiled":
        tiles = n // 16
        lines = [
            line(8, 10 * tiles, **streaming_loads(2 * tiles), **shared_stores(2 * tiles)),
            line(9, 2 * tiles, barriers=2 * tiles),
            line(10, 3 * n, flop_fp32=64 * n, **shared_loads(2 * n)),
            line(11, 4, **streaming_stores(1)),
        ]
        barriers = 2 * tiles * warps // 8
        return launch(warps, lines, shared=2048, barriers=barriers, **sectors)
    warps //= 16
    tiles = n // 16
    lines = [
        line(8, 40 * tiles, **streaming_loads(8 * tiles), **shared_stores(8 * tiles)),
        line(9, 2 * tiles, barriers=2 * tiles),
        line(10, 20 * n, flop_fp32=16 * 64 * n, **shared_loads(4 * n)),
        line(11, 32, **streaming_stores(16)),
    ]
    return launch(warps, lines, shared=8192, barriers=2 * tiles * warps // 8, **sectors)


def softmax(kind: str, rows: int = 256, columns: int = 512) -> LaunchTrace:
    """ "thread_per_row" or "warp_per_row", three passes over the row."""
    sectors = {"load_sectors": rows * columns // 8, "store_sectors": rows * columns // 8}
    if kind == "thread_per_row":
        stores = strided_stores(columns)
        lines = [
            line(5, 4 * columns, flop_fp32=32 * columns, **strided_loads(columns)),
            line(7, 12 * columns, flop_fp32=32 * 8 * columns, **strided_loads(columns)),
            line(9, 14 * columns, flop_fp32=32 * 9 * columns, **strided_loads(columns), **stores),
        ]
        return launch(rows // 32, lines, block=128, **sectors)
    steps = columns // 32
    lines = [
        line(5, 4 * steps + 10, flop_fp32=32 * steps, **streaming_loads(steps)),
        line(7, 12 * steps + 10, flop_fp32=32 * 8 * steps, **streaming_loads(steps)),
        line(9, 14 * steps, flop_fp32=32 * 9 * steps, **streaming_loads(steps), **streaming_stores(steps)),
    ]
    return launch(rows, lines, block=128, **sectors)


def histogram(kind: str, warps: int = 512) -> LaunchTrace:
    """ "one_address": every lane hits the same global counter; "global": 256 global bins; "private": bins in
    shared memory per block, added to global memory at the end.
    """
    load = line(4, 12, **streaming_loads(1))
    sectors = {"load_sectors": 4 * warps, "store_sectors": 32}
    if kind == "private":
        lines = [
            line(3, 3, **shared_stores(1)),
            load,
            line(5, 2, atomics=1, shared_atomics=1, atomic_lanes=32, atomic_addresses=30),
            line(6, 2, barriers=2),
        ]
        flush = line(7, 4, atomics=1, atomic_lanes=32, atomic_addresses=32)
        trace = launch(warps, lines, shared=1024, barriers=2 * warps // 8, **sectors)
        # the flush runs once per block and covers 256 bins with its 8 warps; blocks stride over the data
        per_warp = launch(warps // 16, [flush])
        return trace.model_copy(update={"lines": [*trace.lines, *per_warp.lines]})
    addresses = 1 if kind == "one_address" else 30
    hit = line(5, 2, atomics=1, atomic_lanes=32, atomic_addresses=addresses)
    return launch(warps, [load, hit], **sectors)
