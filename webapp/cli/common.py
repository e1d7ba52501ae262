"""Options that several commands share, and reading what they name."""

from __future__ import annotations

import argparse
import os
import tomllib
from pathlib import Path

from pydantic import ValidationError

from sandbox.cancellation import Cancellation
from sandbox.client import default_target
from sandbox.errors import TaskProblem
from sandbox.targets import DEFAULT_TARGET
from sandbox.tasks.base import Inputs, Task
from sandbox.tasks.load import load_task
from sandbox.types import Problem

MAX_CANDIDATE_BYTES = 1 << 20


def add_task_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", type=Path, metavar="FILE", help=".c (a function) or .py (PyTorch, KernelBench form)"
    )
    parser.add_argument("--entry", metavar="NAME", help="the function to translate, where FILE has several")
    parser.add_argument(
        "--inputs",
        type=Path,
        metavar="FILE.toml",
        help="sizes, ranges, extents (default: FILE with .toml, if there)",
    )
    parser.add_argument(
        "--backend",
        choices=["auto", "emulator", "gpu"],
        default="auto",
        help="where candidates run (default: a GPU where there is one)",
    )
    parser.add_argument(
        "--target",
        default=os.environ.get("KERNELWRIGHT_TARGET"),
        metavar="sm_90",
        help=f"architecture judged for (default: KERNELWRIGHT_TARGET, the GPU's own, or {DEFAULT_TARGET})",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def target_of(options: argparse.Namespace) -> str:
    target: str | None = options.target
    return target or default_target(options.backend)


def read_bytes(path: Path, limit: int | None = None) -> bytes:
    """Raises TaskProblem with what to do."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TaskProblem(Problem(kind="no_file", message=f"cannot read {path}: {error.strerror}")) from error
    if limit is not None and len(data) > limit:
        raise TaskProblem(
            Problem(kind="too_large", message=f"{path} has {len(data):,} bytes; at most {limit:,} are read")
        )
    return data


def read_text(path: Path) -> str:
    try:
        return read_bytes(path, MAX_CANDIDATE_BYTES).decode()
    except UnicodeDecodeError as error:
        raise TaskProblem(
            Problem(
                kind="not_utf8",
                message=f"{path} is not UTF-8: byte {error.start} is {error.object[error.start]:#04x}",
            )
        ) from error


def read_inputs(options: argparse.Namespace) -> Inputs | None:
    """The inputs block: the file named, else the one beside FILE, else none."""
    path: Path = options.inputs or options.file.with_suffix(".toml")
    if options.inputs is None and not path.exists():
        return None
    try:
        return Inputs.model_validate(tomllib.loads(read_text(path)))
    except tomllib.TOMLDecodeError as error:
        raise TaskProblem(Problem(kind="bad_inputs", message=f"{path} is not TOML: {error}")) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise TaskProblem(
            Problem(
                kind="bad_inputs",
                message=f"{path}: {where}: {first['msg'].lower()}",
                hint="known are sizes, scalars, arrays, tolerance, reproducible",
            )
        ) from error


def task_of(options: argparse.Namespace, cancel: Cancellation) -> Task:
    return load_task(
        read_bytes(options.file),
        filename=options.file.name,
        entry=options.entry,
        inputs=read_inputs(options),
        cancel=cancel,
    )
