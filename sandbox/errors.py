"""The named ways in which the judge cannot go on, each with whose fault it is."""

from __future__ import annotations

from sandbox.types import Fault, Problem, Verdict


class TaskProblem(Exception):
    """The task as given cannot be judged: bad input. Exit code 2 on the command line."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class Judged(Exception):
    """Judging is over early, with this verdict. Caught by `sandbox.evaluate`."""

    def __init__(self, verdict: Verdict, fault: Fault | None, message: str) -> None:
        super().__init__(message)
        self.verdict = verdict
        self.fault = fault
        self.message = message


class Cancelled(Exception):
    """The caller's cancellation was set; every process started for it has been killed."""


class JailUnavailable(Exception):
    """Untrusted code cannot be confined on this machine, so it is not run. The message says what to allow."""


class ToolchainMissing(Exception):
    """No usable nvcc or host compiler. The message says how to get one."""
