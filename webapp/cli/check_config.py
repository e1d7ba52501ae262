"""Which task belongs to which candidate: a comment in the candidate, or `kernelwright.toml`.

In the candidate's first lines, the task's path from where the candidate lies:

    // kernelwright: task=saxpy.c entry=saxpy target=sm_90 score>=70

In `kernelwright.toml`, paths from where that lies; what a comment says goes before it:

    [check]
    score_floor = 60              # for every kernel
    baseline = "baseline.json"    # made by --write-baseline
    drop_allowed = 0.5            # points below the baseline

    [[kernel]]
    candidate = "kernels/*.cu"
    task = "tasks/saxpy.c"
    entry = "saxpy"               # and: inputs, target, score_floor
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import Field, ValidationError

from sandbox.errors import TaskProblem
from sandbox.types import Data, Problem
from webapp.cli.common import read_text

NAME = "kernelwright.toml"
HEAD_LINES = 40
_COMMENT = re.compile(r"^\s*(?://|/?\*+)\s*kernelwright:\s*(.*?)\s*(?:\*/)?\s*$")
_WORD = re.compile(r"(task|entry|inputs|target|score)\s*(>?=)\s*(\S+)")


class CheckSection(Data):
    score_floor: float | None = Field(default=None, ge=0, le=100)
    baseline: str | None = None
    drop_allowed: float = Field(default=0.5, ge=0)


class KernelSection(Data):
    candidate: str  # a path, or a pattern
    task: str
    entry: str | None = None
    inputs: str | None = None
    target: str | None = None
    score_floor: float | None = Field(default=None, ge=0, le=100)


class Config(Data):
    check: CheckSection = CheckSection()
    kernel: list[KernelSection] = Field(default_factory=list)


@dataclass(frozen=True)
class Kernel:
    """A candidate with the task it is for."""

    candidate: Path
    task: Path
    entry: str | None = None
    inputs: Path | None = None
    target: str | None = None
    score_floor: float | None = None


@dataclass(frozen=True)
class Project:
    """The config, and the folder from which its paths are meant."""

    root: Path
    config: Config


def project_of(path: Path | None, start: Path) -> Project:
    """The file named, else the nearest above `start`, else none. Raises TaskProblem."""
    found = path or next((it / NAME for it in (start, *start.parents) if (it / NAME).is_file()), None)
    if found is None:
        return Project(start, Config())
    try:
        return Project(found.resolve().parent, Config.model_validate(tomllib.loads(read_text(found))))
    except tomllib.TOMLDecodeError as error:
        raise _wrong(f"{found} is not TOML: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise _wrong(f"{found}: {where}: {first['msg'].lower()}") from error


def kernels_of(project: Project, paths: Sequence[Path]) -> tuple[list[Kernel], list[Path]]:
    """The kernels among `paths` (all of the project without any), and the .cu files that name no task.

    A folder stands for what is in it, a task for all its candidates. Raises TaskProblem.
    """
    configured = list(_configured(project))
    by_candidate = {kernel.candidate: kernel for kernel in configured}
    if paths:
        wanted = [file for path in paths for file in _files(path)]
    else:
        wanted = sorted({*by_candidate, *_files(project.root)})
    found: dict[Path, Kernel] = {}
    without: list[Path] = []
    for file in wanted:
        if file.suffix == ".cu":
            kernel = _by_comment(file, by_candidate.get(file), project)
            if kernel is not None:
                found[file] = kernel
            else:
                without.append(file)
        else:
            everything = kernels_of(project, ())[0]
            beside = (kernel for kernel in everything if file in (kernel.task, kernel.inputs))
            found |= {kernel.candidate: kernel for kernel in beside}
    return list(found.values()), without


def _configured(project: Project) -> Iterator[Kernel]:
    for section in project.config.kernel:
        task = (project.root / section.task).resolve()
        candidates = sorted(project.root.glob(section.candidate))
        if not candidates:
            raise _wrong(f"{NAME}: no file is {section.candidate!r}")
        for candidate in candidates:
            yield Kernel(
                candidate=candidate.resolve(),
                task=task,
                entry=section.entry,
                inputs=(project.root / section.inputs).resolve() if section.inputs else None,
                target=section.target,
                score_floor=_floor(section.score_floor, project),
            )


def _by_comment(file: Path, configured: Kernel | None, project: Project) -> Kernel | None:
    for line in read_text(file).splitlines()[:HEAD_LINES]:
        if (comment := _COMMENT.match(line)) is None:
            continue
        said = {name: value for name, _, value in _WORD.findall(comment[1])}
        if rest := _WORD.sub("", comment[1]).strip():
            raise _wrong(
                f"{file}: {rest!r} is not understood; known are task=, entry=, inputs=, target=, score>="
            )
        base = configured
        if "task" in said:
            base = Kernel(file, (file.parent / said["task"]).resolve(), score_floor=_floor(None, project))
        if base is None:
            raise _wrong(f"{file}: its comment names no task=")
        return replace(
            base,
            entry=said.get("entry", base.entry),
            inputs=(file.parent / said["inputs"]).resolve() if "inputs" in said else base.inputs,
            target=said.get("target", base.target),
            score_floor=_number(file, said["score"]) if "score" in said else base.score_floor,
        )
    return configured


def _floor(own: float | None, project: Project) -> float | None:
    return own if own is not None else project.config.check.score_floor


def _number(file: Path, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise _wrong(f"{file}: score>={text}: is no number") from None


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise _wrong(f"there is no {path}")
    if path.is_dir():
        hidden = (file for file in path.rglob("*.cu") if not _is_hidden(file.relative_to(path)))
        return sorted(file.resolve() for file in hidden)
    return [path.resolve()]


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") or part == "node_modules" for part in path.parts)


def _wrong(message: str) -> TaskProblem:
    return TaskProblem(Problem(kind="bad_config", message=message))
