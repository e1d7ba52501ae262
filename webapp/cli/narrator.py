"""Events as lines for a terminal, of a run here or on a server."""

from __future__ import annotations

from agent.events import (
    ActionTaken,
    Answered,
    Event,
    Log,
    Reflected,
    RunEnded,
    RunStarted,
    Stage,
    ToolUsed,
    TurnEnded,
    TurnStarted,
)
from agent.trajectory import Turn
from webapp.cli.output import say


def whence(turn: TurnStarted | Turn, started: RunStarted | None) -> str:
    """Where a turn stands: its branch in a search, and the turns it starts from."""
    parents = [str(number) for number in (turn.base_turn, turn.also_from) if number is not None]
    said = [f"from turn{'s' if len(parents) > 1 else ''} {' and '.join(parents)}"] if parents else []
    if started is not None and started.strategy != "single":
        said.insert(0, f"branch {turn.branch}" if turn.branch else "the given kernel")
    return f" ({', '.join(said)})" if said else ""


class Narrator:
    """Events as lines for a terminal. A stage that repeats, once for each draw, is said once."""

    def __init__(self) -> None:
        self._last = ""
        self._started: RunStarted | None = None

    def __call__(self, event: Event) -> None:
        line = self._line(event)
        if line and not (isinstance(event, Stage) and line == self._last):
            say(line)
            self._last = line

    def _line(self, event: Event) -> str:
        match event:
            case RunStarted():
                self._started = event
                return ""
            case TurnStarted():
                return f"turn {event.turn}{whence(event, self._started)}: {event.title}"
            case Stage():
                return f"  {event.stage.replace('_', ' ')} {event.detail}".rstrip()
            case Log():
                return "\n".join("  | " + line for line in event.text.splitlines())
            case Answered():
                tokens = (
                    f"{event.prompt_tokens:,} + {event.completion_tokens:,} tokens, {event.seconds:.1f} s"
                )
                return f"  {event.model}: {event.plan or event.finish_reason.replace('_', ' ')} ({tokens})"
            case ToolUsed():
                said = event.observation.split("\n")[0][:100]
                return f"  {event.tool}{'' if event.ok else ' refused'}: {said}"
            case Reflected():
                return "\n".join("  " + line for line in event.text.splitlines())
            case ActionTaken(action="keep"):
                return f"  KEEP: {event.reason}"
            case TurnEnded():
                same = f", the same as turn {event.same_as}: not judged again" if event.same_as else ""
                return f"  {event.seconds:.1f} s{same}"
            case RunEnded() if event.problem is None:
                return f"{event.reason.replace('_', ' ')}: {event.message} ({event.seconds:.1f} s)"
            case _:
                return ""  # a problem is said in full at the end
