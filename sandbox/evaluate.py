"""One judgement, top to bottom: compile, record, replay, verify, measure.

The reference and the compilation run side by side; lowering PTX and recording launch plans do too. Whatever
ends the judgement early is a `Judged` with a verdict and whose fault it is. A failure of the judge itself is
`internal_error` and Kernelwright's fault, never the candidate's.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from sandbox import timed, toolchain, verify
from sandbox.cancellation import Cancellation
from sandbox.emulator import client as emulator
from sandbox.errors import Cancelled, JailUnavailable, Judged, TaskProblem, ToolchainMissing
from sandbox.gpu.client import Session
from sandbox.gpu.devices import Device, NoDevice
from sandbox.idle import idle_kernels
from sandbox.metrics import compulsory_bytes, measure
from sandbox.placement import place
from sandbox.plan import DEVICE_BASE, Copy, LaunchPlan, Upload, WriteSymbol
from sandbox.plan import Allocate as PlanAllocate
from sandbox.progress import (
    CompiledCandidate,
    LogChunk,
    MeasuredCandidate,
    Progress,
    StageAt,
    TimedCandidate,
    VerifiedCandidate,
)
from sandbox.ptx import PtxError, parameter_layout
from sandbox.recorder import client as recorder
from sandbox.replays import POISONS, REPLAY_SECONDS, Outcomes, buffers, replay_draws
from sandbox.same_work import first_difference
from sandbox.targets import Target
from sandbox.tasks.base import Baseline, Draw, Expected, Task
from sandbox.types import (
    Compilation,
    CompiledKernel,
    Evaluation,
    Metrics,
    PlannedLaunch,
    PlanSummary,
    Timing,
    Verification,
)

#: Wall time for one more replay, without one of a plan's kernels.
AGAIN_SECONDS = 5.0
#: And for the emulator where there is a card to go on with.
COUNT_SECONDS = 10.0

Report = Callable[[Progress], None]


@dataclass(frozen=True)
class Reference:
    """Secret inputs and what the user's own program makes of them."""

    seed: bytes
    draws: Sequence[Draw]
    expected: Sequence[Expected]
    sets: Sequence[int]  # the representative draw, and further ones of its size for the clock

    @property
    def main(self) -> int:
        return self.sets[0]


@dataclass(frozen=True)
class Emulated:
    """What the emulator made of some draws, the representative one among them."""

    plans: Sequence[LaunchPlan]
    lowered: emulator.Lowered | None  # None where there is no saying, on a card: then `why`
    outcomes: Outcomes | None
    main: int
    why: str = ""


@dataclass
class Judgement:
    """What is known so far; becomes the evaluation, also when the judgement ends early."""

    compilation: Compilation | None = None
    plan: PlanSummary | None = None
    verification: Verification | None = None
    metrics: Metrics | None = None
    unmeasured: str = ""  # why there are no metrics
    timing: Timing | None = None
    untimed: str = ""
    jailed: bool = True
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

    def __init__(
        self,
        task: Task,
        *,
        target: Target,
        cancel: Cancellation,
        cards: Sequence[Device] = (),
        timing: bool = True,
    ) -> None:
        """`cards`: where candidates run; none: in the emulator alone, which counts and checks in any case.
        `timing`: whether what is right is timed on them."""
        self._task = task
        self._timing = timing
        self._cards = cards
        self._baselines: Sequence[Baseline] | None = None  # of the task, so timed once
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
        except NoDevice as missing:
            verdict, fault, message = "internal_error", "kernelwright", f"{missing}; {missing.how}"
        except Exception as error:
            verdict, fault = "internal_error", "kernelwright"
            message = f"the judge failed: {type(error).__name__}: {error}"
        return Evaluation(
            verdict=verdict,
            fault=fault,
            message=_printable(message),
            backend="gpu" if self._cards else "emulator",
            target=self._target.arch,
            compile=judgement.compilation,
            plan=judgement.plan,
            verification=judgement.verification,
            metrics=judgement.metrics,
            timing=judgement.timing,
            jailed=judgement.jailed,
            seconds=round(time.monotonic() - began, 4),
            stages=judgement.stages,
        )

    def close(self) -> None:
        """Stops what was computed ahead, with its jails."""
        self._cancel.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _reference(self) -> Reference:
        seed = secrets.token_bytes(16)
        draws = list(self._task.draws(seed))
        sets = [i for i, draw in enumerate(draws) if draw.representative]
        for number in range(1, timed.SETS if self._cards and self._timing else 1):
            more = self._task.draws(hashlib.sha256(seed + bytes([number])).digest()[:16])
            again = next(draw for draw in more if draw.representative)
            if again.sizes == draws[sets[0]].sizes:
                sets.append(len(draws))
                draws.append(replace(again, representative=False))
        return Reference(seed, draws, self._task.expected(draws, self._cancel), sets)

    def _judge(self, source: str, judgement: Judgement, report: Report) -> None:
        compiled = self._compile(source, judgement, report)
        with judgement.stage("reference"):
            report(StageAt("reference", "running your program on fresh secret inputs"))
            reference, self._ahead = self._ahead.result(), self._pool.submit(self._reference)
        addresses = place(self._task.spec.parameters, reference.draws)
        emulated = self._emulate(compiled, reference, addresses, judgement, report)
        with self._session(judgement, report) as session:
            if session is None:
                assert emulated.outcomes is not None
                outcomes, plans = emulated.outcomes, emulated.plans
            else:
                with judgement.stage("record"):
                    plans = self._record(compiled, reference.draws, addresses, session.base)
                    _require_same_work(emulated.plans[emulated.main], plans[reference.main], session.base)
                with judgement.stage("replay"):
                    outcomes = self._replay_on_card(session, compiled, plans, reference, addresses, report)
            with judgement.stage("verify"):
                report(StageAt("verify"))
                judgement.verification = verify.verify(
                    self._task.spec,
                    reference.draws,
                    reference.expected,
                    outcomes.outputs,
                    seed=reference.seed,
                )
                report(VerifiedCandidate(judgement.verification))
                verify.judge(judgement.verification)
            if session is not None and self._timing:
                with judgement.stage("time"):
                    self._time(session, compiled, plans, reference, addresses, emulated, judgement, report)
        with judgement.stage("measure"):
            self._measure(compiled, reference, addresses, emulated, judgement, report)

    def _emulate(
        self,
        compiled: toolchain.Compiled,
        reference: Reference,
        addresses: Mapping[str, int],
        judgement: Judgement,
        report: Report,
    ) -> Emulated:
        """All draws where there is no card; else the representative one, for its counts and checks."""
        lowering = self._lower_ahead(compiled)
        draws, main = reference.draws, reference.main
        if self._cards:
            draws, main = [draws[main]], 0
        with judgement.stage("record"):
            report(StageAt("record", f"recording {len(draws)} launch plans"))
            plans = self._record(compiled, draws, addresses, DEVICE_BASE)
        judgement.plan = _summary(plans[main], compiled.compilation.kernels)
        report(CompiledCandidate(compiled.compilation, judgement.plan))
        try:
            with judgement.stage("lower"):
                report(StageAt("lower", "lowering PTX to vector code"))
                lowered = lowering.result() if lowering else self._lower(compiled, plans)
            with judgement.stage("emulate" if self._cards else "replay"):
                outcomes = replay_draws(
                    lambda replays, on_progress: emulator.replay(
                        lowered,
                        replays,
                        seconds=COUNT_SECONDS if self._cards else REPLAY_SECONDS,
                        threads=os.cpu_count() or 1,
                        multiprocessors=self._target.sm_count,
                        cancel=self._cancel,
                        on_progress=on_progress,
                    ),
                    plans,
                    draws,
                    self._task.spec.parameters,
                    addresses,
                    count=main,
                    seed=int.from_bytes(reference.seed[:8]),
                    on_progress=lambda done, of: report(StageAt("replay", "draws in the emulator", done, of)),
                )
        except Judged as ending:
            # The card may well do what the emulator cannot, or not in time.
            if self._cards and (ending.verdict in ("timeout", "unsupported")):
                return Emulated(plans, None, None, main, ending.message)
            raise
        return Emulated(plans, lowered, outcomes, main)

    @contextmanager
    def _session(self, judgement: Judgement, report: Report) -> Iterator[Session | None]:
        """A process on a card of its own; None where there is no card."""
        if not self._cards:
            yield None
            return
        report(StageAt("replay", "waiting for a card"))
        with judgement.stage("card"):
            session = Session(self._cards, self._cancel)
        with session:
            judgement.jailed = session.jailed
            yield session

    def _replay_on_card(
        self,
        session: Session,
        compiled: toolchain.Compiled,
        plans: Sequence[LaunchPlan],
        reference: Reference,
        addresses: Mapping[str, int],
        report: Report,
    ) -> Outcomes:
        cubin = _cubin(compiled)
        return replay_draws(
            lambda replays, on_progress: session.replay(
                cubin, replays, seconds=REPLAY_SECONDS, on_progress=on_progress
            ),
            plans,
            reference.draws,
            self._task.spec.parameters,
            addresses,
            count=None,
            on_progress=lambda done, of: report(
                StageAt("replay", f"draws on {session.device.name}", done, of)
            ),
        )

    def _time(
        self,
        session: Session,
        compiled: toolchain.Compiled,
        plans: Sequence[LaunchPlan],
        reference: Reference,
        addresses: Mapping[str, int],
        emulated: Emulated,
        judgement: Judgement,
        report: Report,
    ) -> None:
        draws = [reference.draws[i] for i in reference.sets]
        try:
            if self._baselines is None:
                report(StageAt("time", "your own program"))
                self._baselines = self._task.baselines(draws, self._cancel)
            report(StageAt("time", session.device.name))
            judgement.timing = timed.take(
                session,
                _cubin(compiled),
                [plans[i] for i in reference.sets],
                draws,
                [reference.expected[i] for i in reference.sets],
                self._task.spec,
                addresses,
                target=self._target,
                counted=emulated.outcomes.counted if emulated.outcomes else None,
                baselines=self._baselines,
            )
        except Judged as ending:
            if ending.verdict != "unsupported":
                raise
            judgement.untimed = ending.message
        else:
            report(TimedCandidate(judgement.timing))

    def _measure(
        self,
        compiled: toolchain.Compiled,
        reference: Reference,
        addresses: Mapping[str, int],
        emulated: Emulated,
        judgement: Judgement,
        report: Report,
    ) -> None:
        report(StageAt("measure"))
        draw, judgement.unmeasured = reference.draws[reference.main], emulated.why
        if emulated.outcomes is None or emulated.lowered is None:
            return
        outputs, counted = emulated.outcomes.outputs[emulated.main][0], emulated.outcomes.counted
        assert counted is not None
        assert judgement.plan is not None
        if self._cards:
            # A kernel that does other work here than there must not be counted here.
            fault = verify.first_fault(self._task.spec, draw, reference.expected[reference.main], outputs)
            if fault:
                judgement.unmeasured = f"in the emulator its output is another than on the card: {fault}"
                return
        plan = emulated.plans[emulated.main]
        replay_again = self._again(
            emulated.lowered, buffers(self._task.spec.parameters, draw, addresses, POISONS[0])
        )
        judgement.metrics = measure(
            counted.launches,
            compiled.compilation.kernels,
            self._target,
            dict(draw.sizes),
            copies=judgement.plan.copies,
            task_bytes=compulsory_bytes(self._task.spec.parameters, draw.extents),
            idle=idle_kernels(plan, outputs, replay_again),
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
        self, compiled: toolchain.Compiled, draws: Sequence[Draw], addresses: Mapping[str, int], base: int
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
            base=base,
        )

    def _again(
        self, lowered: emulator.Lowered, arrays: Sequence[emulator.Buffer]
    ) -> Callable[[LaunchPlan], Mapping[str, bytes] | None]:
        """Replays another plan on the same buffers."""

        def again(plan: LaunchPlan) -> Mapping[str, bytes] | None:
            try:
                [(result, read_back)] = emulator.replay(
                    lowered,
                    [emulator.Replay(plan=plan, buffers=arrays, count=False)],
                    seconds=AGAIN_SECONDS,
                    threads=os.cpu_count() or 1,
                    multiprocessors=self._target.sm_count,
                    cancel=self._cancel,
                )
            except Judged:  # what happens without one of its kernels is not the candidate's fault
                return None
            return read_back if result.status == "ok" else None

        return again


def _layout(ptx: str) -> dict[str, list[tuple[int, int]]]:
    try:
        return parameter_layout(ptx)
    except PtxError as error:
        raise Judged("unsupported", "kernelwright", error.message) from error


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


def _cubin(compiled: toolchain.Compiled) -> bytes:
    assert compiled.cubin is not None, "only what compiled is replayed"
    return compiled.cubin.read_bytes()


def _require_same_work(emulated: LaunchPlan, real: LaunchPlan, base: int) -> None:
    if difference := first_difference(emulated, real, base):
        raise Judged(
            "rule_violation",
            "candidate",
            f"with its arrays elsewhere, launch asks for other work ({difference}); host code must not look "
            "at addresses",
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
    said = f"agrees with the reference on {judgement.verification.draws} secret draws"
    if judgement.timing is not None:
        time_taken = judgement.timing.candidate_us
        said += f"; {time_taken.median:.2f} us ({time_taken.low:.2f} to {time_taken.high:.2f})"
        for baseline in judgement.timing.baselines:
            said += f", {baseline.speedup:.2f} times as fast as {baseline.name}"
        if judgement.timing.implausible:
            said += f", which is not believed: {judgement.timing.implausible}"
    if judgement.untimed:
        said += f"; not timed: {judgement.untimed}"
    if judgement.metrics is None:
        return f"{said}; not measured: {judgement.unmeasured}"
    return f"{said}; structural score {judgement.metrics.structural_score:.1f}"
