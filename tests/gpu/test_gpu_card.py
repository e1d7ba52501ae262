"""A real card: what a session does to it, what kernels cannot do to each other, and what its clock says.

Skipped, with a sentence, where there is no card. What both backends must do is in tests/contracts.
"""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import card
import numpy as np
import pytest

from sandbox import timing
from sandbox.cancellation import Cancellation
from sandbox.errors import Cancelled, Judged
from sandbox.gpu.client import Session, usable
from sandbox.gpu.lease import quarantined
from sandbox.plan import DEVICE_BYTES
from sandbox.targets import TARGETS

pytestmark = pytest.mark.usefixtures("gpu")

ROOT = Path(__file__).resolve().parents[2]
COPY = """
__global__ void copy(int n, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}
extern "C" void launch(int n, const float *x, float *y) { copy<<<(n + 255) / 256, 256>>>(n, x, y); }
"""
ENDLESS = """
__global__ void endless(volatile float *y) { while (true) y[0] += 1; }
extern "C" void launch(int n, const float *x, float *y) { endless<<<1024, 256>>>(y); }
"""
FAR = """
__global__ void far(float *y) { y[1ll << 33] = 1; }
extern "C" void launch(int n, const float *x, float *y) { far<<<1, 1>>>(y); }
"""
#: The sum of all x, one partial sum a block: reads much, writes little.
SUM = """
__global__ void sum(int n, const float *x, float *y) {
  float own = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) own += LOAD(x + i);
  for (int step = 16; step; step /= 2) own += __shfl_xor_sync(~0u, own, step);
  if (threadIdx.x % 32 == 0) atomicAdd(y + blockIdx.x, own);
}
extern "C" void launch(int n, const float *x, float *y) {
  cudaMemset(y, 0, 1024 * sizeof(float));
  sum<<<1024, 256>>>(n, x, y);
}
"""
KEEPING = """
__device__ float kept(const float *at) {
  float value;
  asm volatile("{ .reg .b64 policy; createpolicy.fractional.L2::evict_last.b64 policy, 1.0;\\n"
               "ld.global.L2::cache_hint.f32 %0, [%1], policy; }" : "=f"(value) : "l"(at));
  return value;
}
"""


def works(n: int = 1000) -> None:
    x = card.numbers(n)
    with card.session() as session:
        said, y = card.run(COPY, session, x)
    assert said == "ok"
    assert y is not None
    assert y.tobytes() == x.tobytes()


def test_a_session_and_what_it_says_of_itself() -> None:
    with card.session() as session:
        assert session.jailed
        assert session.base % (2 << 20) == 0
        assert session.base + DEVICE_BYTES < 1 << 57
        assert session.hello.l2_bytes >= 1 << 20
        assert session.hello.multiprocessors == TARGETS[card.TARGET].sm_count


def test_a_kernel_that_never_ends_is_ended_and_the_card_goes_on() -> None:
    with card.session() as session:
        uuid = session.device.uuid
        said, _ = card.run(ENDLESS, session, card.numbers(1000), seconds=1.0)
    assert said == "timeout"
    works()
    assert not quarantined(uuid)


def test_cancelling_ends_a_kernel() -> None:
    cancel = Cancellation()
    with Session(usable(card.TARGET), cancel) as session:
        one = card.side(ENDLESS, session, [card.numbers(1000)])
        threading.Timer(0.5, cancel.set).start()
        began = time.monotonic()
        with pytest.raises(Cancelled):
            session.replay(one.cubin, one.replays, seconds=60)
    assert time.monotonic() - began < 15
    works()


def test_a_fault_ends_the_session_and_nothing_else() -> None:
    with card.session() as session:
        uuid = session.device.uuid
        assert card.run(FAR, session, card.numbers(1000))[0] == "out of bounds"
        with pytest.raises(Judged, match="is over"):
            card.run(COPY, session, card.numbers(1000))
    works()
    assert not quarantined(uuid)


def test_one_process_a_card() -> None:
    cards, cancel = usable(card.TARGET), Cancellation()
    with Session(cards[:1], cancel):
        threading.Timer(0.5, cancel.set).start()
        with pytest.raises(Cancelled):
            Session(cards[:1], cancel)


def test_text_for_a_compiler_is_not_run() -> None:
    """Machine code only: nothing is compiled in the process that holds the card."""
    with card.session() as session:
        one = card.side(COPY, session, [card.numbers(10)])
        ptx = b".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry copy() { ret; }\n\0"
        with pytest.raises(Judged) as caught:
            session.replay(ptx, one.replays, seconds=5)
    assert caught.value.fault == "kernelwright"


def test_a_copy_takes_as_long_as_memory_needs() -> None:
    n = 1 << 25
    with card.session() as session:
        one = card.side(COPY, session, [card.numbers(n, i) for i in range(2)])
        times = session.time([one], seconds=120, blocks=3, trials=10)
        device = session.device
    found = timing.interval(times.microseconds[0])
    target = TARGETS[device.arch]
    rate = 8 * n / found.median * 1e6
    assert 0.5 * target.dram_bandwidth < rate <= target.dram_bandwidth, found
    assert timing.implausible(found.median, bytes_read=4 * n, target=target) == ""
    assert all(o.arrays["y"] == card.numbers(n, o.set).tobytes() for o in times.outputs)


@pytest.mark.parametrize("load", ["*", "kept"], ids=["plain", "evict_last"])
def test_nothing_is_read_from_a_cache_that_was_flushed(load: str) -> None:
    """16 MiB fit into the L2 cache of an H200, and there is an instruction that asks to keep them there."""
    n = 1 << 22
    source = (KEEPING if load == "kept" else "") + SUM.replace("LOAD", load)
    with card.session() as session:
        sides = [card.side(source, session, [card.numbers(n, i) for i in range(2)], outputs=1024)]
        times = session.time(sides, seconds=60)
        target = TARGETS[session.device.arch]
    found = timing.interval(times.microseconds[0])
    assert timing.implausible(found.median, bytes_read=4 * n, target=target) == "", found


def test_a_kernel_is_as_fast_as_itself() -> None:
    with card.session() as session:
        inputs = [card.numbers(1 << 20, i) for i in range(3)]
        times = session.time([card.side(COPY, session, inputs) for _ in range(2)], seconds=60)
    found = timing.compare(times.microseconds[0], times.microseconds[1])
    assert not found.faster_by(0.05)
    assert 0.9 < found.speedup < 1.1, found


def test_what_a_kernel_keeps_in_a_variable_is_of_no_use_to_it() -> None:
    """The first call computes and remembers, the second gives back what is remembered: another answer."""
    source = """
__device__ float memory[1000];
__device__ int calls;
__global__ void lazy(int n, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  if (!calls) memory[i] = x[i] + 1;
  y[i] = memory[i];
}
__global__ void called() { calls++; }
extern "C" void launch(int n, const float *x, float *y) {
  lazy<<<(n + 255) / 256, 256>>>(n, x, y);
  called<<<1, 1>>>();
}
"""
    inputs = [card.numbers(1000, i) for i in range(3)]
    with card.session() as session:
        assert card.run(source, session, inputs[0])[0] == "ok"
        one = card.side(source, session, inputs)
        times = session.time([one], seconds=60, blocks=1, trials=6)
    assert all(o.arrays["y"] != (inputs[o.set] + 1).tobytes() for o in times.outputs)


def test_work_of_several_kernels_is_timed_to_its_end() -> None:
    slow = COPY.replace("y[i] = x[i];", "{ y[i] = x[i]; for (int k = 0; k < 20; k++) __nanosleep(1000); }")
    other = slow.replace(
        "copy<<<(n + 255) / 256, 256>>>(n, x, y);",
        "cudaStream_t aside; cudaStreamCreate(&aside); copy<<<(n + 255) / 256, 256, 0, aside>>>(n, x, y);",
    )
    assert other != slow
    with card.session() as session:
        inputs = [card.numbers(1000, i) for i in range(2)]
        times = session.time([card.side(s, session, inputs) for s in (COPY, slow, other)], seconds=60)
    fast, straight, aside = (float(np.median(t)) for t in times.microseconds)
    assert straight > fast + 10
    assert aside > fast + 10


def test_the_command_line_judges_on_the_card() -> None:
    kernel = ROOT / "tests/fixtures/kernels/right/saxpy_plain.cu"
    arguments = ["evaluate", "examples/c/saxpy.c", str(kernel), "--backend", "gpu", "--json"]
    try:
        importlib.metadata.version("kernelwright")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("this Python finds the sources, but kernelwright is not installed: there is no command")
    finished = subprocess.run(
        [sys.executable, "-m", "webapp.cli.main", *arguments], capture_output=True, text=True, cwd=ROOT
    )
    assert finished.returncode == 0, finished.stderr
    evaluation = json.loads(finished.stdout)
    assert evaluation["backend"] == "gpu"
    assert evaluation["timing"]["candidate_us"]["median"] > 0
    assert evaluation["metrics"]["measured_by"] == "emulator"
