"""A whole judgement with a card: compiled by nvcc, counted in the emulator, recorded where the driver put
the device's range, replayed and timed. The card is a driver made of host memory (see `host_card`), which
knows one kernel, `saxpy`, by its name."""

from __future__ import annotations

from pathlib import Path

import pytest
from host_card import HostCard, health, host_card, host_driver

from sandbox import client, doctor
from sandbox.cancellation import Cancellation
from sandbox.errors import TaskProblem
from sandbox.gpu import bench
from sandbox.gpu.lease import quarantine
from sandbox.tasks.load import load_task
from sandbox.types import Evaluation
from trainer import reward

__all__ = ["host_card", "host_driver"]  # fixtures

ROOT = Path(__file__).resolve().parents[3]
KERNELS = ROOT / "tests/fixtures/kernels"


def judged(source: str, *, backend: str = "auto", target: str = "sm_90") -> Evaluation:
    path, cancel = ROOT / "examples/c/saxpy.c", Cancellation()
    task = load_task(path.read_bytes(), filename=path.name, entry=None, inputs=None, cancel=cancel)
    return client.evaluate(task, source, backend=backend, target=target, cancel=cancel)


def test_a_right_kernel_is_verified_measured_and_timed(host_card: HostCard) -> None:
    evaluation = judged((KERNELS / "right/saxpy_plain.cu").read_text())
    assert (evaluation.verdict, evaluation.backend) == ("passed", "gpu"), evaluation.message
    assert evaluation.jailed
    assert evaluation.verification is not None
    assert evaluation.verification.draws >= 8  # the usual ones, and three more sets for the clock
    assert evaluation.metrics is not None
    assert evaluation.metrics.measured_by == "emulator"
    timing = evaluation.timing
    assert timing is not None
    assert timing.trials == 7 * 20
    assert timing.candidate_us.low <= timing.candidate_us.median <= timing.candidate_us.high
    assert timing.device.startswith("Host Card")
    [c] = timing.baselines
    assert (c.name, c.us > 0) == ("c", True)
    assert c.speedup_low <= c.speedup <= c.speedup_high
    assert reward.reference_speedup(timing) == c.speedup
    assert {"emulate", "card", "replay", "verify", "time", "measure"} <= set(evaluation.stages)
    assert reward.attach(evaluation).reward is not None
    unbelieved = timing.model_copy(update={"implausible": "faster than light"})
    assert reward.attach(evaluation.model_copy(update={"timing": unbelieved})).reward is None


def test_counts_of_a_kernel_that_is_wrong_in_the_emulator_are_not_taken(host_card: HostCard) -> None:
    """Such a kernel might find out where it runs: right on the card, something else where it is counted."""
    evaluation = judged((KERNELS / "wrong/saxpy_last_element_missing.cu").read_text())
    assert evaluation.verdict == "passed"
    assert evaluation.metrics is None
    assert "not measured: in the emulator its output is another" in evaluation.message


def test_the_emulators_checks_count_on_a_card_too(host_card: HostCard) -> None:
    evaluation = judged((KERNELS / "wrong/saxpy_guard_off_by_one.cu").read_text())
    assert (evaluation.verdict, evaluation.backend) == ("runtime_error", "gpu")
    assert "at line" in evaluation.message


def test_host_code_that_looks_at_addresses_breaks_the_rules(host_card: HostCard) -> None:
    source = (KERNELS / "right/saxpy_plain.cu").read_text()
    looking = source.replace("(n + 255) / 256, 256>>>", "(n + 255) / 256 + ((unsigned long)x >> 45), 256>>>")
    assert looking != source
    evaluation = judged(looking)
    assert evaluation.verdict == "rule_violation"
    assert "must not look at addresses" in evaluation.message


def test_a_card_of_another_kind_is_not_used(host_card: HostCard) -> None:
    evaluation = judged((KERNELS / "right/saxpy_plain.cu").read_text(), target="sm_80")
    assert (evaluation.verdict, evaluation.backend, evaluation.timing) == ("passed", "emulator", None)
    with pytest.raises(TaskProblem, match=r"no card here runs code for sm_80: Host Card \(sm_90\)"):
        judged("", backend="gpu", target="sm_80")


def test_the_benchmark_prints_its_table(host_card: HostCard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a row is good says nothing here: a copy in host memory has no card's bandwidth."""
    monkeypatch.setattr(bench, "LARGE", 1 << 18)
    monkeypatch.setattr(bench, "SMALL", 1 << 12)
    said: list[str] = []
    result = bench.measure(said.append, repeat=1)
    rows = {row["what"]: row for row in result["rows"]}
    assert rows["jail"]["good"]
    assert rows["replays of a 4 MiB copy"]["found"].startswith("10 of 10 right")
    assert rows["launches are timed as"]["found"] == "graph"
    assert rows["kernels can reach host memory"]["found"] == "no"
    lines = bench.table(result).splitlines()
    assert lines[0].startswith("Host Card, GPU-")
    assert len(lines) == 4 + len(rows)
    assert said[-1].startswith("a kernel with itself: 1 of 1")


def test_the_doctor_lists_and_heals(host_card: HostCard) -> None:
    assert f"Host Card, {host_card.uuid}, sm_90" in doctor._gpu().detail
    assert doctor.heal_cards() == ["no card is out of service"]
    quarantine(host_card.uuid, "it smoked")
    found = doctor._gpu()
    assert not found.ok
    assert "OUT OF SERVICE: it smoked" in found.detail
    with pytest.raises(TaskProblem, match="it smoked"):
        judged("", backend="gpu")
    host_card.say(health(host_card.uuid, action="Reset"))
    assert "stays out of service" in doctor.heal_cards()[0]
    host_card.say(health(host_card.uuid))
    assert "is in service again" in doctor.heal_cards()[0]
    assert doctor._gpu().ok
