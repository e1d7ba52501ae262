"""The benchmark of the emulator takes the least of its times, round by round."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import compile_cuda

from sandbox.cancellation import Cancellation
from sandbox.emulator import client
from sandbox.emulator.bench import run as bench


def test_of_two_times_the_least_stays() -> None:
    least = bench._Least()
    for seconds in (3.0, 2.0, 5.0):
        least.take("plain", {"stencil": seconds, "reduce": 10 - seconds})
    assert least.seconds == {("plain", "stencil"): 2.0, ("plain", "reduce"): 5.0}


def test_a_cell_gets_no_slower_by_another_round(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "SECONDS", 0.005)
    ptx = compile_cuda((bench.HERE / "kernels.cu").read_text(), tmp_path_factory.mktemp("bench"))
    lowered = client.lower([ptx], Cancellation(), [(0, "stencil")], mode="plain")
    image = np.ones((64, 64), "f4")
    case = bench.Case("stencil", "point", 62 * 62, (2, 8), (32, 8), (image, np.zeros_like(image), 64, 64))
    cell = bench._Cell(case, "plain, all threads", lowered, False, 2)  # by the clock: never nothing
    cell.again()
    first = dict(cell._least.seconds)
    cell.again()
    assert all(0 < cell._least.seconds[key] <= seconds for key, seconds in first.items())
    assert cell.speed() > 0


def test_lowering_is_timed_for_cpus_with_avx_512_and_without(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "STEPS", {"150": 5})
    lowering = bench._Lowering(tmp_path_factory.mktemp("lowering"))
    lowering.again()
    result = lowering.result()
    [row] = result["rows"]
    assert 100 < row["instructions"] < 250
    assert set(row) == {"about", "instructions", *bench._LOWERINGS}
    assert {cpu for _, cpu in bench._LOWERINGS.values()} == {"native", "x86-64-v3"}
    assert all(row[name] < 60 for name in bench._LOWERINGS)
    assert any(row[name] > 0 for name in bench._LOWERINGS)
    table = bench.table({"rounds": 1, "kernels": [], "lowering": result}).splitlines()
    assert table[-3] == f"| PTX instructions | {' | '.join(bench._LOWERINGS)} |"
    assert table[-1] == f"| {row['instructions']} | {' | '.join(f'{row[n]:.2f}' for n in bench._LOWERINGS)} |"
