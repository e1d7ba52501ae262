"""What a card and this backend can do: `kernelwright bench gpu`, or `python -m sandbox.gpu.bench` on a node
that has only the judge.

Kernels of the project's own, through everything a candidate goes through: nvcc in the jail, recording,
replay, timing. Prints one table; what a number is compared with is beside it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sandbox import timing, toolchain
from sandbox.cancellation import Cancellation
from sandbox.emulator.wire import Buffer, Replay
from sandbox.gpu.client import Session, usable
from sandbox.gpu.devices import NoDevice, clocks_slowed
from sandbox.gpu.wire import Side, Times
from sandbox.plan import DEVICE_BASE, GUARD_BYTES, LaunchPlan
from sandbox.ptx import parameter_layout
from sandbox.recorder.client import record
from sandbox.targets import TARGETS, Target
from sandbox.tasks.base import Parameter

#: Elements of the large copy: several times the L2 cache of any card.
LARGE = 1 << 26
SMALL = 1 << 20
#: A copy below this share of the data sheet's bandwidth says that the card, or this backend, is not well.
LEAST_BANDWIDTH = 0.6
_SECONDS = 300.0

_SOURCE = r"""
__global__ void copy(long long n, const float4 *x, float4 *y) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}
// The same work and, for the last `extra` elements, once more.
__global__ void more(long long n, long long extra, const float4 *x, float4 *y) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
  else if (i < n + extra) y[i - extra] = x[i - extra];
}
extern "C" void launch(int n, int extra, const float *x, float *y) {
  long long vectors = n / 4, again = extra / 4;
  if (extra) more<<<(vectors + again + 255) / 256, 256>>>(vectors, again, (const float4 *)x, (float4 *)y);
  else copy<<<(vectors + 255) / 256, 256>>>(vectors, (const float4 *)x, (float4 *)y);
}
"""
_PARAMETERS = [
    Parameter(name="n", kind="scalar", dtype="int32", c_type="int"),
    Parameter(name="extra", kind="scalar", dtype="int32", c_type="int"),
    Parameter(name="x", kind="array", dtype="float32", c_type="const float *"),
    Parameter(name="y", kind="array", dtype="float32", c_type="float *"),
]


@dataclass(frozen=True)
class Row:
    what: str
    found: str
    wanted: str = ""  # empty: nothing is asked of it
    good: bool = True


class _Copies:
    """The copying kernel on one session: plans of several sizes, all on the same arrays."""

    def __init__(self, session: Session, target: Target) -> None:
        self._session, self._target = session, target
        self.compiled = toolchain.compile_candidate(_SOURCE, target=target.arch, cancel=Cancellation())
        if self.compiled.cubin is None:
            raise RuntimeError(f"nvcc refuses the benchmark's kernel: {self.compiled.compilation.log[-500:]}")
        self._cubin = self.compiled.cubin.read_bytes()

    def side(self, n: int, *, extra: int = 0, sets: int = 2) -> Side:
        addresses = {"x": DEVICE_BASE + GUARD_BYTES, "y": DEVICE_BASE + 2 * GUARD_BYTES + 8 * n}
        plan = self._plan(n, extra, addresses)
        return Side(
            self._cubin, [Replay(plan, self._arrays(n, i, addresses), count=False) for i in range(sets)]
        )

    def _plan(self, n: int, extra: int, addresses: Mapping[str, int]) -> LaunchPlan:
        [plan] = record(
            self.compiled,
            _PARAMETERS,
            [{"n": n, "extra": extra, **addresses}],
            layout=parameter_layout(self.compiled.ptx[0]),
            target=self._target,
            cancel=Cancellation(),
            base=self._session.base,
        )
        return plan

    def _arrays(self, n: int, seed: int, addresses: Mapping[str, int]) -> list[Buffer]:
        x = np.random.default_rng(seed).standard_normal(n, dtype=np.float32)
        return [
            Buffer("x", addresses["x"], x.tobytes(), 4 * n, False, True, 0xFF),
            Buffer("y", addresses["y"], None, 4 * n, True, False, 0xFF),
        ]

    def time(self, sides: Sequence[Side], blocks: int = timing.BLOCKS, trials: int = timing.TRIALS) -> Times:
        """Times them, and sees that every timed output is its input."""
        times = self._session.time(sides, seconds=_SECONDS, blocks=blocks, trials=trials)
        for output in times.outputs:
            x = sides[output.side].replays[output.set].buffers[0].data
            if output.arrays["y"] != x:
                raise RuntimeError(f"side {output.side} copied wrongly in {output.count} trials")
        return times


def measure(say: Callable[[str], None], *, repeat: int = 20) -> dict[str, Any]:
    """Rows of the table, with raw numbers. `repeat`: comparisons of a kernel with itself. Raises NoDevice."""
    devices = [device for device in usable() if device.arch in TARGETS]
    if not devices:
        raise NoDevice("no card here is of an architecture that Kernelwright knows")
    target = TARGETS[devices[0].arch]
    rows: list[Row] = []
    began = time.monotonic()
    with Session(devices, Cancellation()) as session:
        ready = time.monotonic() - began
        rows += _facts(session, ready)
        copies = _Copies(session, target)
        say("replaying")
        rows += _replays(session, copies)
        say("timing a large copy")
        rows += _bandwidth(copies, target)
        say("timing different work")
        rows += _different(copies)
        comparisons = []
        for number in range(repeat):
            one, other = copies.side(SMALL), copies.side(SMALL)
            times = copies.time([one, other])
            comparisons.append(timing.compare(times.microseconds[0], times.microseconds[1]))
            say(f"a kernel with itself: {number + 1} of {repeat}: {comparisons[-1].speedup:.4f}")
        rows += _same(comparisons)
        slowed = clocks_slowed(session.device.uuid)
    rows.append(Row("slowed by heat or hardware afterwards", ", ".join(slowed) or "no", "no", not slowed))
    return {"device": str(session.device), "target": target.arch, "rows": [asdict(row) for row in rows]}


def table(result: Mapping[str, Any]) -> str:
    lines = [str(result["device"]), "", "| what | found | wanted | |", "| --- | --- | --- | --- |"]
    for row in result["rows"]:
        verdict = "" if not row["wanted"] else "ok" if row["good"] else "NOT OK"
        lines.append(f"| {row['what']} | {row['found']} | {row['wanted']} | {verdict} |")
    return "\n".join(lines)


def good(result: Mapping[str, Any]) -> bool:
    return all(row["good"] for row in result["rows"])


def _facts(session: Session, ready: float) -> list[Row]:
    hello = session.hello
    return [
        Row("jail", "yes" if session.jailed else "off", "yes", session.jailed),
        Row("process, context and range", f"{ready:.2f} s, of it the driver {hello.seconds:.2f} s"),
        Row("the device's range begins at", f"{hello.base:#x}"),
        Row("L2 cache", f"{hello.l2_bytes >> 20} MiB"),
        Row("multiprocessors", str(hello.multiprocessors)),
        Row("kernels can reach host memory", "yes" if hello.host_memory_open else "no"),
    ]


def _replays(session: Session, copies: _Copies) -> list[Row]:
    side = copies.side(SMALL, sets=10)
    began = time.monotonic()
    results = session.replay(side.cubin, side.replays, seconds=60)
    each = (time.monotonic() - began) / len(side.replays)
    right = [
        result.status == "ok" and arrays["y"] == replay.buffers[0].data
        for (result, arrays), replay in zip(results, side.replays, strict=False)
    ]
    found = f"{sum(right)} of {len(side.replays)} right, {1000 * each:.1f} ms each"
    return [Row("replays of a 4 MiB copy", found, "all right", len(right) == 10 and all(right))]


def _bandwidth(copies: _Copies, target: Target) -> list[Row]:
    times = copies.time([copies.side(LARGE)], blocks=3, trials=10)
    found = timing.interval(times.microseconds[0])
    rate = 8 * LARGE / found.median * 1e6
    share = rate / target.dram_bandwidth
    suspicion = timing.implausible(found.median, bytes_read=4 * LARGE, target=target)
    return [
        Row("launches are timed as", times.launches),
        Row("the time of no work", f"{times.empty_us:.2f} us"),
        Row(
            f"copy of {4 * LARGE >> 20} MiB",
            f"{found.median:.1f} us ({found.low:.1f} to {found.high:.1f}), {rate / 1e12:.2f} TB/s",
            f"{LEAST_BANDWIDTH:.0%} to 100% of {target.dram_bandwidth / 1e12:.1f} TB/s",
            LEAST_BANDWIDTH <= share <= 1 and not suspicion,
        ),
        Row("variation over its trials", f"{timing.variation(times.microseconds[0]):.2%}"),
    ]


def _different(copies: _Copies) -> list[Row]:
    """A quarter more traffic must be seen as such, and not as less than it is."""
    times = copies.time([copies.side(LARGE // 8, extra=LARGE // 32), copies.side(LARGE // 8)])
    found = timing.compare(times.microseconds[0], times.microseconds[1])
    return [
        Row(
            "without a quarter more work",
            f"{found.speedup:.3f} times as fast ({found.low:.3f} to {found.high:.3f}, p {found.p:.4f})",
            "faster by more than 5%",
            found.faster_by(0.05),
        )
    ]


def _same(comparisons: Sequence[timing.Comparison]) -> list[Row]:
    if not comparisons:
        return []
    false = sum(each.faster_by(0.05) for each in comparisons)
    spread = [each.speedup for each in comparisons]
    most = len(comparisons) // 100
    return [
        Row(
            f"a kernel with itself, {len(comparisons)} times",
            f"{min(spread):.4f} to {max(spread):.4f}; faster by 5%: {false}; "
            f"faster at all: {sum(each.faster_by(0.0) for each in comparisons)}",
            f"faster by 5%: at most {most}",
            false <= most,
        )
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m sandbox.gpu.bench", description=__doc__)
    parser.add_argument("--repeat", type=int, default=20, help="comparisons of a kernel with itself")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    try:
        result = measure(lambda text: print(text, file=sys.stderr), repeat=options.repeat)
    except NoDevice as missing:
        print(f"{missing}. {missing.how}", file=sys.stderr)
        return 2
    print(json.dumps(result) if options.json else table(result))
    return 0 if good(result) else 1


if __name__ == "__main__":
    sys.exit(main())
