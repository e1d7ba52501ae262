"""Whole CUDA programs without a GPU: built by nvcc, run in a jail on our runtime, checked and measured.

`build` makes an executable whose CUDA runtime is ours, `run` runs it and serves what that runtime asks for
(`service`): the target's table, lowered kernels, a place for its reports.
"""

from sandbox.program.build import BuildFailed, Built, build
from sandbox.program.report import Finding, Report
from sandbox.program.run import CHECKS, Options, Run, run

__all__ = ["CHECKS", "BuildFailed", "Built", "Finding", "Options", "Report", "Run", "build", "run"]
