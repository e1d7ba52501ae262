"""What a program's kernels cost: counts of its launches, added up as they come, and metrics made of them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from sandbox.emulator.trace import LaunchTrace
from sandbox.metrics.launches import MeasuredLaunch, summed
from sandbox.metrics.measure import kernel_metrics
from sandbox.metrics.sampling import estimated
from sandbox.targets import Target
from sandbox.types import CompiledKernel, KernelMetrics

#: Different launches of one program that are told apart; more are counted only.
_MAX_ROWS = 1000

_Row = tuple[object, ...]


class Profile:
    """Equal launches (same kernel, grid, block and shared memory) are one row, however many there are."""

    def __init__(self) -> None:
        self._rows: dict[_Row, tuple[LaunchTrace, int]] = {}
        self._lock = threading.Lock()
        self.left_out = 0

    def add(self, trace: LaunchTrace) -> None:
        row: _Row = (
            *(trace.kernel, trace.grid, trace.block),
            *(trace.static_shared_bytes, trace.dynamic_shared_bytes),
        )
        with self._lock:
            known = self._rows.get(row)
            if known is not None:
                self._rows[row] = (summed([known[0], trace]), known[1] + 1)
            elif len(self._rows) < _MAX_ROWS:
                self._rows[row] = (trace, 1)
            else:
                self.left_out += 1

    def kernels(
        self, target: Target, machine_code: object, demangle: Callable[[str], str]
    ) -> list[KernelMetrics]:
        """The rows, those that executed most first.

        `machine_code`: what the runtime told of it, a list of {"symbol", "registers", "shared_bytes",
        "local_bytes"}.
        """
        compiled = {kernel.symbol: kernel for kernel in _compiled(machine_code)}
        with self._lock:
            rows = list(self._rows.values())
        measured = [
            kernel_metrics(
                MeasuredLaunch(estimated(trace, repeats), compiled.get(trace.kernel), target, repeats)
            )
            for trace, repeats in rows
        ]
        named = [kernel.model_copy(update={"name": demangle(kernel.name)}) for kernel in measured]
        return sorted(named, key=lambda kernel: -kernel.instructions)


def _compiled(told: object) -> Iterator[CompiledKernel]:
    """Those of which the registers are known. The runtime lives in the program's process: nothing is sure."""
    for entry in told if isinstance(told, list) else ():
        with contextlib.suppress(TypeError, KeyError, ValueError):
            if int(entry["registers"]) > 0:
                yield CompiledKernel(
                    name=str(entry["symbol"]),
                    symbol=str(entry["symbol"]),
                    registers=min(int(entry["registers"]), 255),
                    shared_bytes=max(int(entry["shared_bytes"]), 0),
                    local_bytes=max(int(entry["local_bytes"]), 0),
                    spill_store_bytes=0,
                    spill_load_bytes=0,
                )
