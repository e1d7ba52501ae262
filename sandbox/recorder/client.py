"""From a compiled candidate and arguments to launch plans: one jail, one fresh process a call."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, ValidationError

from sandbox import jail, native
from sandbox.cancellation import Cancellation
from sandbox.errors import Cancelled, Judged
from sandbox.limits import MIB, RECORD, Limits
from sandbox.plan import DEVICE_BASE, MAX_OPERATIONS, LaunchPlan, Operation
from sandbox.recorder.launchable import Layout, first_impossible, kernels_of
from sandbox.recorder.tables import device_lines, kernel_line
from sandbox.targets import Target
from sandbox.tasks.base import Parameter
from sandbox.toolchain import Compiled
from sandbox.types import Data

#: Parameter name -> scalar value, or an array's device address as in the emulator.
Arguments = Mapping[str, int | float]

#: Of all plans of one judgement together: they are parsed in the judge's own process.
_MAX_DOCUMENTS_BYTES = 160 * MIB
#: The harness ends with this where its own libraries lie in the device's range; they lie elsewhere next time.
_RANGE_TAKEN = 3
_TRIES = 5


class Unsupported(Data):
    call: Annotated[str, Field(max_length=4096)]
    why: Annotated[str, Field(max_length=4096)]


class Dropped(Data):
    """A launch the device would have refused, with what the runtime said."""

    kernel: Annotated[str, Field(max_length=4096)]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    error: Annotated[str, Field(max_length=100)]
    reason: Annotated[str, Field(max_length=4096)]


class Recording(Data):
    """What one call left behind. Written in the process that ran hostile code: data, not truth."""

    outcome: Literal["returned", "exception", "exit", "signal", "device_read", "load"]
    detail: Annotated[str, Field(max_length=1 << 16)]
    unsupported: Unsupported | None
    dropped: Annotated[list[Dropped], Field(max_length=20)]
    operations: Annotated[list[Operation], Field(max_length=MAX_OPERATIONS)]


def record(
    compiled: Compiled,
    parameters: Sequence[Parameter],
    calls: Sequence[Arguments],
    *,
    layout: Layout,
    target: Target,
    cancel: Cancellation,
    limits: Limits = RECORD,
    base: int = DEVICE_BASE,
) -> list[LaunchPlan]:
    """Calls `launch` once for every set of arguments, and a second time for the first; returns the plans.

    `base` is where the device's range really begins. Only pointers that kernels are given and bytes that are
    uploaded know of it: operations of a plan name the addresses that the emulator would have.

    Raises Judged: "launch_error" when the host code crashes, exits, throws, damages its plan or asks for a
    launch the device refuses; "unsupported" for what is not recorded; "rule_violation" when the second
    recording differs; "timeout". Raises Cancelled, JailUnavailable.
    """
    assert compiled.host_object is not None, "only what compiled can be recorded"
    if not calls:
        return []
    sets = [calls[0], *calls]
    kernels = kernels_of(compiled.compilation.kernels, compiled.ptx, layout, target)
    job = device_lines(target) + f"base\t{base}\n" + "".join(map(kernel_line, kernels))
    job += "".join(_call(parameters, arguments, base) for arguments in sets)
    with _result_files(len(sets) + 1) as (status, *results):
        for _ in range(_TRIES):
            finished = _run(compiled.host_object, job, status, results, cancel, limits)
            if finished.reason != "exited" or finished.returncode != _RANGE_TAKEN:
                break
        _require_ended(finished, limits)
        if sum(os.fstat(file).st_size for file in (status, *results)) > _MAX_DOCUMENTS_BYTES:
            raise _launch_error("the launch plans are too large")
        ends = _ends(_content(status))
        names = {kernel.symbol: kernel.name for kernel in compiled.compilation.kernels}
        words = _last_words(finished)
        plans = [
            _plan(_content(result), ends.get(i, ""), words, names, _Places(parameters, sets[i], base))
            for i, result in enumerate(results)
        ]
    _require_same(plans[0], plans[1], names)
    by_symbol = {kernel.symbol: kernel for kernel in kernels}
    for plan in plans:
        if impossible := first_impossible(plan, by_symbol, target):
            raise _damaged(impossible)
    return plans[1:]


def _run(
    host_object: Path, job: str, status: int, results: Sequence[int], cancel: Cancellation, limits: Limits
) -> jail.Finished:
    harness, runtime = native.path("record"), native.path("cudart")
    binds = [
        jail.Bind(harness.parent, Path("/record")),
        jail.Bind(runtime.parent, Path("/cudart")),
        jail.Bind(host_object, Path("/candidate.so")),
    ]
    command = [f"/record/{harness.name}", f"/cudart/{runtime.name}", "/candidate.so"]
    return jail.run(
        [*command, *map(str, [status, *results])],
        binds=binds,
        limits=limits,
        cancel=cancel,
        stdin=job.encode(),
        pass_fds=[status, *results],
        tmp=False,
    )


@dataclass(frozen=True)
class _Places:
    """Where one call's arrays lie."""

    parameters: Sequence[Parameter]
    arguments: Arguments
    base: int

    def nearest(self, address: int) -> str:
        """A clause about a real address."""
        address += DEVICE_BASE - self.base
        arrays = [(int(self.arguments[p.name]), p.name) for p in self.parameters if p.kind == "array"]
        below = [(start, name) for start, name in arrays if start <= address]
        if not below:
            return f"address {address:#x}"
        start, name = max(below)
        return f"{address - start} bytes into {name}; only kernels may use it"


def _call(parameters: Sequence[Parameter], arguments: Arguments, base: int) -> str:
    words = []
    for parameter in parameters:
        value = arguments[parameter.name]
        words.append(_argument(parameter, value + base - DEVICE_BASE if parameter.kind == "array" else value))
    return " ".join(["call", *words]) + "\n"


def _argument(parameter: Parameter, value: int | float) -> str:
    dtype = np.dtype(parameter.dtype)
    if parameter.kind == "array" or dtype.kind in "iub":
        return f"i:{int(value) & 0xFFFF_FFFF_FFFF_FFFF:x}"
    if dtype.kind == "f" and dtype.itemsize in (2, 4, 8):
        bits = int.from_bytes(np.asarray(value, dtype).tobytes(), "little")
        # CUDA's __half is a struct around an integer, and travels as one.
        return f"{'i' if 'half' in parameter.c_type else 'f'}:{bits:x}"
    raise ValueError(f"parameter {parameter.name}: {parameter.c_type} cannot be passed by value")


@contextlib.contextmanager
def _result_files(count: int) -> Iterator[list[int]]:
    files = [os.memfd_create("result") for _ in range(count)]
    try:
        yield files
    finally:
        for file in files:
            os.close(file)


def _content(file: int) -> bytes:
    return os.pread(file, os.fstat(file).st_size, 0)


def _ends(status: bytes) -> dict[int, str]:
    """Call -> how its process ended, in words, when that was not as it should be."""
    ends: dict[int, str] = {}
    for line in status.decode().splitlines():
        call, how, number = line.split()
        if how == "signal":
            ends[int(call)] = f"was killed by {_signal(int(number))}"
        else:
            ends[int(call)] = f"ended its process with exit code {number}"
    return ends


def _require_ended(finished: jail.Finished, limits: Limits) -> None:
    match finished.reason:
        case "cancelled":
            raise Cancelled
        case "timeout":
            raise Judged(
                "timeout",
                "candidate",
                f"launch did not return within {limits.wall_seconds:.0f} s of host time",
            )
        case "memory":
            raise _launch_error(f"launch used more than {limits.memory_bytes >> 20} MiB of host memory")
        case "output":
            raise _launch_error("launch flooded its output")
        case "exited" if finished.returncode in (2, _RANGE_TAKEN):
            raise RuntimeError(finished.stderr.decode(errors="replace"))
        case "exited" if finished.returncode != 0:
            raise _launch_error("launch ended the recorder instead of returning")


def _last_words(finished: jail.Finished) -> str:
    """The last line the host code printed, as the end of a sentence."""
    for output in (finished.stderr, finished.stdout):
        lines = output.decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        if last:
            return f"; its last words: {last[:300]}"
    return ""


def _plan(
    document: bytes,
    end: str,
    words: str,
    names: Mapping[str, str],
    places: _Places,
) -> LaunchPlan:
    """`end`: how the process ended, when not as it should; `words`: what it printed last."""
    if not document:
        raise _launch_error(f"launch did not return: it {end or 'ended its process'}{words}")
    try:
        recording = Recording.model_validate_json(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the document"
        raise _damaged(f"{where}: {first['msg']}") from None
    if recording.unsupported is not None:
        call, why = recording.unsupported.call, recording.unsupported.why
        raise Judged("unsupported", "kernelwright", f"launch uses {names.get(call, call)}: {why}")
    dropped = _dropped(recording.dropped[0], names) if recording.dropped else ""
    if recording.outcome != "returned":
        ending = _ending(recording, places)
        raise _launch_error(f"{dropped}; then {ending}" if dropped else f"{ending}{words}")
    if dropped:
        raise _launch_error(dropped)
    return LaunchPlan(operations=recording.operations)


def _ending(recording: Recording, places: _Places) -> str:
    detail = recording.detail
    match recording.outcome:
        case "exception":
            return f"launch threw an exception: {detail}"
        case "exit":
            return f"launch called exit({detail})"
        case "load":
            return f"the compiled candidate cannot be loaded: {detail}"
        case "device_read" if detail.isdigit():
            return f"host code touched device memory ({places.nearest(int(detail))})"
        case "signal" if detail.isdigit():
            return f"launch crashed with {_signal(int(detail))}"
    return "launch crashed"


def _dropped(launch: Dropped, names: Mapping[str, str]) -> str:
    grid, block = ("x".join(map(str, size)) for size in (launch.grid, launch.block))
    name = names.get(launch.kernel, launch.kernel)
    return f"{name} was not launched with grid {grid}, block {block}: {launch.reason} ({launch.error})"


def _require_same(first: LaunchPlan, second: LaunchPlan, names: Mapping[str, str]) -> None:
    if first == second:
        return
    pairs = zip(first.operations, second.operations, strict=False)
    differing = (f"operation {i} ({a.op})" for i, (a, b) in enumerate(pairs) if a != b)
    lengths = f"{len(first.operations)} and {len(second.operations)} operations"
    raise Judged(
        "rule_violation",
        "candidate",
        "two calls of launch with the same arguments asked for different work: "
        f"{next(differing, lengths)}; host code must depend on its arguments alone",
    )


def _launch_error(message: str) -> Judged:
    return Judged("launch_error", "candidate", message)


def _damaged(how: str) -> Judged:
    return _launch_error(f"the host code damaged its launch plan ({how})")


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
