"""The launch plan: what a candidate's host code asked the device to do, as plain data.

The recorder writes it inside the jail, so it is hostile input: everything is bounded and validated here
before a replayer sees it. Addresses lie in one range that both sides reserve (`DEVICE_BASE`), so pointers
hidden in structs and tables mean the same thing on both sides and nothing is relocated.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sandbox.types import Data

DEVICE_BASE = 0x2000_0000_0000  # far from where Linux puts programs, heaps and libraries
TASK_BYTES = 1 << 36  # [DEVICE_BASE, +64 GiB): the task's own arrays, placed by the judge
SCRATCH_BASE = DEVICE_BASE + TASK_BYTES  # [.., +1 TiB): what the candidate allocates, placed by the recorder
SCRATCH_BYTES = 1 << 40
DEVICE_BYTES = TASK_BYTES + SCRATCH_BYTES
GUARD_BYTES = 1 << 16  # unmapped (for the checks) on both sides of every allocation

MAX_OPERATIONS = 100_000
MAX_UPLOAD_BYTES = 1 << 24

Address = Annotated[int, Field(ge=DEVICE_BASE, lt=DEVICE_BASE + DEVICE_BYTES)]
Dim = tuple[
    Annotated[int, Field(ge=1, lt=2**31)],
    Annotated[int, Field(ge=1, lt=65536)],
    Annotated[int, Field(ge=1, lt=65536)],
]
ScratchAddress = Annotated[int, Field(ge=SCRATCH_BASE, lt=SCRATCH_BASE + SCRATCH_BYTES)]
#: A mangled name: one printable word, since plans travel on as lines of words.
Symbol = Annotated[str, Field(pattern=r"^[!-~]+$", max_length=4096)]
Hex = Annotated[str, Field(pattern=r"^([0-9a-f]{2})*$", max_length=2 * MAX_UPLOAD_BYTES)]


class Allocate(Data):
    """cudaMalloc and its relatives. Memory starts uninitialised (poisoned)."""

    op: Literal["allocate"] = "allocate"
    address: ScratchAddress
    bytes: Annotated[int, Field(ge=0, le=SCRATCH_BYTES)]


class Free(Data):
    op: Literal["free"] = "free"
    address: ScratchAddress


class Memset(Data):
    op: Literal["memset"] = "memset"
    address: Address
    value: Annotated[int, Field(ge=0, le=255)]
    bytes: Annotated[int, Field(ge=0, le=DEVICE_BYTES)]


class Copy(Data):
    """Device to device."""

    op: Literal["copy"] = "copy"
    to: Address
    source: Address
    bytes: Annotated[int, Field(ge=0, le=DEVICE_BYTES)]


class Upload(Data):
    """Host to device: the bytes as they were at the call."""

    op: Literal["upload"] = "upload"
    to: Address
    data: Hex


class WriteSymbol(Data):
    """cudaMemcpyToSymbol: bytes into a `__device__` or `__constant__` variable."""

    op: Literal["write_symbol"] = "write_symbol"
    module: Annotated[int, Field(ge=0, lt=64)]
    symbol: Symbol
    offset: Annotated[int, Field(ge=0, lt=2**48)]
    data: Hex


class Launch(Data):
    op: Literal["launch"] = "launch"
    module: Annotated[int, Field(ge=0, lt=64)]  # which fat binary registered it, in order of registration
    kernel: Symbol  # mangled name, as the PTX entry is called
    grid: Dim
    block: tuple[
        Annotated[int, Field(ge=1, le=1024)],
        Annotated[int, Field(ge=1, le=1024)],
        Annotated[int, Field(ge=1, le=64)],
    ]
    shared_bytes: Annotated[int, Field(ge=0, le=232448)]  # dynamic
    parameters: Hex  # the raw parameter block, laid out as the PTX `.param` declarations say
    cooperative: bool = False
    stream: Annotated[int, Field(ge=0, lt=2**31)] = 0


Operation = Annotated[
    Allocate | Free | Memset | Copy | Upload | WriteSymbol | Launch, Field(discriminator="op")
]


class LaunchPlan(Data):
    operations: Annotated[list[Operation], Field(max_length=MAX_OPERATIONS)]

    @property
    def launches(self) -> list[Launch]:
        return [operation for operation in self.operations if isinstance(operation, Launch)]
