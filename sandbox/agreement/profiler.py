"""Nsight Compute: counters of each launch of a program, by name.

The program runs once under `ncu`, which replays each launch as often as its counters need; then `ncu` prints
its report as CSV. Both forms of that are read: a row for each launch with a column for each metric ("raw"),
and a row for each metric.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

_SECONDS = 360
INSTALLED = Path("/usr/local")  # where toolkits lie, besides the PATH
_FIXED = ("ID", "Kernel Name")
#: Instances of a metric, such as opcodes: "12 (BAR: 4; LDG: 8)".
_INSTANCE = re.compile(r"([A-Za-z][\w.]*)\s*[:=]\s*([\d.,]+)")
_NUMBER = re.compile(r"^-?[\d,]+(?:\.\d+)?(?:e[+-]?\d+)?$", re.I)
#: Options that all calls share. Clocks and caches stay as they are: no time is measured.
_COLLECT = ("--clock-control", "none", "--cache-control", "none", "--target-processes", "application-only")
_PRINT = ("--csv", "--page", "raw", "--print-units", "base")
_INSTANCES = ("--print-metric-instances", "details")  # beside them, numbers are rounded


class NoProfiler(Exception):
    """Counters cannot be read here; the message says why."""


@dataclass(frozen=True)
class Counters:
    """Of one launch."""

    kernel: str
    values: dict[str, float]
    instances: dict[str, dict[str, float]] = field(default_factory=dict)  # metric -> instance -> value


def find_ncu() -> str:
    """Raises NoProfiler."""
    found = shutil.which("ncu")
    if found is None:
        installed = sorted(INSTALLED.glob("cuda*/bin/ncu"))
        found = str(installed[-1]) if installed else None
    if found is None:
        raise NoProfiler("Nsight Compute's command ncu is not installed (or not on the PATH)")
    return found


def profile(
    program: Sequence[str], metrics: Sequence[str], report: Path, *, device: str
) -> tuple[list[Counters], list[str]]:
    """Counters of every launch in order, and the metrics that this ncu does not know for this card.

    `report`: where Nsight Compute's own report goes, without a suffix. `device`: the card's UUID. Raises
    NoProfiler.
    """
    ncu = find_ncu()
    wanted, unknown = list(metrics), list[str]()
    while True:
        command = [
            ncu,
            *_COLLECT,
            "--force-overwrite",
            "--export",
            str(report),
            "--metrics",
            ",".join(wanted),
        ]
        ended = _run([*command, *program], CUDA_VISIBLE_DEVICES=device)
        refused = [name for name in wanted if _refused(name, ended.stdout + ended.stderr)]
        unknown += refused
        if ended.returncode == 0 or not refused:
            break
        wanted = [name for name in wanted if name not in refused]
        if not wanted:
            raise NoProfiler("ncu knows none of the metrics")
    produced = report.with_name(report.name + ".ncu-rep")
    if ended.returncode != 0 or not produced.exists():
        raise NoProfiler(f"ncu could not read counters: {_why(ended.stdout + ended.stderr)}")
    launches = _print(ncu, produced)
    detailed = _print(ncu, produced, *_INSTANCES)
    for launch, details in zip(launches, detailed, strict=True):
        launch.instances.update(details.instances)
    return launches, unknown


def _print(ncu: str, report: Path, *options: str) -> list[Counters]:
    printed = _run([ncu, "--import", str(report), *_PRINT, *options])
    if printed.returncode != 0:
        raise NoProfiler(f"ncu could not print its report: {_why(printed.stdout + printed.stderr)}")
    return read_csv(printed.stdout)


def _run(command: Sequence[str], **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    try:
        return subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, env=environment
        )
    except subprocess.TimeoutExpired as late:
        raise NoProfiler(f"ncu did not end within {_SECONDS} s") from late
    except OSError as problem:
        raise NoProfiler(f"ncu cannot be started: {problem}") from problem


def _refused(name: str, said: str) -> bool:
    """Is this metric among those that ncu complains about?"""
    complaints = [
        line for line in said.splitlines() if re.search(r"(find|valid|support)\w* .*metric", line, re.I)
    ]
    return any(re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", line) for line in complaints)


def _why(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if "==ERROR==" in line]
    others = [line.strip() for line in said.splitlines() if line.strip()]
    return " ".join(lines or others[-3:]) or "it said nothing"


def read_csv(text: str) -> list[Counters]:
    """Launches by ID. Raises NoProfiler where there is no table."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        raise NoProfiler(f"ncu printed no table: {_why(text)}")
    head, *rows = csv.reader(lines[start:])
    launches: dict[int, Counters] = {}
    for row in rows:
        cells = dict(zip(head, row, strict=False))
        if not cells.get("ID", "").isdigit():  # the row of units has no ID
            continue
        name = re.sub(r"\(.*", "", cells["Kernel Name"], flags=re.S)
        launch = launches.setdefault(int(cells["ID"]), Counters(name, {}))
        if "Metric Name" in cells:
            _take(launch, cells["Metric Name"], cells["Metric Value"])
            continue
        for metric, value in cells.items():
            if metric not in _FIXED:
                _take(launch, metric, value)
    return [launches[number] for number in sorted(launches)]


def _take(launch: Counters, metric: str, text: str) -> None:
    """Numbers only: "n/a" is no number, nor is the name of a device."""
    total, _, rest = text.strip().partition(" ")
    if _NUMBER.match(total):
        launch.values[metric] = float(total.replace(",", ""))
        if instances := _INSTANCE.findall(rest):
            launch.instances[metric] = {name: float(value.replace(",", "")) for name, value in instances}
