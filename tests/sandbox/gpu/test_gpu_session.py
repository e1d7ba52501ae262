"""The replaying process and the session with it, on a driver made of host memory (see `host_card`)."""

from __future__ import annotations

import os
import struct
import threading
import time
from collections.abc import Sequence

import numpy as np
import pytest
from host_card import CUBIN, HostCard, health, host_card, host_driver

from sandbox.cancellation import Cancellation
from sandbox.emulator.client import Buffer, Replay
from sandbox.errors import Cancelled, Judged
from sandbox.gpu.client import JAIL_VARIABLE, Session, usable
from sandbox.gpu.devices import NoDevice
from sandbox.gpu.lease import quarantine, quarantined
from sandbox.gpu.wire import Side
from sandbox.plan import (
    DEVICE_BASE,
    GUARD_BYTES,
    SCRATCH_BASE,
    Allocate,
    Copy,
    Launch,
    LaunchPlan,
    Memset,
    Operation,
    Upload,
    WriteSymbol,
)

__all__ = ["host_card", "host_driver"]  # fixtures

X, Y = DEVICE_BASE + GUARD_BYTES, DEVICE_BASE + 5 * GUARD_BYTES
SCRATCH = SCRATCH_BASE + GUARD_BYTES
N = 1000


def launch(kernel: str, layout: str = "", *values: float, block: int = 32) -> Launch:
    parameters = struct.pack("<" + layout, *values).hex() if layout else ""
    return Launch(
        module=0, kernel=kernel, grid=(1, 1, 1), block=(block, 1, 1), shared_bytes=0, parameters=parameters
    )


class Card:
    """A session, and plans as a recording with its base would hold them."""

    def __init__(self) -> None:
        self.session = Session(usable("sm_90"), Cancellation())
        self.shift = self.session.base - DEVICE_BASE

    def __enter__(self) -> Card:
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()

    def add(self, a: float, source: int = X, to: int = Y, n: int = N) -> Launch:
        return launch("add", "ifQQ", n, a, source + self.shift, to + self.shift)

    def poke(self, address: int, value: int = 7) -> Launch:
        return launch("poke", "Qi", address + self.shift, value)

    def run(self, *replays: Replay, seconds: float = 5.0) -> list[tuple[str, dict[str, bytes]]]:
        results = self.session.replay(CUBIN, replays, seconds=seconds)
        return [(f"{r.status} {r.fault.message}" if r.fault else r.status, arrays) for r, arrays in results]


def replay(*operations: Operation, x: np.ndarray | None = None, poison: int = 0xFF, n: int = N) -> Replay:
    x = np.arange(n, dtype=np.float32) if x is None else x
    buffers = [
        Buffer("x", X, x.tobytes(), 4 * n, True, True, poison),
        Buffer("y", Y, None, 4 * n, True, False, poison),
    ]
    return Replay(LaunchPlan(operations=list(operations)), buffers, count=False)


def floats(arrays: dict[str, bytes], name: str = "y") -> list[float]:
    return np.frombuffer(arrays[name], np.float32).tolist()


def test_a_plan_runs_on_memory_of_its_own(host_card: HostCard) -> None:
    with Card() as card:
        assert card.session.base != DEVICE_BASE
        assert card.session.hello.l2_bytes == 1 << 20
        [(first, a), (second, b)] = card.run(replay(card.add(1.5)), replay(poison=0x5A))
    assert (first, second) == ("ok", "ok")
    assert floats(a) == [i + 1.5 for i in range(N)]
    assert floats(a, "x") == list(range(N))
    assert b["y"] == b"\x5a" * 4 * N  # nobody wrote, and nothing was left over


def test_every_kind_of_operation(host_card: HostCard) -> None:
    with Card() as card:
        operations: list[Operation] = [
            Allocate(address=SCRATCH, bytes=4 * N),
            card.add(1.0, to=SCRATCH),
            card.add(2.0, source=SCRATCH),
            Memset(address=Y, value=0, bytes=4),
            Upload(to=Y + 4, data=struct.pack("<f", 9.0).hex()),
            Copy(to=Y + 8, source=X + 40, bytes=4),
            WriteSymbol(module=0, symbol="counter", offset=0, data=struct.pack("<I", 77).hex()),
            launch("count", "Q", Y + 12 + card.shift),
            launch("count", "Q", Y + 16 + card.shift),
        ]
        [(said, arrays), (_, again)] = card.run(
            replay(*operations), replay(launch("count", "Q", Y + card.shift))
        )
    assert said == "ok"
    assert floats(arrays)[:3] == [0.0, 9.0, 10.0]
    assert struct.unpack("<2I", arrays["y"][12:20]) == (77, 78)
    assert floats(arrays)[5:] == [i + 3.0 for i in range(5, N)]
    assert struct.unpack("<I", again["y"][:4]) == (5,)  # a fresh module


@pytest.mark.parametrize(
    ("address", "words"),
    [
        (Y + 4 * N, "0 bytes behind the end of y, which has 4,000 bytes"),
        (Y + 4 * N + 100, "100 bytes behind the end of y"),
        (X - 1, "1 bytes before the start of x"),
        (DEVICE_BASE + (1 << 30), "belongs to no array"),
    ],
)
def test_what_is_written_elsewhere_is_found(host_card: HostCard, address: int, words: str) -> None:
    with Card() as card:
        [(said, _)] = card.run(replay(card.add(1.0), card.poke(address)), replay(card.add(1.0)))
        assert said.startswith("fault")
        assert words in said
        with pytest.raises(Judged, match="is over"):
            card.run(replay(card.add(1.0)))


@pytest.mark.parametrize("value", [0xFF, 0xC3, 0x5A, 0x66])
def test_no_value_hides_in_the_guards_of_both_poisons(host_card: HostCard, value: int) -> None:
    with Card() as card:
        poked = card.poke(Y + 4 * N, value)
        said = [s for s, _ in card.run(replay(poked), replay(poked, poison=0x5A))]
    assert said[-1].startswith("fault")


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        (Memset(address=Y + 4, value=0, bytes=4 * N), "cudaMemset of 4,000 bytes that lie in no allocation"),
        (Copy(to=X, source=Y - 4, bytes=8), "cudaMemcpy of 8 bytes"),
        (Upload(to=SCRATCH, data="00"), "cudaMemcpy of 1 bytes"),
        (WriteSymbol(module=0, symbol="counter", offset=2, data="000000"), "beyond the end of counter"),
    ],
)
def test_operations_outside_of_allocations(host_card: HostCard, operation: Operation, words: str) -> None:
    with Card() as card:
        [(said, _)] = card.run(replay(operation))
    assert said.startswith("fault")
    assert words in said


def test_what_a_kernel_does_to_itself(host_card: HostCard) -> None:
    with Card() as card:
        [(said, _)] = card.run(replay(launch("check")))
    assert "assertion" in said
    assert not quarantined(host_card.uuid)


def test_a_launch_that_is_refused(host_card: HostCard) -> None:
    with Card() as card, pytest.raises(Judged) as caught:
        card.run(replay(launch("nothing")))
    assert (caught.value.verdict, caught.value.fault) == ("launch_error", "candidate")
    assert "CUDA_ERROR_NOT_FOUND" in caught.value.message


def test_a_plan_larger_than_the_card(host_card: HostCard) -> None:
    with Card() as card:
        [(said, _)] = card.run(replay(Allocate(address=SCRATCH, bytes=1 << 29)))
    assert said == "unsupported"


def test_a_kernel_that_never_ends(host_card: HostCard) -> None:
    began = time.monotonic()
    with Card() as card:
        [(said, _)] = card.run(replay(launch("hang")), seconds=0.5)
    assert said == "timeout"
    assert time.monotonic() - began < 10
    assert not quarantined(host_card.uuid)


def test_cancelling_ends_the_process(host_card: HostCard) -> None:
    cancel = Cancellation()
    with Session(usable(), cancel) as session:
        threading.Timer(0.3, cancel.set).start()
        began = time.monotonic()
        with pytest.raises(Cancelled):
            session.replay(CUBIN, [replay(launch("hang"))], seconds=60)
    assert time.monotonic() - began < 10


def test_a_process_that_dies_is_our_fault(host_card: HostCard) -> None:
    with Card() as card, pytest.raises(Judged) as caught:
        card.run(replay(launch("die")))
    assert (caught.value.verdict, caught.value.fault) == ("internal_error", "kernelwright")


def test_memory_that_cannot_be_corrected_takes_the_card_out_of_service(host_card: HostCard) -> None:
    with Card() as card:
        host_card.say(health(host_card.uuid, uncorrectable=2))
        with pytest.raises(Judged) as caught:
            card.run(replay(launch("rot")))
    assert caught.value.fault == "kernelwright"
    assert "out of service now" in caught.value.message
    assert "ECC could not correct" in quarantined(host_card.uuid)
    with pytest.raises(NoDevice, match="every card is out of service"):
        usable()


def test_a_sick_card_is_seen_after_a_kernels_own_fault_too(host_card: HostCard) -> None:
    with Card() as card:
        host_card.say(health(host_card.uuid, action="Reset"))
        with pytest.raises(Judged, match="the driver asks for this: Reset"):
            card.run(replay(card.poke(DEVICE_BASE + (1 << 30))))
    assert quarantined(host_card.uuid)


def test_one_process_a_card(host_card: HostCard) -> None:
    cancel = Cancellation()
    with Card():
        threading.Timer(0.3, cancel.set).start()
        with pytest.raises(Cancelled):
            Session(usable(), cancel)
    with Card() as card:
        assert card.run(replay(card.add(1.0)))[0][0] == "ok"


def test_a_card_in_quarantine_is_not_waited_for(host_card: HostCard) -> None:
    devices = usable()
    quarantine(host_card.uuid, "a test\nsays so")
    with pytest.raises(NoDevice, match="a test says so"):
        Session(devices, Cancellation())


def test_without_a_jail_on_request(host_card: HostCard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(JAIL_VARIABLE, "off")
    with Card() as card:
        assert not card.session.jailed
        [(said, arrays)] = card.run(replay(card.add(1.5)))
    assert (said, floats(arrays)[0]) == ("ok", 1.5)


def driver_that(can: str) -> dict[str, str]:
    """The process's environment, with a driver that is not as most are."""
    return {"LD_LIBRARY_PATH": os.environ["LD_LIBRARY_PATH"], f"HOST_DRIVER_{can}": "1"}


def sides(card: Card, *kernels: Sequence[Operation], sets: int = 3) -> list[Side]:
    inputs = [np.arange(N, dtype=np.float32) + 100 * i for i in range(sets)]
    return [Side(CUBIN, [replay(*operations, x=x) for x in inputs]) for operations in kernels]


@pytest.mark.parametrize("graphs", [True, False])
def test_times_and_every_timed_output(
    host_card: HostCard, graphs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not graphs:
        monkeypatch.setattr("sandbox.gpu.client._library_path", lambda: driver_that("NO_GRAPHS"))
    seen: list[tuple[int, int]] = []
    with Card() as card:
        times = card.session.time(
            sides(card, [card.add(1.0)], [card.add(1.0), launch("wait", "i", 300)]),
            seconds=30,
            blocks=3,
            trials=4,
            on_progress=lambda done, of: seen.append((done, of)),
        )
        again = card.session.time(sides(card, [card.add(2.0)]), seconds=30, blocks=1, trials=2)
    assert times.launches == ("graph" if graphs else "stream")
    assert [t.shape for t in times.microseconds] == [(3, 4), (3, 4)]
    fast, slow = (float(np.median(t)) for t in times.microseconds)
    assert fast + 200 < slow < fast + 5000
    assert seen == [(20, 24)]
    # Three sets of inputs a side, each with the one right output; three trials settle, twelve are timed.
    assert sorted((o.side, o.set) for o in times.outputs) == [(s, i) for s in range(2) for i in range(3)]
    assert sum(output.count for output in times.outputs) == 2 * (3 + 12)
    for output in times.outputs:
        assert floats(output.arrays) == [i + 100 * output.set + 1.0 for i in range(N)]
    assert [times.shape for times in again.microseconds] == [(1, 2)]


def test_a_driver_that_reserves_less(host_card: HostCard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbox.gpu.client._library_path", lambda: driver_that("SMALL"))
    with Card() as card:
        [(said, arrays)] = card.run(replay(card.add(1.5)))
    assert (said, floats(arrays)[0]) == ("ok", 1.5)


def test_a_kernel_that_goes_wrong_later_is_seen(host_card: HostCard) -> None:
    """A module is fresh in every trial, so what it counts never gets further than its warm-up."""
    with Card() as card:
        times = card.session.time(
            sides(card, [card.add(1.0), launch("count", "Q", Y + card.shift)], sets=1),
            seconds=30,
            blocks=1,
            trials=4,
        )
    [output] = times.outputs
    assert struct.unpack("<I", output.arrays["y"][:4]) == (6,)


@pytest.mark.parametrize(
    ("kernel", "verdict"), [("hang", "timeout"), ("check", "runtime_error"), ("nothing", "launch_error")]
)
def test_a_kernel_that_fails_while_it_is_timed(host_card: HostCard, kernel: str, verdict: str) -> None:
    with Card() as card, pytest.raises(Judged) as caught:
        card.session.time(sides(card, [launch(kernel)]), seconds=1, blocks=1, trials=2)
    assert caught.value.verdict == verdict
