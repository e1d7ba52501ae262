"""The benchmarks that docs/measurements quotes.

Example: kernelwright bench first-kernel
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from agent.events import TurnEnded
from agent.trajectory import Trajectory
from agent.translate import TranslateRequest, translate
from sandbox.agreement import run as agreement
from sandbox.cancellation import Cancellation
from sandbox.client import default_target
from sandbox.emulator.bench import run as emulator_bench
from sandbox.errors import TaskProblem
from sandbox.gpu import bench as gpu_bench
from sandbox.gpu.devices import NoDevice
from sandbox.types import Problem
from webapp.cli import bench_judge, bench_sort
from webapp.cli.bench_agent import add_agent_arguments, bench_agent
from webapp.cli.bench_agent_table import table
from webapp.cli.bench_cheats import judged_table, read_table
from webapp.cli.bench_programs import Trial, read_list, read_results, run_trials, write_result
from webapp.cli.common import read_inputs, read_text
from webapp.cli.output import GOOD, NOT_GOOD, OWN_FAULT, dump, say
from webapp.gallery import EXAMPLES

ROOT = Path(__file__).resolve().parents[2]
#: From paste to first verified kernel: slower than this, and the benchmark ends with exit code 1.
GOAL_SECONDS = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", choices=sorted(BENCHMARKS), metavar="NAME", help=", ".join(sorted(BENCHMARKS))
    )
    parser.add_argument("--repeat", type=int, default=5, help="repetitions of what is timed (default 5)")
    parser.add_argument("--folder", type=Path, help="sources: functions to translate, or programs to run")
    parser.add_argument("--list", type=Path, help="which programs (default: docs/measurements/programs.tsv)")
    parser.add_argument(
        "--only", default="", metavar="NAMES", help="some of the programs, cases, candidates, comma-separated"
    )
    parser.add_argument(
        "--seconds", type=float, default=300.0, help="for each program or run of an agent (default 300)"
    )
    parser.add_argument(
        "--results", type=Path, metavar="FILE", help="append each program's result; go on where it ends"
    )
    parser.add_argument(
        "--jobs", type=int, default=1, help="programs, candidates or runs at a time (default 1)"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the page there, not to stdout")
    parser.add_argument("--no-timing", action="store_true", help="judge: right candidates are not timed")
    parser.add_argument("--no-build", action="store_true", help="take the programs as they were built")
    parser.add_argument("--exec-options", default="", metavar='"..."', help="for kernelwright exec")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    add_agent_arguments(parser)


def main(options: argparse.Namespace) -> int:
    return BENCHMARKS[options.name](options)


def first_kernel(options: argparse.Namespace) -> int:
    """Paste to first verified kernel: row softmax, warm process, empty caches each time."""
    path = EXAMPLES / "c/row_softmax.c"
    request = TranslateRequest(source=read_text(path), filename=path.name, turns=1)
    rows = []
    for i in range(options.repeat + 1):
        with tempfile.TemporaryDirectory(prefix="kw-bench-") as home:
            os.environ["KERNELWRIGHT_HOME"] = home
            rows.append(_first_turn(request))
        say(f"{'warm-up' if i == 0 else f'run {i}'}: {rows[-1]['seconds']:.2f} s  {rows[-1]['stages']}")
    seconds = [row["seconds"] for row in rows[1:]]
    result: dict[str, Any] = {
        "benchmark": "first-kernel",
        "machine": _machine(),
        "seconds": {"minimum": min(seconds), "median": statistics.median(seconds), "maximum": max(seconds)},
        "stages": {
            name: statistics.median(r["stages"][name] for r in rows[1:]) for name in rows[1]["stages"]
        },
        "verdicts": sorted({row["verdict"] for row in rows}),
    }
    if options.json:
        dump(result)
    else:
        spread = result["seconds"]
        print(
            f"row softmax, paste to first verified kernel, {_machine()}, {options.repeat} runs, caches empty:"
        )
        low, high = spread["minimum"], spread["maximum"]
        print(f"median {spread['median']:.2f} s (minimum {low:.2f}, maximum {high:.2f})")
        for name, value in result["stages"].items():
            print(f"  {name:<10} {value:.2f} s")
    if result["verdicts"] != ["passed"]:
        say(f"not every run passed: {', '.join(result['verdicts'])}")
        return OWN_FAULT
    return GOOD if max(seconds) <= GOAL_SECONDS else NOT_GOOD


def _first_turn(request: TranslateRequest) -> dict[str, Any]:
    began = time.perf_counter()
    for event in translate(request, cancel=Cancellation()):
        if isinstance(event, TurnEnded):
            evaluation = event.evaluation
            return {
                "seconds": time.perf_counter() - began,
                "verdict": evaluation.verdict,
                "stages": evaluation.stages,
            }
    raise RuntimeError("the run ended before its first turn did")


def functions(options: argparse.Namespace) -> int:
    """Translate every function of a folder; one row each: verdict, turns, score, or why not."""
    folder = options.folder or ROOT / "tests/fixtures/c_functions"
    paths = sorted([*folder.glob("*.c"), *folder.glob("*.py")])
    if not paths:
        raise TaskProblem(Problem(kind="no_file", message=f"{folder} has no .c or .py file to translate"))
    rows = [_translated(path) for path in paths]
    passed = sum(row["verdict"] == "passed" for row in rows)
    if options.json:
        dump(
            {"benchmark": "functions", "machine": _machine(), "passed": passed, "of": len(rows), "rows": rows}
        )
    else:
        print("| function | verdict | turns | first | best | seconds | why not |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for row in rows:
            cells = [row["name"], row["verdict"] or row["reason"], row["turns"], row["first"], row["best"]]
            print(f"| {' | '.join(str(c) for c in cells)} | {row['seconds']:.1f} | {row['why']} |")
        print(f"\n{passed} of {len(rows)} passed")
    return GOOD if passed == len(rows) else NOT_GOOD


def _translated(path: Path) -> dict[str, Any]:
    say(path.name)
    options = argparse.Namespace(file=path, inputs=None)
    request = TranslateRequest(source=read_text(path), filename=path.name, inputs=read_inputs(options))
    trajectory = Trajectory()
    for event in translate(request, cancel=Cancellation()):
        trajectory.apply(event)
    ended, best = trajectory.ended, trajectory.best
    assert ended is not None
    first = trajectory.turns[0].evaluation if trajectory.turns else None
    failed = next(
        (t.evaluation for t in trajectory.turns if t.evaluation and t.evaluation.verdict != "passed"), None
    )
    return {
        "name": path.stem,
        "verdict": ended.verdict,
        "reason": ended.reason,
        "turns": len(trajectory.turns),
        "first": f"{first.score:.1f}" if first and first.score is not None else "",
        "best": f"{best.evaluation.score:.1f}" if best and best.evaluation and best.evaluation.score else "",
        "seconds": ended.seconds,
        "why": "" if best else _cell(failed.message if failed else ended.message),
    }


def programs(options: argparse.Namespace) -> int:
    """Run whole public programs without a GPU; one row each: passed, or what kept it from it."""
    if options.folder is None or not options.folder.is_dir():
        message = "--folder has to name the folder that holds the programs, such as HeCBench/src"
        raise TaskProblem(Problem(kind="no_folder", message=message))
    chosen = read_list(options.list or ROOT / "docs/measurements/programs.tsv")
    if options.only:
        chosen = [program for program in chosen if program.folder in options.only.split(",")]
    names = {program.folder for program in chosen}
    trials = [trial for trial in _earlier(options) if trial.program in names]
    done = {trial.program for trial in trials}
    try:
        for trial in run_trials(
            [program for program in chosen if program.folder not in done],
            options.folder.resolve(),
            build=not options.no_build,
            seconds=options.seconds,
            jobs=options.jobs,
            options=shlex.split(options.exec_options),
        ):
            trials.append(trial)
            if options.results:
                write_result(trial, options.results)
            say(f"{len(trials)} of {len(chosen)}: {trial.program}: {trial.outcome} {trial.detail}")
    except KeyboardInterrupt:
        say(f"stopped; {len(chosen) - len(trials)} of {len(chosen)} programs have no result")
    order = [program.folder for program in chosen]
    trials.sort(key=lambda trial: order.index(trial.program))
    counts = Counter(trial.outcome for trial in trials)
    if options.json:
        dump(
            {
                "benchmark": "programs",
                "machine": _machine(),
                "outcomes": dict(counts),
                "rows": [asdict(trial) for trial in trials],
            }
        )
    else:
        print(f"{_machine()}; {options.seconds:g} s each, {options.jobs} at a time\n")
        print("| program | arguments | outcome | errors found | build s | run s | |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for row in trials:
            cells = [row.program, _cell(row.arguments), row.outcome, row.findings or ""]
            cells += [f"{row.build_seconds:.0f}", f"{row.seconds:.1f}", _cell(row.detail)]
            print(f"| {' | '.join(map(str, cells))} |")
        print(f"\n{', '.join(f'{count} {outcome}' for outcome, count in counts.most_common())}")
    return GOOD if counts["passed"] == len(chosen) else NOT_GOOD


def _earlier(options: argparse.Namespace) -> list[Trial]:
    return read_results(options.results) if options.results else []


def emulator(options: argparse.Namespace) -> int:
    """How fast the emulator is: kernels without checks and with, beside serial C; and how fast it lowers."""
    result = {"benchmark": "emulator", "machine": _machine(), **emulator_bench.measure(say, options.repeat)}
    if options.json:
        dump(result)
    else:
        print(f"{_machine()}\n\n{emulator_bench.table(result)}")
    return GOOD


def thrust_sort(options: argparse.Namespace) -> int:
    """A Thrust sort of a million keys, from empty caches."""
    result = bench_sort.measure(os.cpu_count() or 1)
    if options.json:
        dump({"benchmark": "thrust-sort", "machine": _machine(), **result})
    else:
        print(f"{_machine()}\n\n{bench_sort.text(result)}")
    if not result["sorted"] or result["errors"]:
        return OWN_FAULT
    return GOOD if result["seconds"] <= bench_sort.GOAL_SECONDS else NOT_GOOD


def gpu(options: argparse.Namespace) -> int:
    """What a card and the GPU backend can do: bandwidth, timing of a kernel against itself and against less
    work (--repeat: comparisons of a kernel with itself; 200 show a false-positive rate)."""
    try:
        result = gpu_bench.measure(say, repeat=options.repeat)
    except NoDevice as missing:
        raise TaskProblem(Problem(kind="no_gpu", message=str(missing), hint=missing.how)) from missing
    if options.json:
        dump({"benchmark": "gpu", **result})
    else:
        print(gpu_bench.table(result))
    return GOOD if gpu_bench.good(result) else NOT_GOOD


def emulator_vs_card(options: argparse.Namespace) -> int:
    """The suite of small kernels in the emulator and on a card: outputs, and counts from Nsight Compute."""
    try:
        result = agreement.measure(say, only=[name for name in options.only.split(",") if name])
    except NoDevice as missing:
        raise TaskProblem(Problem(kind="no_gpu", message=str(missing), hint=missing.how)) from missing
    agreement.tell(result, options.out, as_json=options.json)
    return GOOD if result.good else NOT_GOOD


def cheats(options: argparse.Namespace) -> int:
    """Candidates that cheat and honest ones that look alike, judged; --only for some of them by name."""
    table = read_table()
    names = options.only.split(",") if options.only else [row.name for row in table.rows]
    if unknown := sorted(set(names) - {row.name for row in table.rows}):
        raise TaskProblem(Problem(kind="no_candidate", message=f"there is no {', '.join(unknown)}"))
    rows = list(judged_table(table, [row for row in table.rows if row.name in names], say))
    surprises = [row for row in rows if row["fault"]]
    if options.json:
        dump({"benchmark": "cheats", "machine": _machine(), "rows": rows})
    else:
        print("| candidate | way | verdict | score | |")
        print("| --- | --- | --- | --- | --- |")
        for row in rows:
            score = "" if row["score"] is None else f"{row['score']:.1f}"
            print(
                f"| {row['name']} | {_cell(row['way'])} | {row['verdict']} | {score} | {_cell(row['says'])} |"
            )
        stopped = sum(bool(row["number"]) and not row["open"] and not row["fault"] for row in rows)
        passed = sum(not row["number"] and not row["fault"] for row in rows)
        undefended = sum(bool(row["open"]) for row in rows)
        print(f"\n{stopped} cheats got nothing, {undefended} are not defended")
        print(f"{passed} honest candidates passed, {len(surprises)} rows are not as expected")
    return GOOD if not surprises else NOT_GOOD


def agent(options: argparse.Namespace) -> int:
    """How many tasks an agent passes by turn, and what that takes: the built-in policy, and any endpoint."""
    said, complete = bench_agent(options)
    if options.json:
        dump({"benchmark": "agent", "machine": _machine(), "turns": options.turns, **said})
    else:
        print(f"{_machine()}\n")
        print("\n".join(table(said, options.turns)))
    return GOOD if complete else NOT_GOOD


def judge(options: argparse.Namespace) -> int:
    """Candidates judged a minute, --jobs at a time, --repeat rounds, with latencies and stages."""
    if options.jobs < 1 or options.repeat < 1:
        raise TaskProblem(Problem(kind="bad_option", message="--jobs and --repeat have to be 1 or more"))
    result = bench_judge.measure(
        say,
        backend=options.backend,
        target=default_target(options.backend),
        jobs=options.jobs,
        rounds=options.repeat,
        timing=not options.no_timing,
        only=[name for name in options.only.split(",") if name],
    )
    machine = _machine(used_gpu=result["backend"] == "gpu")
    if options.json:
        dump({"benchmark": "judge", "machine": machine, **result})
    else:
        print(f"{machine}\n\n{bench_judge.table(result)}")
    return GOOD if not result["surprises"] else NOT_GOOD


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _machine(*, used_gpu: bool = False) -> str:
    model = next(
        (line.split(":")[1].strip() for line in _cpuinfo() if line.startswith("model name")),
        platform.processor(),
    )
    return f"{os.cpu_count()} cores, {model}{'' if used_gpu else ', no GPU used'}"


def _cpuinfo() -> Sequence[str]:
    try:
        return Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return []


BENCHMARKS: dict[str, Callable[[argparse.Namespace], int]] = {
    "agent": agent,
    "cheats": cheats,
    "emulator": emulator,
    "emulator-vs-card": emulator_vs_card,
    "first-kernel": first_kernel,
    "functions": functions,
    "gpu": gpu,
    "judge": judge,
    "programs": programs,
    "thrust-sort": thrust_sort,
}
