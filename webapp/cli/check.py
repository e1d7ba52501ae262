"""Judge the kernels of a project, offline: for CI and for pre-commit. Exit 1 when one fails or got worse.

Example: kernelwright check
         kernelwright check kernels/ --sarif kernels.sarif --annotations
         kernelwright check --write-baseline kernelwright-baseline.json

Which task a candidate is for says a comment in it, or kernelwright.toml:

    // kernelwright: task=saxpy.c score>=70
"""

from __future__ import annotations

import argparse
import json
import os
import signal
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from sandbox import client
from sandbox.cancellation import Cancellation
from sandbox.errors import TaskProblem
from sandbox.types import Evaluation, Problem
from webapp.cli.check_config import Kernel, Project, kernels_of, project_of
from webapp.cli.common import read_text, target_of, task_of
from webapp.cli.findings import Finding, annotation, findings_of, line_in, sarif
from webapp.cli.output import BAD_INPUT, GOOD, NOT_GOOD, OWN_FAULT, dump, one_line, printable, say

BASELINE_VERSION = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", nargs="*", type=Path, metavar="PATH", help="candidates, folders, tasks; default: all"
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="default: kernelwright.toml here or above"
    )
    parser.add_argument("--backend", choices=["auto", "emulator", "gpu"], default="emulator")
    parser.add_argument("--target", default=os.environ.get("KERNELWRIGHT_TARGET"), metavar="sm_90")
    parser.add_argument("--score-floor", type=float, metavar="N", help="for kernels that name no other")
    parser.add_argument("--baseline", type=Path, metavar="FILE", help="scores that must not drop")
    parser.add_argument("--write-baseline", type=Path, metavar="FILE", help="write the scores down")
    parser.add_argument("--sarif", type=Path, metavar="FILE", help="findings as SARIF 2.1.0")
    parser.add_argument("--annotations", action="store_true", help="findings as GitHub's annotations")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


@dataclass
class Checked:
    """A kernel with what was found."""

    candidate: str
    task: str
    verdict: str | None  # None: the task could not be judged
    score: float | None
    message: str
    findings: list[Finding] = field(default_factory=list)

    @property
    def code(self) -> int:
        if self.verdict == "internal_error":
            return OWN_FAULT
        if self.verdict is None:
            return BAD_INPUT
        return NOT_GOOD if any(finding.level == "error" for finding in self.findings) else GOOD


def main(options: argparse.Namespace) -> int:
    cancel = Cancellation()
    signal.signal(signal.SIGINT, lambda *_: cancel.set())
    project = project_of(options.config, Path.cwd())
    baseline = _baseline(options, project)
    kernels, without = kernels_of(project, options.paths)
    for file in without:
        say(f"{_name(file, project)}: names no task, so it is not judged")
    checked: list[Checked] = []
    for kernel in kernels:
        say(f"{_name(kernel.candidate, project)} for {_name(kernel.task, project)}")
        checked.append(_check(kernel, project, options, baseline, cancel))
        _tell(checked[-1], options)
    findings = [finding for it in checked for finding in it.findings]
    code = max((it.code for it in checked), default=GOOD)
    if options.sarif is not None:
        done = code in (GOOD, NOT_GOOD)
        _write(options.sarif, json.dumps(sarif(findings, done=done), indent=1) + "\n")
    if options.write_baseline is not None:
        scores = {it.candidate: it.score for it in checked if it.score is not None}
        document = {"version": BASELINE_VERSION, "scores": dict(sorted(scores.items()))}
        _write(options.write_baseline, json.dumps(document, indent=1) + "\n")
    if options.json:
        unjudged = [_name(file, project) for file in without]
        dump({"kernels": [asdict(it) for it in checked], "without_task": unjudged})
    bad = sum(it.code != GOOD for it in checked)
    say(f"{len(checked)} kernels judged, {bad} not good" if checked else "no kernel to judge")
    return code


def _check(
    kernel: Kernel,
    project: Project,
    options: argparse.Namespace,
    baseline: dict[str, float],
    cancel: Cancellation,
) -> Checked:
    name, task = _name(kernel.candidate, project), _name(kernel.task, project)
    try:
        evaluation = _judged(kernel, options, cancel)
    except TaskProblem as error:
        said = one_line(error.problem)
        finding = Finding("bad_task", "error", said, name)
        return Checked(name, task, None, None, said, [finding])
    checked = Checked(name, task, evaluation.verdict, evaluation.score, evaluation.message)
    checked.findings += findings_of(evaluation, name)
    checked.findings += _too_low(checked, kernel, project, options, baseline, evaluation)
    return checked


def _judged(kernel: Kernel, options: argparse.Namespace, cancel: Cancellation) -> Evaluation:
    asked = argparse.Namespace(
        file=kernel.task,
        entry=kernel.entry,
        inputs=kernel.inputs,
        target=kernel.target or options.target,
        backend=options.backend,
    )
    source = read_text(kernel.candidate)
    task = task_of(asked, cancel)
    return client.evaluate(task, source, backend=options.backend, target=target_of(asked), cancel=cancel)


def _too_low(
    checked: Checked,
    kernel: Kernel,
    project: Project,
    options: argparse.Namespace,
    baseline: dict[str, float],
    evaluation: Evaluation,
) -> Iterator[Finding]:
    if checked.score is None:
        return
    weakest = _weakest(evaluation)
    floor = kernel.score_floor if kernel.score_floor is not None else options.score_floor
    if floor is not None and checked.score < floor:
        message = f"structural score {checked.score:.1f} is below the floor {floor:g}. {weakest}".strip()
        yield Finding("score_floor", "error", message, checked.candidate, line_in(weakest))
    before = baseline.get(checked.candidate)
    if before is not None and checked.score < before - project.config.check.drop_allowed:
        message = f"structural score {checked.score:.1f} was {before:.1f} before. {weakest}".strip()
        yield Finding("score_regression", "error", message, checked.candidate, line_in(weakest))


def _weakest(evaluation: Evaluation) -> str:
    """What is said of the family with the lowest score."""
    metrics = evaluation.metrics
    if metrics is None or not metrics.families:
        return ""
    name = min(metrics.families, key=lambda family: metrics.families[family])
    word = name.replace("_", " ")
    return next(
        (note for note in metrics.notes if word in note.lower().replace("_", " ")), f"weakest: {word}"
    )


def _tell(checked: Checked, options: argparse.Namespace) -> None:
    if options.annotations:
        for finding in checked.findings:
            print(printable(annotation(finding)))
    if not options.json and not options.annotations:
        score = "" if checked.score is None else f", score {checked.score:.1f}"
        print(f"{checked.candidate}: {checked.verdict or 'bad task'}{score}: {printable(checked.message)}")
        for finding in checked.findings:
            if finding.level != "note":
                place = f"{finding.file}:{finding.line}" if finding.line else finding.file
                print(f"  {place}: {finding.level}: {printable(finding.message)}")


def _baseline(options: argparse.Namespace, project: Project) -> dict[str, float]:
    named = project.config.check.baseline
    path: Path | None = options.baseline or (project.root / named if named else None)
    if path is None or (options.baseline is None and not path.exists()):
        return {}
    try:
        document = json.loads(read_text(path))
        if document["version"] != BASELINE_VERSION:
            raise ValueError(f"version {document['version']} is not known")
        return {str(name): float(score) for name, score in document["scores"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"{path} is no baseline: {error}"
        hint = "make one with --write-baseline"
        raise TaskProblem(Problem(kind="bad_baseline", message=message, hint=hint)) from error


def _name(file: Path, project: Project) -> str:
    resolved = file.resolve()
    root = project.root.resolve()
    return resolved.relative_to(root).as_posix() if resolved.is_relative_to(root) else resolved.as_posix()


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except OSError as error:
        message = f"cannot write {path}: {error.strerror}"
        raise TaskProblem(Problem(kind="bad_output", message=message)) from error
