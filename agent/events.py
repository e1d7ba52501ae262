"""The one typed event stream, from the loop to the browser.

Events say what happened; none is ever changed. A service numbers and stores them (`text_delta` alone is
only sent). TypeScript types are generated from this module (`python -m webapp.live.schema`).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from sandbox.tasks.base import TaskSpec
from sandbox.types import Compilation, Data, Evaluation, Metrics, PlanSummary, Problem, Timing, Verification

EndReason = Literal[
    "finished",  # the policy had nothing left to try, or said so
    "kept",  # the policy would leave the program sequential; the message says why
    "turn_limit",
    "time_limit",
    "token_limit",
    "cost_limit",
    "model_unavailable",  # the language model could not be asked, after every attempt
    "cancelled",
    "bad_input",  # the task cannot be judged as given; `problem` says why
    "unsupported",  # the policy cannot translate this; `problem` names construct, line and why
    "interrupted",  # the server went away in mid-run
    "internal_error",
]


class RunStarted(Data):
    type: Literal["run_started"] = "run_started"
    task: TaskSpec
    policy: str
    backend: str
    target: str
    turn_limit: int
    strategy: str = "single"  # how turns are chosen: one after the other, or a search over branches


class TurnStarted(Data):
    type: Literal["turn_started"] = "turn_started"
    turn: int  # from 1
    title: str  # what this turn tries, in a few words: "Direct version", "Tile through shared memory"
    base_turn: int | None  # the turn whose source this one starts from
    branch: int = 1  # of a search; 0 is a given kernel
    also_from: int | None = None  # a second parent, whose source was shown too


class TextDelta(Data):
    """A piece of what the policy writes, as it comes. Sent, never stored; `answered` carries the whole.

    What came of an earlier `request` of the turn is void; a `start` beyond what is there says that pieces
    were missed.
    """

    type: Literal["text_delta"] = "text_delta"
    turn: int
    text: str
    thought: bool = False  # thinking aloud, where the model tells it apart
    request: int = 1  # within the turn; each attempt counts
    start: int = 0  # characters of this request before this piece


class Spent(Data):
    """What one request to a language model took, with all its attempts, failed ones too."""

    type: Literal["spent"] = "spent"
    turn: int
    prompt_tokens: int
    completion_tokens: int
    estimated: bool = False  # the server did not count
    cost: float | None = None  # None where no price is known


class Answered(Data):
    """One whole answer of a language model, and what it took."""

    type: Literal["answered"] = "answered"
    turn: int
    request: int = 1  # within the turn: the one whose pieces this answer is made of
    model: str
    text: str
    plan: str = ""  # what it says it tries, one sentence
    lesson: str = ""  # what it says it learned from the turn before, one sentence
    repairs: list[str] = Field(default_factory=list)  # what was put right in its source without asking
    skills: list[str] = Field(default_factory=list)  # skills that were in its prompt
    finish_reason: str  # "stop", "length", "tool_calls", "content_filter", "cut"
    prompt_tokens: int
    completion_tokens: int
    estimated: bool = False  # the server did not count
    cost: float | None = None  # of all attempts; None where no price is known
    seconds: float
    first_token_seconds: float | None = None
    attempts: int = 1


class ToolUsed(Data):
    """The policy used one of its tools, and what it was told."""

    type: Literal["tool"] = "tool"
    turn: int
    tool: str
    arguments: str  # as the model wrote them: JSON, or what it took for that
    observation: str
    ok: bool  # False: no such tool, arguments that do not fit, an edit that does not apply
    seconds: float


class RangeEdit(Data):
    """Replace lines [start_line, end_line) of the base version, 1-based, by `text` (whole lines)."""

    start_line: int
    end_line: int
    text: str


class Edited(Data):
    """The candidate was edited. Applying `edits` to version `base_version` of `file` gives `version`."""

    type: Literal["edited"] = "edited"
    turn: int
    file: str
    base_version: int  # 0 is the empty file
    version: int
    edits: list[RangeEdit]  # in descending order of line, so that they apply one after the other


class ActionTaken(Data):
    """What the policy chose to do. `submit` hands the candidate to the judge; `source` is the whole of it.
    `none`: it wrote nothing that could be judged; `finish`: nothing is left to try; `keep`: the program is
    better left sequential. `reason` says why."""

    type: Literal["action"] = "action"
    turn: int
    action: Literal["submit", "finish", "keep", "none"]
    source: str = ""
    reason: str = ""


class Log(Data):
    """A chunk of compiler or program output, as it came."""

    type: Literal["log"] = "log"
    turn: int
    stream: Literal["nvcc", "gcc", "judge", "program"]
    text: str


class Stage(Data):
    """Where the judge is now, for anything that may take over 200 ms."""

    type: Literal["stage"] = "stage"
    turn: int
    stage: str  # "gpu" (waiting for one), "reference", "compile", "record", "replay", "verify", "measure"
    detail: str = ""
    done: int | None = None
    of: int | None = None
    device: str = ""  # the card at work, where it is another machine's: "NVIDIA H200 on node7"
    queue_position: int | None = None  # while it waits for a card; 1 is next


class Compiled(Data):
    type: Literal["compiled"] = "compiled"
    turn: int
    compile: Compilation
    plan: PlanSummary | None = None


class Verified(Data):
    type: Literal["verified"] = "verified"
    turn: int
    verification: Verification


class Measured(Data):
    type: Literal["measured"] = "measured"
    turn: int
    metrics: Metrics


class Timed(Data):
    type: Literal["timed"] = "timed"
    turn: int
    timing: Timing


class Reflected(Data):
    """What was measured in this turn, and why the next step is what it is."""

    type: Literal["reflected"] = "reflected"
    turn: int
    text: str


class TurnEnded(Data):
    type: Literal["turn_ended"] = "turn_ended"
    turn: int
    evaluation: Evaluation
    best_turn: int | None  # best so far, None while nothing passed
    seconds: float
    same_as: int | None = None  # an earlier turn with the same candidate: this one was not judged again


class RunEnded(Data):
    """Exactly one, the last."""

    type: Literal["run_ended"] = "run_ended"
    reason: EndReason
    message: str  # one sentence
    best_turn: int | None = None
    verdict: str | None = None  # of the best turn, else of the last
    problem: Problem | None = None
    seconds: float = 0.0


Event = (
    RunStarted
    | TurnStarted
    | TextDelta
    | Spent
    | Answered
    | ToolUsed
    | Edited
    | ActionTaken
    | Log
    | Stage
    | Compiled
    | Verified
    | Measured
    | Timed
    | Reflected
    | TurnEnded
    | RunEnded
)
AnyEvent = Annotated[Event, Field(discriminator="type")]
event_adapter: TypeAdapter[Event] = TypeAdapter(AnyEvent)

#: Never stored and never numbered.
TRANSIENT = ("text_delta",)
