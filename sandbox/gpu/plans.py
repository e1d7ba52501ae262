"""Running one launch plan. Worker only.

Operations run in the order in which host code asked for them, on one stream: one of the orders that streams
and events allow. Addresses in operations are the emulator's; `Range.base` says where they really are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sandbox.gpu.driver import FAULTS, REFUSALS, Context, CudaError, Launching, Module
from sandbox.gpu.memory import Allocation, Bytes, Pinned, Range, copy, fill, write

Operation = Mapping[str, Any]  # one of sandbox.plan's, as `wire` writes it


class Stopped(Exception):
    """A plan ended before its end: the status and the fields of a ReplayResult."""

    def __init__(self, status: str, **fields: Any) -> None:
        super().__init__(status)
        self.document = {"status": status, **fields}


@dataclass(frozen=True)
class Buffer:
    allocation: Allocation
    data: Bytes | None
    read_back: bool
    poison: int


class Plan:
    """One replay: its buffers, its operations, and how its memory starts out."""

    def __init__(
        self,
        operations: Sequence[Operation],
        buffers: Sequence[Buffer],
        shift: int,
        blob: Callable[..., bytes],
    ) -> None:
        self._operations = operations
        self._shift = shift
        self.buffers = buffers
        self._scratch = [
            Allocation(f"scratch {index}", o["address"] + shift, o["bytes"])
            for index, o in enumerate(operations)
            if o["op"] == "allocate"
        ]
        self.allocations = [*(buffer.allocation for buffer in buffers), *self._scratch]
        self._poison = buffers[0].poison if buffers else 0xFF
        # Never the poison itself: what reads a guard and writes it elsewhere is told apart from no write.
        self._guard = self._poison ^ 0x3C
        self._uploads = {index: Pinned(blob(*o["data"])) for index, o in enumerate(operations) if "data" in o}

    def free(self) -> None:
        for upload in self._uploads.values():
            upload.free()

    def prepare(self, context: Context, memory: Range, sources: Mapping[str, int] | None = None) -> None:
        """Enqueues: guards, poison, inputs. `sources`: device addresses of copies of the inputs, by name;
        else they come from the host."""
        memory.map(self.allocations)
        memory.fill_pages(self._guard)
        for each in self._scratch:
            fill(context, each.address, self._poison, each.bytes)
        for buffer in self.buffers:
            at = buffer.allocation
            if buffer.data is None:
                fill(context, at.address, buffer.poison, at.bytes)
            elif sources is None:
                write(context, at.address, buffer.data)
            else:
                copy(context, at.address, sources[at.name], at.bytes)

    def enqueue(self, context: Context, module: Module, after_launch: Callable[[str], None]) -> None:
        """Raises Stopped for what no device would do, CudaError for what this one did not."""
        for index, operation in enumerate(self._operations):
            match operation["op"]:
                case "memset":
                    at = self._inside(operation["address"], operation["bytes"], "cudaMemset")
                    fill(context, at, operation["value"], operation["bytes"])
                case "copy":
                    source = self._inside(operation["source"], operation["bytes"], "cudaMemcpy")
                    to = self._inside(operation["to"], operation["bytes"], "cudaMemcpy")
                    copy(context, to, source, operation["bytes"])
                case "upload":
                    data = self._uploads[index]
                    data.enqueue(context, self._inside(operation["to"], data.size, "cudaMemcpy"))
                case "write_symbol":
                    self._write_symbol(context, module, operation, self._uploads[index])
                case "launch":
                    self._launch(context, module, operation)
                    after_launch(operation["kernel"])

    def _write_symbol(self, context: Context, module: Module, operation: Operation, data: Pinned) -> None:
        try:
            address, size = module.variable(operation["symbol"])
        except CudaError as error:
            raise Stopped(
                "unsupported", message=f"no variable {operation['symbol']}: {error.name}"
            ) from error
        if operation["offset"] + data.size > size:
            raise _fault("out of bounds", f"a write beyond the end of {operation['symbol']}", "")
        data.enqueue(context, address + operation["offset"])

    def _launch(self, context: Context, module: Module, operation: Operation) -> None:
        name = operation["kernel"]
        try:
            context.launch(
                Launching(
                    kernel=module.kernel(name, operation["shared_bytes"]),
                    grid=tuple(operation["grid"]),
                    block=tuple(operation["block"]),
                    shared_bytes=operation["shared_bytes"],
                    cooperative=operation["cooperative"],
                    parameters=bytes.fromhex(operation["parameters"]),
                )
            )
        except CudaError as error:
            if error.name in REFUSALS or error.name == "CUDA_ERROR_NOT_FOUND":
                raise Stopped(
                    "refused", message=f"the device refuses a launch of {name}: {error.name}"
                ) from error
            raise

    def _inside(self, address: int, size: int, what: str) -> int:
        """The real address of `size` bytes that lie in one allocation."""
        real = address + self._shift
        if size and not any(a.address <= real and real + size <= a.end for a in self.allocations):
            raise _fault("out of bounds", f"{what} of {size:,} bytes that lie in no allocation", "")
        return real

    def check_guards(self, memory: Range) -> None:
        if said := memory.damage(self.allocations, self._guard):
            raise _fault("out of bounds", said, "")


def _fault(kind: str, message: str, kernel: str) -> Stopped:
    return Stopped("fault", fault={"kind": kind, "message": message, "kernel": kernel})


def stopped_by(error: CudaError, kernel: str) -> Stopped:
    """What an error of the driver says of the kernel that ran last. A sick device is nobody's kernel."""
    if error.name in FAULTS:
        kind, message = FAULTS[error.name]
        return _fault(kind, f"{message} ({error.name})", kernel)
    if error.name == "CUDA_ERROR_LAUNCH_TIMEOUT":
        return Stopped("timeout", message="the driver ended a kernel that ran too long")
    if error.name == "CUDA_ERROR_OUT_OF_MEMORY":
        return Stopped("unsupported", message="the card has too little memory for this plan")
    return Stopped("device", message=str(error))


def unwrap(data: bytes) -> Bytes:
    return np.frombuffer(data, np.uint8)
