"""One judgement, top to bottom: compile, record, replay, verify, measure.

The reference and the compilation run side by side; lowering PTX and recording launch plans do too. Whatever
ends the judgement early is a `Judged` with a verdict and whose fault it is. A failure of the judge itself is
`internal_error` and Kernelwright's fault, never the candidate's.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from sandbox import toolchain, verify
from sandbox.cancellation import Cancellation
from sandbox.emulator import client as emulator
from sandbox.emulator.trace import ReplayResult
from sandbox.errors import Cancelled, JailUnavailable, Judged, TaskProblem, ToolchainMissing
from sandbox.idle import idle_kernels
from sandbox.metrics import compulsory_bytes, measure
from sandbox.placement import array_bytes, place
from sandbox.plan import Allocate as PlanAllocate
from sandbox.plan import Copy, LaunchPlan, Upload, WriteSymbol
from sandbox.progress import (
    CompiledCandidate,
    LogChunk,
    MeasuredCandidate,
    Progress,
    StageAt,
    VerifiedCandidate,
)
from sandbox.ptx import PtxError, parameter_layout
from sandbox.recorder import client as recorder
from sandbox.targets import Target
from sandbox.tasks.base import Draw, Expected, Parameter, Task
from sandbox.types import (
    Compilation,
    CompiledKernel,
    Evaluation,
    Metrics,
    PlannedLaunch,
    PlanSummary,
    Verification,
)

#: Wall time for all replays of one judgement.
REPLAY_SECONDS = 30.0
#: And for one more, without one of its kernels.
AGAIN_SECONDS = 5.0
#: Outputs start as these bytes, in one replay each: an element nobody wrote cannot agree with both.
POISONS = (0xFF, 0x5A)

Report = Callable[[Progress], None]


@dataclass(frozen=True)
class Reference:
    """Secret inputs and what the user's own program makes of them."""

    seed: bytes
    draws: Sequence[Draw]
    expected: Sequence[Expected]


@dataclass
class Judgement:
    """What is known so far; becomes the evaluation, also when the judgement ends early."""

    compilation: Compilation | None = None
    plan: PlanSummary | None = None
    verification: Verification | None = None
    metrics: Metrics | None = None
    stages: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.stages[name] = round(self.stages.get(name, 0.0) + time.monotonic() - began, 4)


class Pipeline:
    """All judgements of one task. Not for two at once."""

    def __init__(self, task: Task, *, target: Target, cancel: Cancellation) -> None:
        self._task = task
        self._target = target
        # The caller's cancellation, and our own end: what is computed ahead must not outlive `close`.
        self._cancel = Cancellation(lambda: cancel.is_set, interval=0.0)
        self._pool = ThreadPoolExecutor(max_workers=3, thread_name_prefix="judge")
        self._ahead: Future[Reference] = self._pool.submit(self._reference)

    def evaluate(self, source: str, report: Report) -> Evaluation:
        """Raises Cancelled, and TaskProblem where the reference itself cannot be had."""
        began, judgement = time.monotonic(), Judgement()
        try:
            self._judge(source, judgement, report)
            verdict, fault, message = "passed", None, _passed(judgement)
        except Judged as ending:
            verdict, fault, message = ending.verdict, ending.fault, ending.message
        except (Cancelled, TaskProblem, JailUnavailable, ToolchainMissing):
            raise
        except Exception as error:
            verdict, fault = "internal_error", "kernelwright"
            message = f"the judge failed: {type(error).__name__}: {error}"
        return Evaluation(
            verdict=verdict,
            fault=fault,
            message=_printable(message),
            backend="emulator",
            target=self._target.arch,
            compile=judgement.compilation,
            plan=judgement.plan,
            verification=judgement.verification,
            metrics=judgement.metrics,
            seconds=round(time.monotonic() - began, 4),
            stages=judgement.stages,
        )

    def close(self) -> None:
        """Stops what was computed ahead, with its jails."""
        self._cancel.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _reference(self) -> Reference:
        seed = secrets.token_bytes(16)
        draws = self._task.draws(seed)
        return Reference(seed, draws, self._task.expected(draws, self._cancel))

    def _judge(self, source: str, judgement: Judgement, report: Report) -> None:
        compiled = self._compile(source, judgement, report)
        with judgement.stage("reference"):
            report(StageAt("reference", "running your program on fresh secret inputs"))
            reference, self._ahead = self._ahead.result(), self._pool.submit(self._reference)
        lowering = self._lower_ahead(compiled)
        addresses = place(self._task.spec.parameters, reference.draws)
        with judgement.stage("record"):
            report(StageAt("record", f"recording {len(reference.draws)} launch plans"))
            plans = self._record(compiled, reference.draws, addresses)
        main = next(i for i, draw in enumerate(reference.draws) if draw.representative)
        judgement.plan = _summary(plans[main], compiled.compilation.kernels)
        report(CompiledCandidate(compiled.compilation, judgement.plan))
        with judgement.stage("lower"):
            report(StageAt("lower", "lowering PTX to vector code"))
            lowered = lowering.result() if lowering else self._lower(compiled, plans)
        with judgement.stage("replay"):
            outcomes = self._replay(lowered, plans, reference.draws, addresses, main, report)
        with judgement.stage("verify"):
            report(StageAt("verify"))
            judgement.verification = verify.verify(
                self._task.spec, reference.draws, reference.expected, outcomes.outputs, seed=reference.seed
            )
            report(VerifiedCandidate(judgement.verification))
            verify.judge(judgement.verification)
        with judgement.stage("measure"):
            report(StageAt("measure"))
            draw, outputs = reference.draws[main], outcomes.outputs[main][0]
            replay_again = self._again(
                lowered, _buffers(self._task.spec.parameters, draw, addresses, POISONS[0])
            )
            judgement.metrics = measure(
                outcomes.traced.launches,
                compiled.compilation.kernels,
                self._target,
                dict(reference.draws[main].sizes),
                copies=judgement.plan.copies,
                task_bytes=compulsory_bytes(self._task.spec.parameters, reference.draws[main].extents),
                idle=idle_kernels(plans[main], outputs, replay_again),
            )
            report(MeasuredCandidate(judgement.metrics))

    def _compile(self, source: str, judgement: Judgement, report: Report) -> toolchain.Compiled:
        with judgement.stage("compile"):
            report(StageAt("compile", "nvcc"))
            emulator.warm()
            compiled = toolchain.compile_candidate(
                source,
                target=self._target.arch,
                cancel=self._cancel,
                on_log=lambda text: report(LogChunk("nvcc", text)),
            )
        judgement.compilation = compiled.compilation
        if not compiled.ok:
            report(CompiledCandidate(compiled.compilation, None))
            raise Judged("compile_error", "candidate", _first_error(compiled.compilation))
        return compiled

    def _lower_ahead(self, compiled: toolchain.Compiled) -> Future[emulator.Lowered] | None:
        """Starts lowering before the plans are known, where they leave no choice: there is one kernel."""
        kernels = [(i, name) for i, text in enumerate(compiled.ptx) for name in _layout(text)]
        if len(kernels) != 1:
            return None
        return self._pool.submit(emulator.lower, compiled.ptx, self._cancel, kernels)

    def _lower(self, compiled: toolchain.Compiled, plans: Sequence[LaunchPlan]) -> emulator.Lowered:
        """Only what is launched: what else the file holds costs nothing and need not be supported."""
        launched = {(launch.module, launch.kernel) for plan in plans for launch in plan.launches}
        return emulator.lower(compiled.ptx, self._cancel, launched)

    def _record(
        self, compiled: toolchain.Compiled, draws: Sequence[Draw], addresses: Mapping[str, int]
    ) -> list[LaunchPlan]:
        layout: dict[str, list[tuple[int, int]]] = {}
        for module in compiled.ptx:
            layout.update(_layout(module))
        return recorder.record(
            compiled,
            self._task.spec.parameters,
            [{**draw.scalars, **addresses} for draw in draws],
            layout=layout,
            target=self._target,
            cancel=self._cancel,
        )

    def _again(
        self, lowered: emulator.Lowered, buffers: Sequence[emulator.Buffer]
    ) -> Callable[[LaunchPlan], Mapping[str, bytes] | None]:
        """Replays another plan on the same buffers."""

        def again(plan: LaunchPlan) -> Mapping[str, bytes] | None:
            try:
                [(result, read_back)] = emulator.replay(
                    lowered,
                    [emulator.Replay(plan=plan, buffers=buffers, count=False)],
                    seconds=AGAIN_SECONDS,
                    threads=os.cpu_count() or 1,
                    cancel=self._cancel,
                )
            except Judged:  # what happens without one of its kernels is not the candidate's fault
                return None
            return read_back if result.status == "ok" else None

        return again

    def _replay(
        self,
        lowered: emulator.Lowered,
        plans: Sequence[LaunchPlan],
        draws: Sequence[Draw],
        addresses: Mapping[str, int],
        main: int,
        report: Report,
    ) -> Outcomes:
        """Every draw once with each poison; counts are taken on the representative one."""
        order = [(i, poison) for poison in POISONS for i in range(len(draws))]
        replays = [
            emulator.Replay(
                plan=plans[i],
                buffers=_buffers(self._task.spec.parameters, draws[i], addresses, poison),
                count=i == main and poison == POISONS[0],
            )
            for i, poison in order
        ]
        results = emulator.replay(
            lowered,
            replays,
            seconds=REPLAY_SECONDS,
            threads=os.cpu_count() or 1,
            cancel=self._cancel,
            on_progress=lambda done, of: report(StageAt("replay", "draws in the emulator", done, of)),
        )
        for (i, _), (result, _) in zip(order, results, strict=False):
            _require_ok(result, draws[i])
        outputs: list[list[dict[str, bytes]]] = [[] for _ in draws]
        for (i, _), (_, read_back) in zip(order, results, strict=True):
            outputs[i].append(read_back)
        return Outcomes(outputs=outputs, traced=results[main][0])


@dataclass(frozen=True)
class Outcomes:
    outputs: Sequence[
        Sequence[Mapping[str, bytes]]
    ]  # by draw, by poison: array name -> bytes after the replay
    traced: ReplayResult  # of the representative draw


def _layout(ptx: str) -> dict[str, list[tuple[int, int]]]:
    try:
        return parameter_layout(ptx)
    except PtxError as error:
        raise Judged("unsupported", "kernelwright", error.message) from error


def _buffers(
    parameters: Sequence[Parameter], draw: Draw, addresses: Mapping[str, int], poison: int
) -> list[emulator.Buffer]:
    """All arrays are read back: outputs to be compared, inputs to see that nobody wrote to them."""
    return [
        emulator.Buffer(
            name=parameter.name,
            address=addresses[parameter.name],
            data=draw.arrays[parameter.name].tobytes() if parameter.name in draw.arrays else None,
            bytes=array_bytes(parameter, draw),
            read_back=True,
            initialised=parameter.name in draw.arrays,
            poison_byte=poison,
        )
        for parameter in parameters
        if parameter.kind == "array"
    ]


def _require_ok(result: ReplayResult, draw: Draw) -> None:
    where = ", ".join(f"{name} = {value}" for name, value in draw.sizes.items())
    at = f" (sizes: {where})" if where else ""
    match result.status:
        case "fault":
            assert result.fault is not None
            line = f" at line {result.fault.line}" if result.fault.line else ""
            raise Judged(
                "runtime_error", "candidate", f"{result.fault.kind}{line}: {result.fault.message}{at}"
            )
        case "timeout":
            raise Judged("timeout", "candidate", f"the replay did not end within {REPLAY_SECONDS:.0f} s{at}")
        case "unsupported":
            raise Judged("unsupported", "kernelwright", result.message)
        case "ok":
            pass


def _summary(plan: LaunchPlan, kernels: Sequence[CompiledKernel]) -> PlanSummary:
    names = {kernel.symbol: kernel.name for kernel in kernels}
    return PlanSummary(
        launches=[
            PlannedLaunch(
                kernel=names.get(launch.kernel, launch.kernel),
                grid=launch.grid,
                block=launch.block,
                shared_bytes=launch.shared_bytes,
            )
            for launch in plan.launches
        ],
        scratch_bytes=sum(o.bytes for o in plan.operations if isinstance(o, PlanAllocate)),
        copies=sum(isinstance(o, Copy | Upload | WriteSymbol) for o in plan.operations),
    )


def _printable(message: str) -> str:
    """Parts of messages are a candidate's own words: on a terminal they must stay words."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in message)


def _first_error(compilation: Compilation) -> str:
    first = next((d for d in compilation.diagnostics if d.severity == "error"), None)
    if first is None:
        return "nvcc failed without naming an error; the compile log has its last words"
    return f"line {first.line}: {first.message}" if first.line else first.message


def _passed(judgement: Judgement) -> str:
    assert judgement.verification is not None
    assert judgement.metrics is not None
    return (
        f"agrees with the reference on {judgement.verification.draws} secret draws; "
        f"structural score {judgement.metrics.structural_score:.1f}"
    )
