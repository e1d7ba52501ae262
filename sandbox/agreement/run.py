"""The emulator and a card, side by side: `kernelwright bench emulator-vs-card`, or `python -m
sandbox.agreement.run` on a node that has only the judge.

One build of each kind, one session on the card, one run of Nsight Compute.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sandbox.agreement import bounds, job, report
from sandbox.agreement.build import FLAGS, Built, Flags, build
from sandbox.agreement.case import Array, Case
from sandbox.agreement.cases import all_cases
from sandbox.agreement.profiler import Counters, NoProfiler, profile
from sandbox.agreement.replays import Outcome, emulate, on_card, why
from sandbox.agreement.result import Result
from sandbox.cancellation import Cancellation
from sandbox.errors import TaskProblem
from sandbox.gpu.client import Session, usable
from sandbox.gpu.devices import Device, NoDevice
from sandbox.targets import TARGETS, Target
from sandbox.toolchain import find_toolkit
from sandbox.types import Problem

Say = Callable[[str], None]


def measure(say: Say, keep: Path | None = None, only: Sequence[str] = ()) -> Result:
    """Everything, or `only` cases of these names and themes. `keep`: a folder for Nsight Compute's report.

    Raises NoDevice, Judged, ToolchainMissing; TaskProblem where there is no such case; RuntimeError where the
    emulator fails.
    """
    cases = [case for case in all_cases() if not only or {case.name, case.group} & set(only)]
    if not cases:
        raise TaskProblem(Problem(kind="no_case", message=f"no case or theme is called {', '.join(only)}"))
    devices = [device for device in usable() if device.arch in TARGETS]
    if not devices:
        raise NoDevice("no card here is of an architecture that Kernelwright knows")
    target = TARGETS[devices[0].arch]
    say("building")
    built = [build(flags, target.arch) for flags in FLAGS]
    emulated = {}
    for each in built:
        say(f"emulating, {each.flags}")
        emulated[each.flags] = emulate(each, cases, threads=os.cpu_count() or 1)
    say("replaying on the card")
    card, device = _replayed(devices, built, cases)
    say("counting with Nsight Compute")
    with tempfile.TemporaryDirectory(prefix="kernelwright-agreement-") as folder:
        counted, plain, notes = _counted(built[0], cases, keep or Path(folder), device)
    rows = [
        bounds.outputs(case, flags, emulated[flags][i][1], card[flags][i][1])
        if card[flags][i][0].status == "ok"
        else bounds.failed(case, flags, why(card[flags][i][0]))
        for i, case in enumerate(cases)
        for flags in FLAGS
    ]
    if plain is not None:
        notes += _disagreeing(cases, card["ordinary"], plain)
    launches = [
        bounds.Emulated(case, outcome[0].launches[0], built[0].resources[case.kernel], target)
        for case, outcome in zip(cases, emulated["ordinary"], strict=True)
    ]
    rows += [row for each, told in zip(launches, counted, strict=True) for row in bounds.counts(each, told)]
    expansions = [bounds.expansion(each, told) for each, told in zip(launches, counted, strict=True)]
    return Result(
        date=datetime.date.today().isoformat(),
        card=_card(device, target),
        tools=f"driver {device.driver}, nvcc {find_toolkit().version}",
        cases=len(cases),
        kernels=len({case.kernel for case in cases}),
        rows=rows,
        expansions=[each for each in expansions if each is not None],
        counters={case.name: told for case, told in zip(cases, counted, strict=True) if told is not None},
        notes=notes,
    )


def _replayed(
    devices: Sequence[Device], built: Sequence[Built], cases: Sequence[Case]
) -> tuple[dict[Flags, list[Outcome]], Device]:
    """By build, a result for each case. After one that fails, the rest go on in a new session."""
    found: dict[Flags, list[Outcome]] = {each.flags: [] for each in built}
    device = devices[0]
    for each in built:
        outcomes = found[each.flags]
        while len(outcomes) < len(cases):
            with Session(devices, Cancellation()) as session:
                device = session.device
                outcomes += on_card(session, each, cases[len(outcomes) :])
    return found, device


def _counted(
    built: Built, cases: Sequence[Case], folder: Path, device: Device
) -> tuple[Sequence[Counters | None], list[dict[str, Array]] | None, list[str]]:
    """Counters and outputs of the plain executable; without them, a sentence that says why."""
    folder.mkdir(parents=True, exist_ok=True)
    prepared = job.write(cases, folder)
    program = [str(built.executable), *prepared.arguments]
    try:
        counters, unknown = profile(program, bounds.METRICS, folder / "agreement", device=device.uuid)
        plain = prepared.outputs()
    except (NoProfiler, OSError, RuntimeError) as problem:
        return [None] * len(cases), None, [f"Counts were not compared: {problem}."]
    ours = {case.kernel for case in cases}
    counters = [each for each in counters if each.kernel in ours]
    launched = [each.kernel for each in counters]
    if launched != [case.kernel for case in cases]:
        return (
            [None] * len(cases),
            plain,
            [f"Counts were not compared: Nsight Compute saw {len(launched)} launches, not these cases."],
        )
    return counters, plain, [f"This ncu does not know {name} for this card." for name in unknown]


def _disagreeing(cases: Sequence[Case], replayed: list[Outcome], plain: list[dict[str, Array]]) -> list[str]:
    """The GPU backend and an ordinary program, on the same card with the same code."""
    apart = [
        case.name
        for case, (_, ours), theirs in zip(cases, replayed, plain, strict=True)
        if case.numbers != "unordered"
        and any(ours[name].tobytes() != theirs[name].tobytes() for name in ours)
    ]
    return [f"The GPU backend and the plain executable disagree on {', '.join(apart)}."] if apart else []


def _card(device: Device, target: Target) -> str:
    return f"{device.name} ({target.arch})"


def document(result: Result) -> dict[str, Any]:
    return {"benchmark": "emulator-vs-card", "good": result.good, **asdict(result)}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m sandbox.agreement.run", description=__doc__)
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the page there, not to stdout")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep reports and all numbers there")
    parser.add_argument("--only", default="", metavar="NAMES", help="some cases or themes, comma-separated")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    options = parser.parse_args(arguments)
    try:
        result = measure(
            lambda text: print(text, file=sys.stderr, flush=True),
            options.keep,
            [name for name in options.only.split(",") if name],
        )
    except NoDevice as missing:
        print(f"{missing}. {missing.how}", file=sys.stderr)
        return 2
    except TaskProblem as problem:
        print(problem, file=sys.stderr)
        return 2
    if options.keep:
        (options.keep / "agreement.json").write_text(json.dumps(document(result)))
    tell(result, options.out, as_json=options.json)
    return 0 if result.good else 1


def tell(result: Result, out: Path | None, *, as_json: bool) -> None:
    """Writes the page, prints the document or the page, and the summary last."""
    if out is not None:
        out.write_text(report.markdown(result))
    if as_json:
        print(json.dumps(document(result)))
    elif out is None:
        print(report.markdown(result))
    if not as_json:
        print(report.summary(result))


if __name__ == "__main__":
    sys.exit(main())
