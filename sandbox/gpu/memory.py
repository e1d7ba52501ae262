"""The device's address range: pages mapped where a plan has memory, guards and poison in and around it.
Worker only.

A page is 2 MiB, so most arrays share theirs with guards: every byte of a mapped page that belongs to no
allocation holds a pattern, and is looked at after each plan. What lies beyond the pages is not mapped: an
access there is a fault of the hardware.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from cuda.bindings import driver as cuda

from sandbox.gpu.driver import Context, CudaError, call

Bytes = npt.NDArray[np.uint8]


class NoRoom(Exception):
    """The card has too little memory for a plan."""


@dataclass(frozen=True)
class Allocation:
    name: str
    address: int
    bytes: int

    @property
    def end(self) -> int:
        return self.address + self.bytes


@dataclass(frozen=True)
class _Pages:
    handle: Any
    bytes: int


class Range:
    """Reserved once, at an address that the driver chooses; only the pages in use are mapped."""

    def __init__(self, context: Context, size: int, wished: int) -> None:
        self._context = context
        self._properties = cuda.CUmemAllocationProp()
        self._properties.type = cuda.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        self._properties.location.type = cuda.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        self._properties.location.id = int(self._context.device)
        granularity = cuda.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
        self._page = int(call("cuMemGetAllocationGranularity", self._properties, granularity))
        self.base = self._reserve(size, wished)
        self._mapped: dict[int, _Pages] = {}  # by where they begin

    def _reserve(self, size: int, wished: int) -> int:
        """Where the driver put the range. A wish is no reason to fail, and neither is a range that no card's
        memory could fill: scratch memory is handed out from the lower end."""
        tries = [(part, hint) for part in (1, 3, 8) for hint in (wished, 0)]
        for part, hint in tries[:-1]:
            try:
                return int(call("cuMemAddressReserve", size // part // self._page * self._page, 0, hint, 0))
            except CudaError:
                continue
        return int(call("cuMemAddressReserve", size // tries[-1][0] // self._page * self._page, 0, 0, 0))

    def map(self, allocations: Sequence[Allocation]) -> None:
        """Maps exactly the pages of these. Raises NoRoom."""
        wanted = {start: end - start for start, end in self._spans(allocations)}
        for start in [s for s, pages in self._mapped.items() if wanted.get(s) != pages.bytes]:
            self._unmap(start)
        missing = {start: size for start, size in wanted.items() if start not in self._mapped}
        if sum(missing.values()) > self._context.free_bytes():
            raise NoRoom(f"the plan needs {sum(missing.values()):,} bytes more than the card has free")
        for start, size in missing.items():
            self._map(start, size)

    def _spans(self, allocations: Sequence[Allocation]) -> list[tuple[int, int]]:
        """Whole pages, neighbours joined: (start, end)."""
        spans: list[tuple[int, int]] = []
        for each in sorted((a for a in allocations if a.bytes), key=lambda a: a.address):
            start = each.address // self._page * self._page
            end = -(-each.end // self._page) * self._page
            if spans and start <= spans[-1][1]:
                spans[-1] = (spans[-1][0], max(spans[-1][1], end))
            else:
                spans.append((start, end))
        return spans

    def _map(self, start: int, size: int) -> None:
        handle = call("cuMemCreate", size, self._properties, 0)
        call("cuMemMap", start, size, 0, handle, 0)
        self._mapped[start] = _Pages(handle, size)
        access = cuda.CUmemAccessDesc()
        access.location.type = cuda.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        access.location.id = int(self._context.device)
        access.flags = cuda.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        call("cuMemSetAccess", start, size, [access], 1)

    def _unmap(self, start: int) -> None:
        pages = self._mapped.pop(start)
        call("cuMemUnmap", start, pages.bytes)
        call("cuMemRelease", pages.handle)

    def fill_pages(self, pattern: int) -> None:
        """Enqueues: every mapped byte becomes `pattern`."""
        for start, pages in self._mapped.items():
            fill(self._context, start, pattern, pages.bytes)

    def damage(self, allocations: Sequence[Allocation], pattern: int) -> str:
        """A sentence about the first byte outside of all allocations that lost its pattern; empty when none
        did. Everything enqueued must be done."""
        for start, end in self._gaps(allocations):
            found = np.flatnonzero(read(start, end - start) != pattern)
            if len(found):
                return _beside(start + int(found[0]), allocations)
        return ""

    def _gaps(self, allocations: Sequence[Allocation]) -> Iterator[tuple[int, int]]:
        live = sorted((a for a in allocations if a.bytes), key=lambda a: a.address)
        for start, pages in sorted(self._mapped.items()):
            cursor = start
            for each in live:
                if start <= each.address < start + pages.bytes:
                    if each.address > cursor:
                        yield cursor, each.address
                    cursor = max(cursor, each.end)
            if cursor < start + pages.bytes:
                yield cursor, start + pages.bytes


def _beside(address: int, allocations: Sequence[Allocation]) -> str:
    """Where an address that belongs to nothing lies."""
    nearest = min(
        (a for a in allocations if a.bytes),
        key=lambda a: min(abs(address - a.address), abs(address - a.end)),
    )
    if address >= nearest.end:
        where = f"{address - nearest.end} bytes behind the end of {nearest.name}"
    else:
        where = f"{nearest.address - address} bytes before the start of {nearest.name}"
    return f"a write {where}, which has {nearest.bytes:,} bytes"


def fill(context: Context, to: int, value: int, size: int) -> None:
    if size:
        call("cuMemsetD8Async", to, value, size, context.stream)


def copy(context: Context, to: int, source: int, size: int) -> None:
    if size:
        call("cuMemcpyDtoDAsync", to, source, size, context.stream)


def write(context: Context, to: int, data: Bytes) -> None:
    """Enqueues; `data` must live until it is done."""
    if data.size:
        call("cuMemcpyHtoDAsync", to, data.ctypes.data, data.size, context.stream)


def read(source: int, size: int) -> Bytes:
    """Waits, for this copy alone: everything enqueued must be done before."""
    data = np.empty(size, np.uint8)
    if size:
        call("cuMemcpyDtoH", data.ctypes.data, source, size)
    return data


class Pinned:
    """Host memory that the device copies from without a detour, also as part of a graph."""

    def __init__(self, data: bytes) -> None:
        self._address = int(call("cuMemHostAlloc", max(len(data), 1), 0))
        ctypes.memmove(self._address, data, len(data))
        self.size = len(data)

    def enqueue(self, context: Context, to: int) -> None:
        if self.size:
            call("cuMemcpyHtoDAsync", to, self._address, self.size, context.stream)

    def free(self) -> None:
        call("cuMemFreeHost", self._address)
