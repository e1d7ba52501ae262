"""An environment whose evaluations are given, for tests of loops and policies."""

from __future__ import annotations

from collections.abc import Generator

from agent.events import Event, Log, Stage
from sandbox.tasks.base import Inputs, Parameter, TaskSpec
from sandbox.types import Compilation, Evaluation, Metrics

SPEC = TaskSpec(
    language="c",
    name="f",
    source="void f(int n, float *x) {}",
    prototype='extern "C" void launch(int n, float *x)',
    parameters=[
        Parameter(name="n", kind="scalar", dtype="int32", c_type="int", role="size"),
        Parameter(name="x", kind="array", dtype="float32", c_type="float *", access="read_write", extent="n"),
    ],
    sizes={"n": 1024},
    inputs=Inputs(),
)


def evaluation(score: float | None) -> Evaluation:
    """Passed with this score, or wrong when None."""
    if score is None:
        return Evaluation(
            verdict="wrong_result", fault="candidate", message="off", backend="emulator", target="sm_90"
        )
    metrics = Metrics(structural_score=score, families={}, measured_by="emulator", kernels=[])
    return Evaluation(
        verdict="passed", fault=None, message="agrees", backend="emulator", target="sm_90", metrics=metrics
    )


class Given:
    """Answers the n-th candidate with the n-th outcome; an exception among them is raised.

    `compilations` are what compiling alone says, in order; then it says that all is well.
    """

    spec = SPEC
    backend = "emulator"
    target = "sm_90"

    def __init__(self, *outcomes: float | Evaluation | Exception | None) -> None:
        self.outcomes = list(outcomes)
        self.judged: list[str] = []
        self.compilations: list[tuple[bool, Compilation]] = []

    def step(self, turn: int, source: str) -> Generator[Event, None, Evaluation]:
        yield Log(turn=turn, stream="nvcc", text=source)
        self.judged.append(source)
        outcome = self.outcomes[len(self.judged) - 1]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome if isinstance(outcome, Evaluation) else evaluation(outcome)

    def compile(self, turn: int, source: str) -> Generator[Event, None, tuple[bool, Compilation]]:
        yield Log(turn=turn, stream="nvcc", text=source)
        if self.compilations:
            return self.compilations.pop(0)
        return True, Compilation(seconds=0.1, log="", diagnostics=[], kernels=[])

    def reference_times(self, turn: int) -> Generator[Event, None, dict[str, float]]:
        yield Stage(turn=turn, stage="time", detail="your own program")
        return {"c": 12.5}
