"""The real nvcc, told what a program needs to run on Kernelwright's CUDA runtime. For Makefiles:

Example: make NVCC="kernelwright nvcc" && kernelwright exec ./main -- 1000

All arguments are nvcc's. What is changed: the runtime, cuBLAS, cuFFT and cuRAND are Kernelwright's shared
libraries, PTX stays readable in the product, and the code is for the architecture of KERNELWRIGHT_TARGET
(sm_90).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from sandbox import native
from sandbox.errors import TaskProblem
from sandbox.program.libraries import headers
from sandbox.program.nvcc import adapt, explain
from sandbox.targets import DEFAULT_TARGET, TARGETS
from sandbox.toolchain import EXAMINED, find_toolkit
from sandbox.types import Problem
from webapp.cli.output import NOT_GOOD, say


def prepare(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Everything is nvcc's, but a lone --help."""
    at = arguments.index("nvcc") + 1
    if arguments[at:] == ["--help"]:
        return arguments, []
    return arguments[:at], arguments[at:]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "kernelwright nvcc ARGUMENTS OF NVCC ..."


def main(options: argparse.Namespace) -> int:
    if EXAMINED in os.environ:  # some `nvcc` on PATH is this very command
        return NOT_GOOD
    target = os.environ.get("KERNELWRIGHT_TARGET", DEFAULT_TARGET)
    if target not in TARGETS:
        raise TaskProblem(
            Problem(kind="unknown_target", message=f"unknown target {target!r}", choices=sorted(TARGETS))
        )
    nvcc = find_toolkit().nvcc
    line = adapt(options.rest, target=target, product=native.path, headers=headers())
    finished = subprocess.run([nvcc, *line.arguments], stderr=subprocess.PIPE, check=False)
    sys.stderr.buffer.write(finished.stderr)
    sys.stderr.flush()
    if finished.returncode:
        for sentence in explain(finished.stderr.decode(errors="replace"), line):
            say(f"kernelwright: {sentence}")
    return finished.returncode
