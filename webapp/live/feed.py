"""Takes events from a blocking iterator at the pace they come, with something to do in between.

The iterator runs in a thread of its own, so that the taker can look at clocks and flags while nothing
happens; chunks of a log, or of what a model writes, that come close together become one event.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator
from typing import Any, Generic, TypeVar, cast

from agent.events import Log, TextDelta

Item = TypeVar("Item")

COALESCE_SECONDS = 0.08
#: Two frames of a screen: a model's text must not seem to come in jerks.
COALESCE_DELTA_SECONDS = 0.03
LOG_CHUNK_CHARACTERS = 16_000
BATCH = 100
CLOSE_SECONDS = 1.0
_BACKLOG = 1000  # events a slow database may lag behind before the iterator has to wait


class _End:
    def __init__(self, error: BaseException | None) -> None:
        self.error = error


def feed(source: Callable[[], Iterator[Item]], *, tick: float) -> Generator[list[Item], None, None]:
    """The events of `source()`, in order, as many at once as came; none whenever `tick` seconds bring none.

    Raises what the iterator raises. Closing this before the end leaves the iterator's thread behind: cancel
    what it does first.
    """
    arrived: queue.Queue[Any] = queue.Queue(_BACKLOG)
    stopped = threading.Event()
    pump = threading.Thread(target=_pump, args=(source, arrived, stopped), name="run", daemon=True)
    pump.start()
    joiner = _Joiner[Item]()
    try:
        while True:
            batch: list[Item] = []
            end: _End | None = None
            for item in _taken(arrived, joiner.patience(tick)):
                if isinstance(item, _End):
                    end = item
                else:
                    batch += joiner.add(item)
            if end is not None or not batch:
                batch += joiner.flush(everything=end is not None)
            yield batch
            if end is not None:
                if end.error is not None:
                    raise end.error
                return
    finally:
        stopped.set()
        # The iterator cleans up after itself (processes, folders); that is part of its end.
        pump.join(CLOSE_SECONDS)


def _taken(arrived: queue.Queue[Any], patience: float) -> Iterator[Any]:
    """Waits for the first, then takes what is there."""
    try:
        yield arrived.get(timeout=patience)
        for _ in range(BATCH - 1):
            yield arrived.get_nowait()
    except queue.Empty:
        return


class _Joiner(Generic[Item]):
    """Holds back a chunk of text for a moment, in case more of the same follows."""

    def __init__(self) -> None:
        self._held: Log | TextDelta | None = None
        self._until = 0.0

    def patience(self, tick: float) -> float:
        """Seconds to wait for the next event."""
        return tick if self._held is None else max(0.001, min(tick, self._until - time.monotonic()))

    def add(self, event: Item) -> list[Item]:
        """What is to be passed on, now that `event` has come."""
        if not isinstance(event, Log | TextDelta):
            return [*self.flush(), event]
        if self._held is not None and _joins(self._held, event):
            self._held = self._held.model_copy(update={"text": self._held.text + event.text})
            return self.flush(everything=False)
        before = self.flush()
        seconds = COALESCE_SECONDS if isinstance(event, Log) else COALESCE_DELTA_SECONDS
        self._held, self._until = event, time.monotonic() + seconds
        return before

    def flush(self, *, everything: bool = True) -> list[Item]:
        """The chunk held back, if there is one and (unless everything is wanted) its moment is over."""
        if self._held is None or not (everything or time.monotonic() >= self._until):
            return []
        held, self._held = self._held, None
        return [cast(Item, held)]


def _joins(held: Log | TextDelta, chunk: Log | TextDelta) -> bool:
    if len(held.text) + len(chunk.text) > LOG_CHUNK_CHARACTERS:
        return False
    if isinstance(held, Log) and isinstance(chunk, Log):
        return (held.turn, held.stream) == (chunk.turn, chunk.stream)
    if isinstance(held, TextDelta) and isinstance(chunk, TextDelta):
        same = (held.turn, held.request, held.thought) == (chunk.turn, chunk.request, chunk.thought)
        return same and chunk.start == held.start + len(held.text)
    return False


def _pump(source: Callable[[], Iterator[Any]], arrived: queue.Queue[Any], stopped: threading.Event) -> None:
    error: BaseException | None = None
    try:
        for event in source():
            _put(arrived, event, stopped)
            if stopped.is_set():
                return
    except BaseException as raised:  # handed over to the taker
        error = raised
    _put(arrived, _End(error), stopped)


def _put(arrived: queue.Queue[Any], item: Any, stopped: threading.Event) -> None:
    while not stopped.is_set():
        try:
            arrived.put(item, timeout=0.2)
            return
        except queue.Full:
            continue
