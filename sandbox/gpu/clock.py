"""Taking the time of launch plans, side by side. Worker only.

One trial: a fresh module, memory as new, one run on other inputs to get clocks and instruction caches going,
memory as new again, the L2 cache flushed with twice its size, and then the plan between two events on the
stream that everything runs on. No other stream has work, so the second event is the end of all of it. What
the plan wrote is read back and told apart by its bytes: every timed output is compared, elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cuda.bindings import driver as cuda

from sandbox.gpu.driver import Context, CudaError, Late, Module, call
from sandbox.gpu.memory import NoRoom, Range, fill, read, write
from sandbox.gpu.plans import Plan, Stopped, stopped_by

_SETTLE = 3  # trials of each side that are thrown away


@dataclass(frozen=True)
class Sides:
    """What is compared: for each, a cubin and plans on several sets of inputs of the same sizes."""

    sides: Sequence[tuple[bytes, Sequence[Plan]]]


@dataclass
class Taken:
    """Microseconds by side, in the order of the schedule; and every different output that was seen."""

    microseconds: list[list[float]]
    launches: str  # "graph" or "stream"
    empty_us: float  # the same measurement around nothing
    outputs: list[dict[str, Any]] = field(default_factory=list)  # side, set, count; bytes in `pieces`
    pieces: list[bytes] = field(default_factory=list)

    @property
    def document(self) -> dict[str, Any]:
        return {
            "microseconds": self.microseconds,
            "launches": self.launches,
            "empty_us": self.empty_us,
            "outputs": self.outputs,
        }


class _Timer:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._start, self._end = call("cuEventCreate", 0), call("cuEventCreate", 0)
        self._flush_bytes = 2 * context.attribute("L2_CACHE_SIZE")
        self._flush = call("cuMemAlloc", self._flush_bytes)
        self._pattern = 0

    def free(self) -> None:
        call("cuMemFree", self._flush)
        call("cuEventDestroy", self._start)
        call("cuEventDestroy", self._end)

    def flush(self) -> None:
        self._context.reset_persisting()
        self._pattern ^= 0xFF
        fill(self._context, int(self._flush), self._pattern, self._flush_bytes)

    def around(self, work: Callable[[], None], deadline: float) -> float:
        """Microseconds. The flush still runs while `work` is enqueued, so the device never waits for us."""
        self.flush()
        call("cuEventRecord", self._start, self._context.stream)
        work()
        call("cuEventRecord", self._end, self._context.stream)
        self._context.wait(deadline)
        return 1000.0 * float(call("cuEventElapsedTime", self._start, self._end))


class _Graph:
    """A plan as one launch, so that the gaps between its kernels are the device's own."""

    def __init__(self, context: Context, enqueue: Callable[[], None]) -> None:
        mode = cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        call("cuStreamBeginCapture", context.stream, mode)
        try:
            enqueue()
        finally:
            self._graph = call("cuStreamEndCapture", context.stream)
        self._ready = call("cuGraphInstantiate", self._graph, 0)
        call("cuGraphUpload", self._ready, context.stream)
        self._context = context

    def launch(self) -> None:
        call("cuGraphLaunch", self._ready, self._context.stream)

    def destroy(self) -> None:
        call("cuGraphExecDestroy", self._ready)
        call("cuGraphDestroy", self._graph)


class _Inputs:
    """Copies of all inputs on the device, so that a trial starts without a transfer over the bus."""

    def __init__(self, context: Context, plans: Sequence[Plan]) -> None:
        self._kept: list[dict[str, int]] = []
        self._places: list[int] = []
        for plan in plans:
            places: dict[str, int] = {}
            for buffer in plan.buffers:
                if buffer.data is not None:
                    place = int(call("cuMemAlloc", max(buffer.data.size, 1)))
                    places[buffer.allocation.name] = place
                    self._places.append(place)
                    # On our stream: a copy from ordinary memory may return before it has arrived.
                    write(context, place, buffer.data)
            self._kept.append(places)

    def __getitem__(self, index: int) -> dict[str, int]:
        return self._kept[index]

    def free(self) -> None:
        for place in self._places:
            call("cuMemFree", place)


def take(
    context: Context,
    memory: Range,
    sides: Sides,
    *,
    schedule: Sequence[int],
    most_bytes: int,
    deadline: float,
    progress: Callable[[int, int], None],
) -> Taken:
    """`schedule`: the side of each trial, in order. Raises Stopped."""
    try:
        return _Session(context, memory, sides, most_bytes, deadline).take(schedule, progress)
    except Late:
        raise Stopped("timeout", message="timing did not end in time") from None
    except NoRoom as problem:
        raise Stopped("unsupported", message=str(problem)) from problem
    except CudaError as error:
        raise stopped_by(error, "") from error


class _Session:
    def __init__(
        self, context: Context, memory: Range, sides: Sides, most_bytes: int, deadline: float
    ) -> None:
        self._context, self._memory, self._deadline = context, memory, deadline
        self._sides = sides.sides
        self._inputs = [_Inputs(context, plans) for _, plans in self._sides]
        self._timer = _Timer(context)
        self._room = most_bytes
        # By side and set: the different outputs, each with its place in the answer.
        self._seen: dict[tuple[int, int], list[tuple[int, list[bytes]]]] = {}

    def take(self, schedule: Sequence[int], progress: Callable[[int, int], None]) -> Taken:
        graphs = all(self._captures(side) for side in range(len(self._sides)))
        taken = Taken(
            microseconds=[[] for _ in self._sides],
            launches="graph" if graphs else "stream",
            empty_us=self._timer.around(lambda: None, self._deadline),
        )
        for side in range(len(self._sides)):
            for trial in range(_SETTLE):
                self._trial(side, trial, graphs, taken)
        turns = [0] * len(self._sides)
        for done, side in enumerate(schedule):
            taken.microseconds[side].append(self._trial(side, turns[side], graphs, taken))
            turns[side] += 1
            if done % 20 == 19:
                progress(done + 1, len(schedule))
        self._timer.free()
        for inputs, (_, plans) in zip(self._inputs, self._sides, strict=True):
            inputs.free()
            for plan in plans:
                plan.free()
        return taken

    def _captures(self, side: int) -> bool:
        """Whether this side's plans can become graphs: both sides are launched in the same way."""
        cubin, plans = self._sides[side]
        module = Module(cubin)
        self._run_once(side, 0, module)
        try:
            graph = _Graph(self._context, lambda: plans[0].enqueue(self._context, module, _nothing))
        except CudaError:
            return False
        self._context.wait(self._deadline)
        graph.destroy()
        module.unload()
        return True

    def _trial(self, side: int, number: int, graphs: bool, taken: Taken) -> float:
        cubin, plans = self._sides[side]
        index = number % len(plans)
        module = Module(cubin)
        warm = (index + 1) % len(plans)
        self._run_once(side, warm, module)
        plan = plans[index]
        plan.prepare(self._context, self._memory, self._inputs[side][index])
        self._context.wait(self._deadline)
        if graphs:
            graph = _Graph(self._context, lambda: plan.enqueue(self._context, module, _nothing))
            elapsed = self._timer.around(graph.launch, self._deadline)
            graph.destroy()
        else:
            elapsed = self._timer.around(
                lambda: plan.enqueue(self._context, module, _nothing), self._deadline
            )
        plan.check_guards(self._memory)
        self._keep(side, index, plan, taken)
        module.unload()
        return elapsed

    def _run_once(self, side: int, index: int, module: Module) -> None:
        plan = self._sides[side][1][index]
        plan.prepare(self._context, self._memory, self._inputs[side][index])
        plan.enqueue(self._context, module, _nothing)
        self._context.wait(self._deadline)

    def _keep(self, side: int, index: int, plan: Plan, taken: Taken) -> None:
        """Different bytes once, with how often they came."""
        read_back = [b.allocation for b in plan.buffers if b.read_back]
        pieces = [read(place.address, place.bytes).tobytes() for place in read_back]
        known = self._seen.setdefault((side, index), [])
        for place, seen in known:
            if seen == pieces:
                taken.outputs[place]["count"] += 1
                return
        self._room -= sum(map(len, pieces))
        if self._room < 0:
            raise Stopped("unsupported", message="the timed outputs differ too often to be compared")
        known.append((len(taken.outputs), pieces))
        taken.outputs.append({"side": side, "set": index, "count": 1})
        taken.pieces += pieces


def _nothing(kernel: str) -> None:
    pass
