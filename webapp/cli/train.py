"""Make data to learn from, and look at it.

Example: kernelwright train synthesize c --count 50 --seed 1 --out data/c
         kernelwright train data stats data/c --json
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

from sandbox.errors import TaskProblem
from sandbox.targets import DEFAULT_TARGET, TARGETS
from sandbox.types import Problem
from webapp.cli.output import GOOD, NOT_GOOD, dump, say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    recipes = parser.add_subparsers(dest="recipe", required=True, metavar="RECIPE")
    synthesize = recipes.add_parser(
        "synthesize", help="tasks with judged solutions, generated from a seed; goes on where it stopped"
    )
    synthesize.add_argument("language", choices=["c"], help="what the tasks are written in")
    synthesize.add_argument(
        "--count", type=int, default=50, metavar="N", help="generated tasks (default %(default)s)"
    )
    synthesize.add_argument("--seed", type=int, default=1, metavar="S", help="same seed, same tasks")
    synthesize.add_argument("--out", type=Path, required=True, metavar="DIR", help="the data set's folder")
    synthesize.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, metavar="J", help="worker processes (default: cores)"
    )
    synthesize.add_argument(
        "--solutions",
        choices=["builtin", "none"],
        default="builtin",
        help="none: tasks only; give the command again without it, and solutions are added",
    )
    synthesize.add_argument(
        "--turns", type=int, default=4, metavar="N", help="turns of the built-in policy (default 4)"
    )
    synthesize.add_argument("--no-variants", action="store_true", help="only the policy's own turns")
    synthesize.add_argument("--mistakes", type=int, default=2, metavar="N", help="wrong candidates a task")
    synthesize.add_argument("--target", default=os.environ.get("KERNELWRIGHT_TARGET", DEFAULT_TARGET))
    synthesize.add_argument(
        "--sources", action="append", default=[], metavar="DIR", help="your own .c files (and .toml), too"
    )
    synthesize.add_argument(
        "--held-out", action="append", default=[], metavar="DIR", help="drop what resembles programs in DIR"
    )
    synthesize.add_argument("--json", action="store_true", help="the report as one JSON document on stdout")
    data = recipes.add_parser("data", help="look at a data set")
    actions = data.add_subparsers(dest="action", required=True, metavar="ACTION")
    stats = actions.add_parser(
        "stats", help="counts by family, decision, verdict, structure, difficulty, filter"
    )
    stats.add_argument("folder", type=Path, metavar="DIR")
    stats.add_argument("--json", action="store_true", help="one JSON document on stdout")


def main(options: argparse.Namespace) -> int:
    return _synthesize(options) if options.recipe == "synthesize" else _stats(options)


def _synthesize(options: argparse.Namespace) -> int:
    from trainer.data.synthesize import Settings, Synthesis
    from trainer.data.work import Effort

    for name, least, most in (
        ("count", 0, 1_000_000),
        ("jobs", 1, 1024),
        ("turns", 1, 64),
        ("mistakes", 0, 8),
    ):
        value = getattr(options, name)
        if not least <= value <= most:
            problem = Problem(
                kind="bad_number", message=f"--{name} is {value}", hint=f"give {least} to {most}"
            )
            raise TaskProblem(problem)
    if options.target not in TARGETS:
        known = sorted(TARGETS)
        message = f"unknown target {options.target!r}"
        raise TaskProblem(Problem(kind="unknown_target", message=message, choices=known))
    effort = Effort(
        turns=options.turns,
        variants=not options.no_variants,
        mistakes=options.mistakes,
        target=options.target,
    )
    settings = Settings(seed=options.seed, sources=options.sources, held_out=options.held_out, effort=effort)
    bar = _Bar()
    synthesis = Synthesis(options.out, settings, options.jobs, bar)
    began = time.monotonic()
    try:
        summary = synthesis.run(options.count, solutions=options.solutions != "none")
    finally:
        bar.end()
    document = {
        **summary.model_dump(),
        "adds_up": summary.adds_up,
        "seconds": round(time.monotonic() - began, 1),
    }
    if options.json:
        dump(document)
    else:
        _print(document)
    return GOOD if summary.adds_up and summary.tasks - summary.given == options.count else NOT_GOOD


def _stats(options: argparse.Namespace) -> int:
    from trainer.data.stats import statistics

    document = statistics(options.folder)
    if options.json:
        dump(document)
    else:
        _print(document)
    return GOOD if document["adds_up"] else NOT_GOOD


def _print(document: dict[str, Any]) -> None:
    """A few aligned lines; what holds many counts is a list of them."""
    for name, value in document.items():
        label = name.replace("_", " ")
        if isinstance(value, dict):
            print(f"{label}:")
            for key, count in value.items():
                said = ", ".join(f"{k} {v}" for k, v in count.items()) if isinstance(count, dict) else count
                print(f"  {key:<28} {said}")
        elif isinstance(value, list):
            print(f"{label}: {len(value)}")
            for line in value[:20]:
                print(f"  {line}")
        else:
            print(f"{label}: {value}")


class _Bar:
    """Progress on stderr: a bar on a terminal, a line now and then elsewhere."""

    WIDTH = 30
    EVERY = 15.0  # seconds, where nobody sees a bar move

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._stage, self._began, self._first, self._said = "", 0.0, 0, 0.0

    def __call__(self, progress: Any) -> None:
        now = time.monotonic()
        if progress.stage != self._stage:
            self.end()
            self._stage, self._began, self._first = progress.stage, now, progress.done
        minutes = max(now - self._began, 1e-9) / 60
        rate = (progress.done - self._first) / minutes
        counts = ", ".join(
            f"{count} {name.replace('_', ' ')}" for name, count in progress.counts.most_common(4)
        )
        line = f"{progress.stage} {progress.done}/{progress.of}, {rate:.1f} a minute ({counts})"
        if self._live:
            full = self.WIDTH * progress.done // max(progress.of, 1)
            print(
                f"\r[{'#' * full}{'.' * (self.WIDTH - full)}] {line}\x1b[K",
                end="",
                file=sys.stderr,
                flush=True,
            )
        elif now - self._said >= self.EVERY or progress.done == progress.of:
            self._said = now
            say(line)

    def end(self) -> None:
        if self._live and self._stage:
            print(file=sys.stderr)
        self._stage = ""
