"""Makes the turns a strategy asks for: independent ones side by side, told one after the other.

Events come in the order of the turns' numbers, whoever is ready first: while the first of a batch is made,
the others' events wait. So a recorded search reads like any other run, and is the same for any number of
threads.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from agent.endings import RunEnds
from agent.events import EndReason, Event, TextDelta, TurnEnded, TurnStarted
from agent.limits import Limits
from agent.llm.record import Exchange
from agent.loop import Clock, Editor, closed, ending_action, judged_turns, one_turn, started, turns_used
from agent.protocols import Environment, Policy
from agent.search.duplicates import normalised
from agent.search.lanes import POLL_SECONDS, Lanes
from agent.search.strategies import GIVEN, Step, Strategy, Variation
from agent.trajectory import Trajectory
from sandbox.cancellation import Cancellation
from sandbox.tasks.base import TaskSpec
from sandbox.types import Compilation, Evaluation

Record = Callable[[Exchange], None]
#: A policy for one turn, closed after it.
OpenPolicy = Callable[[Variation, Environment, Record], AbstractContextManager[Policy]]


@dataclass
class Search:
    strategy: Strategy
    name: str
    open_policy: OpenPolicy
    lanes: Lanes
    limits: Limits
    cancel: Cancellation
    parallel: int
    record: Record

    def run(self, earlier: Iterable[Event] = ()) -> Iterator[Event]:
        """One run; as `agent.loop.run`."""
        trajectory, clock = Trajectory(), Clock(self.limits.seconds)
        yield from closed(trajectory, clock, self._batches(trajectory, clock, earlier))

    def _batches(
        self, trajectory: Trajectory, clock: Clock, earlier: Iterable[Event]
    ) -> Generator[Event, None, tuple[EndReason, str]]:
        yield started("llm", self.lanes, self.limits, self.name)
        editor = Editor()
        for event in judged_turns(earlier):
            yield from editor.told(event)
        while (left := self.limits.turns - len(trajectory.turns)) > 0:
            self.cancel.check()
            clock.check()
            steps = self.strategy.next(trajectory)
            if isinstance(steps, str):
                return _over(trajectory, steps)
            yield from Batch(self, trajectory, editor, steps[:left]).events()
        return turns_used(self.limits)


def _over(trajectory: Trajectory, why: str) -> tuple[EndReason, str]:
    """A search that found nothing, where a branch would leave the program sequential, ends as that."""
    kept = next((turn for turn in trajectory.turns if turn.ending == "keep"), None)
    return ("kept", kept.reason) if kept is not None and trajectory.best is None else ("finished", why)


@dataclass
class Place:
    """One turn of a batch, in the making."""

    turn: int
    step: Step
    view: Trajectory
    shown: str  # what an editor shows of the branch before it
    said: queue.SimpleQueue[Event | Exchange | BaseException | None] = field(
        default_factory=queue.SimpleQueue
    )
    over: threading.Event = field(default_factory=threading.Event)
    known: threading.Event = field(default_factory=threading.Event)  # its candidate is, or will never be
    source: str = ""
    evaluation: Evaluation | None = None


@dataclass
class Batch:
    search: Search
    trajectory: Trajectory
    editor: Editor
    steps: Sequence[Step]
    places: list[Place] = field(init=False)

    def __post_init__(self) -> None:
        first = self.trajectory.next_turn
        self.places = [self._place(first + offset, step) for offset, step in enumerate(self.steps)]

    def _place(self, turn: int, step: Step) -> Place:
        view = self.trajectory.view(step.shown, turn, base=step.base, mate=step.mate)
        written = next((t.source for t in reversed(view.turns) if t.source), "")
        return Place(turn, step, view, written)

    def events(self) -> Iterator[Event]:
        """All turns of the batch, then the first that ended the run, if one did."""
        ending: BaseException | None = None
        pool = ThreadPoolExecutor(self.search.parallel, thread_name_prefix="search")
        try:
            for place in self.places:
                pool.submit(self._make, place)
            for place in self.places:
                failed = yield from self._told(place)
                # A limit is one turn's; the others, begun before it was reached, are told to their ends.
                if failed is not None and not isinstance(failed, RunEnds):
                    raise failed
                ending = ending or failed
        except BaseException:  # cancelled, a failure, or nobody wants the rest
            self.search.cancel.set()
            raise
        finally:
            pool.shutdown(cancel_futures=True)
        if ending is not None:
            raise ending

    def _told(self, place: Place) -> Generator[Event, None, BaseException | None]:
        """One turn's events, in this thread, as they come or came. Returns what ended it early."""
        late = place.over.is_set()
        while True:
            try:
                said = place.said.get(timeout=POLL_SECONDS)
            except queue.Empty:
                self.search.cancel.is_set  # noqa: B018  asks the outside flag, so that the threads see it too
                continue
            match said:
                case None:
                    return None
                case BaseException():
                    return said
                case Exchange():
                    self.search.record(said)
                case TextDelta() if late:
                    pass  # the answer carries the whole
                case TurnEnded():
                    self.trajectory.turn(place.turn).evaluation = said.evaluation
                    best = self.trajectory.best
                    yield said.model_copy(update={"best_turn": best.number if best else None})
                case TurnStarted():
                    yield from self.editor.told(said)
                    yield from self.editor.show(place.turn, place.shown)
                case _:
                    yield from self.editor.told(said)

    # ---- in a thread of its own

    def _make(self, place: Place) -> None:
        judge = Judging(self, place)
        try:
            with self.search.open_policy(place.step.variation, judge, place.said.put) as policy:
                making = one_turn(policy, judge, place.view)
                try:
                    while True:
                        self._say(place, next(making), judge)
                except StopIteration as stop:
                    last = place.view.last
                    if stop.value is not None and (last is None or last.number != place.turn):
                        nothing = TurnStarted(
                            turn=place.turn, title="Nothing more", base_turn=place.step.base
                        )
                        self._say(place, nothing, judge)
                        self._say(place, ending_action(place.turn, stop.value), judge)
                finally:
                    making.close()
        except BaseException as error:  # raised again in the run's own thread
            end: BaseException | None = error
        else:
            end = None
        place.known.set()
        place.over.set()
        place.said.put(end)

    def _say(self, place: Place, event: Event, judge: Judging) -> None:
        match event:
            case TurnStarted():
                event = event.model_copy(update={"branch": place.step.branch, "also_from": place.step.mate})
            case TurnEnded():
                event = event.model_copy(update={"same_as": judge.same_as})
            case _:
                pass
        place.view.apply(event)
        place.said.put(event)


@dataclass
class Judging:
    """The environment of one turn: judges its candidate, unless an earlier turn has the same one."""

    batch: Batch
    place: Place
    same_as: int | None = None

    def __post_init__(self) -> None:
        self._lanes = self.batch.search.lanes
        self.backend, self.target = self._lanes.backend, self._lanes.target

    @property
    def spec(self) -> TaskSpec:
        return self._lanes.spec

    def step(self, turn: int, source: str) -> Generator[Event, None, Evaluation]:
        self.place.source = source
        self.place.known.set()
        known = None if self.place.step.branch == GIVEN else self._judged(normalised(source))
        if known is None:
            self.place.evaluation = yield from self._lanes.step(turn, source)
            return self.place.evaluation
        self.same_as, evaluation, same = known
        return evaluation if same == source else _without_lines(evaluation, self.same_as)

    def compile(self, turn: int, source: str) -> Generator[Event, None, tuple[bool, Compilation]]:
        return (yield from self._lanes.compile(turn, source))

    def reference_times(self, turn: int) -> Generator[Event, None, dict[str, float]]:
        return (yield from self._lanes.reference_times(turn))

    def _judged(self, wanted: str) -> tuple[int, Evaluation, str] | None:
        """The earliest turn with this candidate, its evaluation and source. Waits for turns of this batch
        that come before; the order of turns decides, not who was quicker."""
        for turn in self.batch.trajectory.before(self.batch.places[0].turn):
            if turn.source and turn.evaluation is not None and normalised(turn.source) == wanted:
                return turn.number, turn.evaluation, turn.source
        for place in self.batch.places:
            if place.turn >= self.place.turn:
                return None
            self._wait(place.known)
            if place.source and normalised(place.source) == wanted:
                self._wait(place.over)
                if place.evaluation is not None:
                    return place.turn, place.evaluation, place.source
        return None

    def _wait(self, event: threading.Event) -> None:
        """Raises Cancelled."""
        while not event.wait(POLL_SECONDS):
            self.batch.search.cancel.check()


def _without_lines(evaluation: Evaluation, turn: int) -> Evaluation:
    """What holds for the same candidate with other names and layout: not what names lines."""
    metrics = evaluation.metrics
    if metrics is not None:
        kernels = [kernel.model_copy(update={"lines": []}) for kernel in metrics.kernels]
        metrics = metrics.model_copy(update={"kernels": kernels, "notes": []})
    return evaluation.model_copy(
        update={
            "message": f"the same as turn {turn} but for names and layout: {evaluation.message}",
            "compile": None,
            "metrics": metrics,
        }
    )
