"""The request and the result of `kw-emulate` as bytes. `runtime/request.cpp` and `runtime/replay.cpp` are the
other side; results come from a jailed process and are checked like any hostile input."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from sandbox.emulator.trace import ReplayResult
from sandbox.plan import (
    Allocate,
    Copy,
    Free,
    Launch,
    LaunchPlan,
    Memset,
    Operation,
    Upload,
    WriteSymbol,
)

_MAX_DOCUMENT_BYTES = 1 << 28
_HEADER_DIGITS = 12


@dataclass(frozen=True)
class Buffer:
    """One of the task's arrays in device memory."""

    name: str  # as faults call it
    address: int
    data: bytes | memoryview | None  # None: filled with `poison_byte`
    bytes: int
    read_back: bool
    initialised: bool  # False: reading a byte that no kernel wrote is a fault
    poison_byte: int


@dataclass(frozen=True)
class Replay:
    """One plan with the arrays it works on."""

    plan: LaunchPlan
    buffers: Sequence[Buffer]
    count: bool  # measure, at some cost
    keep_going: bool = False  # after findings that allow it: all are in the result, not the first alone
    seed: int = 0  # of the order of blocks, warps and diverged lanes; 0: the plain order


class BadResult(Exception):
    """The emulator's process did not leave a proper result."""


def write_request(
    descriptor: int,
    library: str,
    replays: Sequence[Replay],
    *,
    seconds: float,
    threads: int,
    multiprocessors: int = 0,
) -> None:
    """Writes the whole request to an empty file."""
    pieces: list[bytes | memoryview] = []
    size = 0

    def piece(data: bytes | memoryview | None) -> int:
        nonlocal size
        if data is None:
            return -1
        at = size
        pieces.append(data)
        size += len(data)
        return at

    lines = [f"library {library}", f"seconds {seconds:.3f}", f"threads {threads}"]
    if multiprocessors:
        lines.append(f"multiprocessors {multiprocessors}")
    for replay in replays:
        lines.append(f"plan {int(replay.count)} {int(replay.keep_going)} {replay.seed}")
        for buffer in replay.buffers:
            content = None if buffer.data is None else memoryview(buffer.data).cast("B")
            if content is not None and len(content) != buffer.bytes:
                raise ValueError(f"buffer {buffer.name}: {len(content)} bytes of data for {buffer.bytes}")
            flags = f"{int(buffer.read_back)} {int(buffer.initialised)} {buffer.poison_byte}"
            name = " ".join(buffer.name.split())
            lines.append(f"buffer {buffer.address} {buffer.bytes} {flags} {piece(content)} {name}")
        for operation in replay.plan.operations:
            line, data = _operation(operation)
            lines.append(line if data is None else f"{line} {len(data)} {piece(data)}")
    text = "\n".join(lines).encode() + b"\n"
    first = len(f"kernelwright-replay {0:0{_HEADER_DIGITS}}\n")
    header = f"kernelwright-replay {first + len(text):0{_HEADER_DIGITS}}\n".encode()
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(header + text)
        for chunk in pieces:
            file.write(chunk)


def _operation(operation: Operation) -> tuple[str, bytes | None]:
    """The line of an operation, and the bytes that belong to it: their size and place end the line."""
    match operation:
        case Allocate():
            return f"allocate {operation.address} {operation.bytes}", None
        case Free():
            return f"free {operation.address}", None
        case Memset():
            return f"memset {operation.address} {operation.value} {operation.bytes}", None
        case Copy():
            return f"copy {operation.to} {operation.source} {operation.bytes}", None
        case Upload():
            return f"upload {operation.to}", bytes.fromhex(operation.data)
        case WriteSymbol():
            line = f"write_symbol {operation.module} {operation.symbol} {operation.offset}"
            return line, bytes.fromhex(operation.data)
        case Launch():
            grid, block = (" ".join(map(str, extents)) for extents in (operation.grid, operation.block))
            line = f"launch {operation.module} {operation.kernel} {grid} {block}"
            line += f" {operation.shared_bytes} {int(operation.cooperative)}"
            return line, bytes.fromhex(operation.parameters)


def read_results(
    content: memoryview, replays: Sequence[Replay]
) -> list[tuple[ReplayResult, dict[str, bytes]]]:
    """Takes a result apart. Raises BadResult."""
    line_end = _find_newline(content)
    try:
        document = json.loads(bytes(content[:line_end]))
        results = [_result(item["result"]) for item in document]
        sizes = [[(str(name), int(size)) for name, size in item["buffers"]] for item in document]
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise BadResult(f"the emulator's result is malformed: {error}") from error
    return list(_with_buffers(content[line_end + 1 :], results, sizes, replays))


def _result(document: object) -> ReplayResult:
    result = ReplayResult.model_validate(document)
    # Text of kernels comes as one character a byte.
    output = result.output.encode("latin-1", "replace").decode(errors="replace")
    return result.model_copy(update={"output": output})


def _with_buffers(
    rest: memoryview,
    results: Sequence[ReplayResult],
    sizes: Sequence[Sequence[tuple[str, int]]],
    replays: Sequence[Replay],
) -> Iterator[tuple[ReplayResult, dict[str, bytes]]]:
    if len(results) > len(replays):
        raise BadResult("the emulator returned more results than replays")
    at = 0
    for result, listed, replay in zip(results, sizes, replays, strict=False):
        wanted = [(buffer.name, buffer.bytes) for buffer in replay.buffers if buffer.read_back]
        if result.status == "ok" and [size for _, size in listed] != [size for _, size in wanted]:
            raise BadResult("the emulator returned other buffers than asked for")
        buffers: dict[str, bytes] = {}
        if result.status == "ok":
            for name, size in wanted:
                if at + size > len(rest):
                    raise BadResult("the emulator's result is cut short")
                buffers[name] = bytes(rest[at : at + size])
                at += size
        yield result, buffers


def _find_newline(content: memoryview) -> int:
    head = bytes(content[:_MAX_DOCUMENT_BYTES])
    end = head.find(b"\n")
    if end < 0:
        raise BadResult("the emulator left no result")
    return end
