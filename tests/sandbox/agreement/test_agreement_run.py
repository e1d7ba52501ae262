"""The whole comparison without a card: the emulator stands in for it, and a script for Nsight Compute.

So nothing here says that the emulator is right; what is tested is that a run on a card would not be wasted.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from suite_runs import CASES, TARGET, built, outcomes

from sandbox.agreement import bounds, report, run
from sandbox.cancellation import Cancellation
from sandbox.emulator import client as emulator
from sandbox.emulator.trace import DeviceFault, ReplayResult
from sandbox.emulator.wire import Replay
from sandbox.gpu.devices import Device, NoDevice
from sandbox.plan import DEVICE_BASE

DEVICE = Device(0, "GPU-0", "No Card", (9, 0), "580.0", "Default", "Enabled", 1)
NAMES = ("copy_coalesced", "barriers", "divide", "polynomial", "atomic_floats")
CHOSEN = [case for case in CASES if case.name in NAMES]
#: As ncu: runs the program, which here writes what a test prepared; then prints a table.
STAND_IN = """#!{python}
import pathlib, sys
if "--import" in sys.argv:
    print(pathlib.Path({table!r}).read_text())
else:
    pathlib.Path(sys.argv[-1]).write_bytes(pathlib.Path({output!r}).read_bytes())
    pathlib.Path(sys.argv[sys.argv.index("--export") + 1] + ".ncu-rep").touch()
"""


class EmulatedCard:
    """As `sandbox.gpu.client.Session`. A kernel in `failing` ends with a fault, and the session with it."""

    base = DEVICE_BASE
    device = DEVICE
    failing: Sequence[str] = ()
    opened = 0

    def __init__(self, devices: object, cancel: object) -> None:
        type(self).opened += 1

    def __enter__(self) -> EmulatedCard:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def replay(self, cubin: bytes, replays: Sequence[Replay], *, seconds: float) -> list[Any]:
        flags = next(flags for flags in run.FLAGS if built(flags).cubin == cubin)
        lowered = emulator.lower([built(flags).ptx], Cancellation())
        ended = emulator.replay(lowered, replays, seconds=seconds, threads=1, cancel=Cancellation())
        for i, each in enumerate(replays):
            if each.plan.launches[0].kernel in self.failing:
                fault = DeviceFault(kind="trap", message="it trapped", kernel="", line=None)
                return [*ended[:i], (ReplayResult(status="fault", fault=fault), {})]
        return ended


@pytest.fixture
def card(jail: None, monkeypatch: pytest.MonkeyPatch) -> type[EmulatedCard]:
    class Card(EmulatedCard):
        pass

    monkeypatch.setattr(run, "usable", lambda: [DEVICE])
    monkeypatch.setattr(run, "Session", Card)
    return Card


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts what the emulator does, as far as these cases go."""
    rows = [["ID", "Kernel Name", *bounds.METRICS]]
    for i, case in enumerate(CHOSEN):
        trace = outcomes("ordinary")[case.name][0].launches[0]
        ours = bounds.Emulated(case, trace, built("ordinary").resources[case.kernel], run.TARGETS[TARGET])
        told = {
            bounds.OPCODES: f"99 (BAR: {ours.totals.barriers}; LDG: 3)",
            bounds.THREAD_OPCODES: "99 (MUFU: 1,024; FFMA: 4,096)",
            "sm__sass_thread_inst_executed_op_fadd_pred_on.sum": str(ours.totals.flop_fp32),
            "smsp__warps_launched.sum": str(trace.warps.count),
        }
        rows.append([str(i), case.kernel, *(told.get(name, "0") for name in bounds.METRICS)])
    table, output, tool = folder / "table", folder / "made", folder / "ncu"
    table.write_text("".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in rows))
    arrays = [array for case in CHOSEN for array in outcomes("ordinary")[case.name][1].values()]
    output.write_bytes(b"".join(array.tobytes() for array in arrays))
    tool.write_text(STAND_IN.format(python=sys.executable, table=str(table), output=str(output)))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/local/bin:/usr/bin:/bin")


@pytest.mark.usefixtures("card")
def test_every_comparison_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch)
    result = run.measure(lambda text: None, tmp_path / "kept", NAMES)
    assert result.notes == []
    assert (result.cases, result.card) == (5, "No Card (sm_90)")
    verdicts = {(row.case, row.what): row.verdict for row in result.rows}
    assert verdicts["barriers", "barriers"] == "ok"
    assert verdicts["polynomial", "FLOP"] == "ok"
    assert ("divide", "FLOP") not in verdicts
    assert verdicts["copy_coalesced", "warps"] == "ok"
    assert verdicts["copy_coalesced", "global load requests"] == "over"  # the table says 0
    for case in CHOSEN:
        for flags in run.FLAGS:
            assert verdicts[case.name, bounds._outputs_of(flags)] == "ok"
    [expansion] = result.expansions
    assert (expansion.case, expansion.instructions) == ("divide", {"MUFU": 1024, "FFMA": 4096})
    assert json.loads(json.dumps(run.document(result)))["counters"]["barriers"]["instances"]
    assert "FFMA 4,096, MUFU 1,024" in report.markdown(result)


def test_a_case_that_fails_on_the_card_costs_only_itself(
    card: type[EmulatedCard], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch)
    card.failing = ["barriers"]
    result = run.measure(lambda text: None, None, NAMES)
    outputs = [row for row in result.rows if row.what.startswith("outputs")]
    # Sums in another order may differ in their last bits, and a note says so.
    assert {(row.case, row.verdict) for row in outputs} == {
        (case.name, "over" if case.name == "barriers" else "ok") for case in CHOSEN
    }
    assert {row.note for row in outputs if row.case == "barriers"} == {"fault: it trapped"}
    assert card.opened == 4  # two for each build


@pytest.mark.usefixtures("card")
def test_without_counters_outputs_are_compared_and_the_rest_is_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "ncu"
    tool.write_text("#!/bin/sh\necho '==ERROR== ERR_NVGPUCTRPERM'; exit 1\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/local/bin:/usr/bin:/bin")
    result = run.measure(lambda text: None, None, NAMES)
    assert len(result.notes) == 1
    assert "ncu could not read counters: ==ERROR== ERR_NVGPUCTRPERM" in result.notes[0]
    assert {row.verdict for row in result.rows} == {"ok", "not measured"}
    assert not result.good


def test_a_case_that_is_not_there_is_named(capsys: Any) -> None:
    assert run.main(["--only", "copy_nothing,no_theme"]) == 2
    assert "no case or theme is called copy_nothing, no_theme" in capsys.readouterr().err


def test_without_a_card_that_is_said(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def none() -> list[Device]:
        raise NoDevice("no NVIDIA driver: there is no nvidia-smi", "install the driver of the card")

    monkeypatch.setattr(run, "usable", none)
    assert run.main([]) == 2
    said = capsys.readouterr().err
    assert said == "no NVIDIA driver: there is no nvidia-smi. install the driver of the card\n"
