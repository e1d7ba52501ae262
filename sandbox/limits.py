"""How much one jailed process tree may use, with a named default for every kind of work the judge does."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20
GIB = 1 << 30


@dataclass(frozen=True)
class Limits:
    """Limits of one jail. Every one of them is enforced; none is advisory."""

    wall_seconds: float  # whole run; then everything in the jail is killed: "timeout"
    cpu_seconds: int  # per process (RLIMIT_CPU): "timeout"
    memory_bytes: int  # per process as RLIMIT_DATA, and over all processes as resident memory: "memory"
    output_bytes: (
        int  # kept of stdout and of stderr each, half head and half tail; 64 times as much: "output"
    )
    file_bytes: int  # size of one file, of /tmp, and of all files in one writable bind: "output"
    processes: int  # processes and threads at once (RLIMIT_NPROC)


COMPILE = Limits(
    wall_seconds=120,
    cpu_seconds=60,
    memory_bytes=4 * GIB,
    output_bytes=MIB,
    file_bytes=256 * MIB,
    processes=64,
)
RECORD = Limits(
    wall_seconds=10,
    cpu_seconds=10,
    memory_bytes=GIB,
    output_bytes=MIB // 8,
    file_bytes=256 * MIB,
    processes=64,
)
REFERENCE = Limits(
    wall_seconds=20,
    cpu_seconds=20,
    memory_bytes=4 * GIB,
    output_bytes=MIB // 4,
    file_bytes=GIB,
    processes=32,
)
EMULATE = Limits(
    wall_seconds=60,
    cpu_seconds=240,
    memory_bytes=8 * GIB,
    output_bytes=MIB,
    file_bytes=2 * GIB,
    processes=64,
)
TORCH = Limits(
    wall_seconds=120,
    cpu_seconds=480,
    memory_bytes=8 * GIB,
    output_bytes=MIB,
    file_bytes=2 * GIB,
    processes=256,
)
LOWER = Limits(
    wall_seconds=60, cpu_seconds=120, memory_bytes=4 * GIB, output_bytes=MIB, file_bytes=GIB, processes=64
)
#: A session on a GPU: several requests. The process is ours; its own deadlines are shorter.
GPU = Limits(
    wall_seconds=900,
    cpu_seconds=900,
    memory_bytes=16 * GIB,
    output_bytes=MIB // 4,
    file_bytes=8 * GIB,
    processes=64,
)
