"""Reading what Nsight Compute prints, on texts of the forms that its documentation shows, and on a stand-in
for the tool itself. What a card counts is not tested here: that needs a card."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.agreement import profiler
from sandbox.agreement.bounds import OPCODES
from sandbox.agreement.profiler import NoProfiler, profile, read_csv

REQUESTS, LANES = (
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "smsp__thread_inst_executed_per_inst_executed.ratio",
)
FIXED = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream"]
GATHER = "gather(const float *, const int *, float *)"


def table(*rows: list[str]) -> str:
    """As the tool quotes."""
    return "".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in rows)


def launch(number: int, kernel: str, *more: str) -> list[str]:
    return [str(number), "4711", "agreement", "127.0.0.1", kernel, "1", "7", *more]


RAW = "==PROF== Connected to process 4711\n" + table(
    [*FIXED, "Block Size", "CC", REQUESTS, OPCODES, LANES],
    ["", "", "", "", "", "", "", "", "", "", "inst", "inst"],
    launch(
        0,
        "copy_coalesced",
        "(128, 1, 1)",
        "9.0",
        "1,064",
        "1,280 (BAR: 1,024; LDG: 64; HFMA2.MMA: 7)",
        "31.83",
    ),
    launch(1, GATHER, "(128, 1, 1)", "9.0", "128 (0: 128)", "n/a", "32"),
    [],
)
LONG = "==WARNING== something\n" + table(
    [*FIXED, "Section Name", "Metric Name", "Metric Unit", "Metric Value"],
    launch(1, GATHER, "Command line profiler metrics", REQUESTS, "request", "128"),
    launch(0, "copy_coalesced", "Command line profiler metrics", REQUESTS, "request", "1,064"),
    launch(0, "copy_coalesced", "Command line profiler metrics", LANES, "thread", "31.83"),
)
#: As `ncu`: refuses one metric by name, then writes a report, then prints it.
STAND_IN = """#!/bin/sh
case "$*" in
  *--import*) cat "{table}" ;;
  *no_such__metric.sum*) echo "==ERROR== Failed to find metric no_such__metric.sum"; exit 1 ;;
  *)
    while [ "$1" != --export ]; do shift; done
    : > "$2.ncu-rep"
    echo "==PROF== Report: $2.ncu-rep on $CUDA_VISIBLE_DEVICES" ;;
esac
"""


def stand_in(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = folder / "ncu"
    tool.write_text(script)
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_a_row_for_each_launch() -> None:
    first, second = read_csv(RAW)
    assert (first.kernel, second.kernel) == ("copy_coalesced", "gather")
    assert first.values[REQUESTS] == 1064
    assert first.values[LANES] == 31.83
    assert first.values[OPCODES] == 1280
    assert first.instances[OPCODES] == {"BAR": 1024, "LDG": 64, "HFMA2.MMA": 7}
    assert second.values[REQUESTS] == 128
    assert OPCODES not in second.values  # "n/a"
    assert OPCODES not in second.instances


def test_a_row_for_each_metric() -> None:
    first, second = read_csv(LONG)
    assert first.kernel == "copy_coalesced"
    assert first.values == {REQUESTS: 1064, LANES: 31.83}
    assert second.values == {REQUESTS: 128}


def test_no_table_is_said_with_the_tools_words() -> None:
    with pytest.raises(NoProfiler, match="==ERROR== ERR_NVGPUCTRPERM"):
        read_csv("==PROF== Connected\n==ERROR== ERR_NVGPUCTRPERM - no permission\n")


def test_a_metric_that_the_tool_does_not_know_is_left_out_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = tmp_path / "table"
    printed.write_text(RAW)
    stand_in(tmp_path, STAND_IN.format(table=printed), monkeypatch)
    counters, unknown = profile(
        ["./program"], [REQUESTS, "no_such__metric.sum", LANES], tmp_path / "report", device="GPU-1"
    )
    assert unknown == ["no_such__metric.sum"]
    assert [each.kernel for each in counters] == ["copy_coalesced", "gather"]


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (
            "#!/bin/sh\necho '==ERROR== Failed to initialize the profiler: LibraryNotLoaded'; exit 1\n",
            "LibraryNotLoaded",
        ),
        ("#!/bin/sh\nexit 0\n", "it said nothing"),
    ],
)
def test_counters_that_cannot_be_read_are_told(
    script: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, script, monkeypatch)
    with pytest.raises(NoProfiler, match=why):
        profile(["./program"], [REQUESTS], tmp_path / "report", device="GPU-1")


def test_without_the_tool_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(profiler, "INSTALLED", tmp_path)
    with pytest.raises(NoProfiler, match="ncu is not installed"):
        profile(["./program"], [REQUESTS], tmp_path / "report", device="GPU-1")
