"""Structural metrics of a candidate, by kernel and by source line, measured in the emulator.

Example: kernelwright profile examples/c/matmul.c matmul.cu
"""

from __future__ import annotations

import argparse

from webapp.cli.common import read_text
from webapp.cli.evaluate import add_arguments as add_arguments
from webapp.cli.evaluate import judged
from webapp.cli.output import dump, exit_code, summary
from webapp.cli.tables import kernel_table


def main(options: argparse.Namespace) -> int:
    evaluation = judged(options)
    metrics = evaluation.metrics
    if options.json:
        dump(
            metrics.model_dump(mode="json")
            if metrics
            else {"verdict": evaluation.verdict, "message": evaluation.message}
        )
        return exit_code(evaluation)
    print(summary(evaluation))
    if metrics is not None:
        source = read_text(options.candidate).splitlines()
        for kernel in metrics.kernels:
            print(kernel_table(kernel, source))
    return exit_code(evaluation)
