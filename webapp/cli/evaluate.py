"""Judge a given .cu for the task in FILE.

Example: kernelwright evaluate examples/c/saxpy.c saxpy.cu --json
"""

from __future__ import annotations

import argparse
import signal
from pathlib import Path

from sandbox import client
from sandbox.cancellation import Cancellation
from sandbox.types import Evaluation
from trainer import reward
from webapp.cli.common import add_task_arguments, read_text, target_of, task_of
from webapp.cli.output import dump, exit_code, summary


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_task_arguments(parser)
    parser.add_argument("candidate", type=Path, metavar="CANDIDATE", help="the CUDA source to judge")


def judged(options: argparse.Namespace) -> Evaluation:
    cancel = Cancellation()
    signal.signal(signal.SIGINT, lambda *_: cancel.set())
    source = read_text(options.candidate)
    task = task_of(options, cancel)
    return client.evaluate(task, source, backend=options.backend, target=target_of(options), cancel=cancel)


def main(options: argparse.Namespace) -> int:
    evaluation = reward.attach(judged(options))
    if options.json:
        dump(evaluation.model_dump(mode="json"))
    else:
        print(summary(evaluation))
    return exit_code(evaluation)
