"""What REST answers and accepts, as frozen data in the contract's names.

One definition serves the responses, the OpenAPI document and the generated TypeScript.
Times are ISO 8601 in UTC.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field

from agent.events import EndReason, Event
from sandbox.tasks.base import Inputs, Language, TaskSpec
from sandbox.types import Data, Evaluation, Problem, Verdict
from webapp.live.resources_reviews import CodeMoved

RunState = Literal["queued", "running", "cancelling", "finished", "cancelled", "failed", "interrupted"]
CardState = Literal["free", "busy", "quarantined", "away"]  # away: no worker serves it
GpuPlaceState = Literal["waiting", "working"]
BackendChoice = Literal["auto", "emulator", "gpu"]
ProtocolChoice = Literal["auto", "rewrite", "tools"]

#: States that a run never leaves.
ENDED_STATES: frozenset[RunState] = frozenset({"finished", "cancelled", "failed", "interrupted"})


class RunCreate(Data):
    """What `POST /api/v1/runs` takes."""

    source: str  # C or PyTorch, at most 1 MB of UTF-8 text
    language: Language | None = None  # only used to name the file when `filename` is absent
    filename: str | None = None  # its suffix says the language: ".c" or ".py"
    entry: str | None = None  # which function or class, where there are several
    inputs: Inputs | None = None
    policy: str = "builtin"  # "builtin" or "llm"
    model: str | None = None  # of policy llm: a name from `GET models`; absent: the server's default
    protocol: ProtocolChoice = "auto"  # of policy llm
    backend: BackendChoice = "auto"
    target: str | None = None  # an architecture, "sm_90"; absent: the server's own default
    turns: int | None = None  # absent: 8, with a language model 12
    # What else bounds a run of policy llm; absent: an hour, and no limit of tokens and money.
    seconds: float | None = None
    tokens: int | None = None  # prompts and answers together
    cost: float | None = None  # needs a model with a price
    profile: str | None = None  # of the workspace: "careful", "careful@3"; says all of the above by itself
    start_from: str | None = None  # the user's own CUDA, which becomes turn 1
    instruction: str | None = None  # of policy llm: what it is to do before anything else
    workspace: str | None = None  # where the run belongs; absent: the user's own workspace


class GpuPlace(Data):
    """Where a run's candidate is that is judged on another machine's card."""

    state: GpuPlaceState
    position: int | None  # in the queue for such a card, 1 is next; None while one works on it
    device: str  # "NVIDIA H200 on node7"; empty while it waits


class RunSummary(Data):
    """A run as a list shows it."""

    id: UUID
    title: str  # the task's name once known, else the file's
    filename: str
    language: Language
    policy: str
    model: str  # the language model's name; empty for the built-in policy
    protocol: str  # how it is driven, "rewrite" or "tools"; empty for the built-in policy
    backend: str  # as asked for, until the run has started; then the one used
    target: str
    turn_limit: int
    state: RunState
    reason: EndReason | None  # why it ended
    message: str  # one sentence on how it ended; empty before
    verdict: Verdict | None  # of the best turn, else of the last
    score: float | None  # structural score of the best turn, 0..100
    best_turn: int | None
    turn_count: int
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    seconds: float | None  # from start to end
    queue_position: int | None  # 1 is next; None when not queued
    gpu: GpuPlace | None  # None while none of its candidates waits for, or is on, another machine's card
    last_seq: int  # of the last stored event; 0 when there is none


class TurnSummary(Data):
    turn: int
    title: str
    base_turn: int | None
    verdict: Verdict | None  # None while it is being judged
    score: float | None
    seconds: float | None
    message: str  # the evaluation's sentence
    reflection: str


class ModelUsage(Data):
    """What a run took of its language model so far, failed attempts included."""

    requests: int
    prompt_tokens: int
    completion_tokens: int
    estimated: bool  # some of it, since the endpoint did not count
    cost: float | None  # None where no price is known
    first_token_seconds: float | None  # of the first answer


class RunDetail(RunSummary):
    """A run with what it was asked and what its turns came to."""

    source: str
    entry: str | None
    inputs: Inputs | None
    start_from: str | None
    instruction: str
    task: TaskSpec | None  # None until the judge has understood the task
    problem: Problem | None  # why it ended badly, with what to do
    turns: list[TurnSummary]
    rerun_of: UUID | None
    seconds_limit: float | None  # None: the policy's own
    token_limit: int | None
    cost_limit: float | None
    usage: ModelUsage | None  # None for the built-in policy
    profile: str | None  # the agent profile it was asked for with, and its version: "careful@3"
    resumes: UUID | None  # the run that this one goes on from
    turns_again: list[int]  # turns that were judged in that, and are told again
    resumable: bool  # it ended before its time and can go on: `POST runs/{id}/resume`


class RunPage(Data):
    """One page of runs, newest first."""

    results: list[RunSummary]
    next: str | None  # the address of the next page
    previous: str | None


class StoredEvent(Data):
    """One event with its number, which is unique in its run and has no gaps."""

    seq: int
    at: datetime
    event: Event = Field(discriminator="type")


class EventPage(Data):
    results: list[StoredEvent]
    last_seq: int  # of the run, whatever this page holds
    ended: bool  # no further events will come


class EvaluationItem(Data):
    """A candidate and the task it is for."""

    source: str  # the task: C or PyTorch, at most 1 MB of UTF-8 text
    candidate: str  # the CUDA source to judge, at most 1 MB of UTF-8 text
    language: Language | None = None  # only used to name the file when `filename` is absent
    filename: str | None = None  # of the task; its suffix says the language: ".c" or ".py"
    entry: str | None = None  # which function or class, where there are several
    inputs: Inputs | None = None
    backend: BackendChoice = "auto"
    target: str | None = None  # an architecture, "sm_90"; absent: the server's own default


class EvaluationCreate(EvaluationItem):
    """What `POST /api/v1/evaluations` takes."""

    workspace: str | None = None  # where it belongs; absent: the user's own workspace


class EvaluationBatchCreate(Data):
    """What `POST /api/v1/evaluations/batches` takes: all of it is accepted, or none."""

    items: list[EvaluationItem] = Field(min_length=1, max_length=100)
    workspace: str | None = None


class EvaluationSummary(Data):
    """An evaluation as a list shows it."""

    id: UUID
    workspace: str
    batch: UUID | None
    title: str  # the task's name once known, else its file's
    filename: str
    language: Language
    backend: str  # as asked for; the one used is in the evaluation
    target: str
    state: RunState  # "finished" says that there is a verdict, whatever it is
    stage: str  # what the judge is doing; empty when it is not
    verdict: Verdict | None
    score: float | None  # structural score of a passed candidate, 0..100
    message: str  # one sentence on how it ended; empty before
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    seconds: float | None  # from start to end
    queue_position: int | None  # among evaluations; 1 is next; None when not queued


class EvaluationDetail(EvaluationSummary):
    """An evaluation with what was asked and what the judge found out."""

    source: str
    candidate: str
    entry: str | None
    inputs: Inputs | None
    evaluation: Evaluation | None  # None until it has ended, and when it could not be judged
    problem: Problem | None  # why it could not be judged, with what to do


class EvaluationPage(Data):
    """One page of evaluations, newest first."""

    results: list[EvaluationSummary]
    next: str | None  # the address of the next page
    previous: str | None


class EvaluationBatch(Data):
    """A batch as it stands."""

    id: UUID
    workspace: str
    created_at: datetime
    ended: bool  # nothing of it is waited for
    states: dict[RunState, int]  # how many are in which
    verdicts: dict[Verdict, int]
    results: list[EvaluationSummary]  # in the order in which they were given


class ExampleItem(Data):
    """One item of the gallery. A recording has no source of its own: play it from `GET recordings/{id}`."""

    id: str
    kind: Literal["example", "recording"]
    title: str
    label: str  # a few words in front of the title: "C", "PyTorch", "Recorded on an H200"
    description: str
    language: Language | None
    filename: str
    source: str
    entry: str | None
    inputs: Inputs | None


class RecordedEvent(Data):
    seq: int
    at: float  # seconds after the run's start
    event: Event = Field(discriminator="type")


class Recording(Data):
    id: str
    title: str
    label: str
    events: list[RecordedEvent]


class UserInfo(Data):
    id: int
    username: str
    is_staff: bool


class PolicyOption(Data):
    name: str
    title: str
    available: bool
    reason: str  # why not, when it is not
    model: str = ""  # of policy llm: what a run is asked for with
    protocol: str = ""  # what "auto" means for this model
    priced: bool = False  # whether a limit of cost can be kept


class ModelInfo(Data):
    """A language model as every user sees it."""

    id: int
    name: str  # what runs are asked for with; also "name:served" for another name it serves
    title: str
    model: str  # what its endpoint calls it
    protocol: str  # what "auto" means for it
    served: list[str]  # names its endpoint listed when it was last asked, adapters among them
    context_tokens: int
    price_prompt: float | None  # of a million tokens
    price_completion: float | None
    enabled: bool
    is_default: bool
    available: bool
    reason: str  # why not, when it is not


class ModelSettings(ModelInfo):
    """The same with all that an administrator sets; the key is never told."""

    origin: Literal["admin", "environment", "vllm"]
    base_url: str
    has_key: bool
    protocol_setting: ProtocolChoice
    temperature: float | None
    top_p: float | None
    answer_tokens: int
    attempts: int
    backoff_seconds: float
    connect_seconds: float
    silence_seconds: float
    answer_seconds: float
    requests_per_minute: float | None
    requests_at_once: int | None
    allow_loopback: bool
    allow_private: bool
    calls_tools: bool | None  # found out by a try
    tried_at: datetime | None
    notice: str = ""  # what a change did beside what was asked: a key that was dropped


class ModelWrite(Data):
    """What `POST models` and `PATCH models/{id}` take; what is absent stays as it is."""

    name: str | None = None  # only of a new one
    model: str | None = None
    base_url: str | None = None
    key: str | None = None  # write-only; "" removes it; bound to the address it is given with
    protocol: ProtocolChoice | None = None
    temperature: float | None = None
    top_p: float | None = None
    context_tokens: int | None = None
    answer_tokens: int | None = None
    price_prompt: float | None = None
    price_completion: float | None = None
    attempts: int | None = None
    backoff_seconds: float | None = None
    connect_seconds: float | None = None
    silence_seconds: float | None = None
    answer_seconds: float | None = None
    requests_per_minute: float | None = None
    requests_at_once: int | None = None
    allow_loopback: bool | None = None
    allow_private: bool | None = None
    enabled: bool | None = None
    is_default: bool | None = None


class ModelTried(Data):
    """What came of asking a language model for one word."""

    ok: bool
    detail: str  # one sentence: how fast it was, or why it could not be asked
    first_token_seconds: float | None = None
    seconds: float | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls_tools: bool | None = None
    served: list[str] = Field(default_factory=list)


class Options(Data):
    """What a new run can be asked for, and the limits it is held to."""

    policies: list[PolicyOption]
    targets: list[str]
    default_target: str
    backends: list[str]
    turns_default: int
    turns_default_llm: int  # with a language model
    turns_max: int
    turns_max_llm: int
    source_bytes_max: int


class Session(Data):
    """Who is signed in and what they can ask for; also the page's bootstrap block."""

    user: UserInfo
    options: Options
    csrf_token: str  # send it as X-CSRFToken with every POST and DELETE
    version: str


class DeviceInfo(Data):
    """A card that a GPU worker serves, or served."""

    uuid: str
    name: str  # "NVIDIA H200"
    arch: str
    host: str
    index: int  # on its host
    memory_mib: int
    driver: str
    state: CardState
    targets: list[str]  # architectures whose code it runs
    waiting: int  # candidates that such a card could take now
    heartbeat_at: datetime | None
    quarantine: str  # why it is out of service; empty when it is not


class DeviceList(Data):
    results: list[DeviceInfo]


class Finding(Data):
    """One thing that this server needs or could use, found out by trying."""

    name: str  # stable slug, "nvcc", "jail", "database"
    ok: bool
    detail: str  # one line: what was found, or what is wrong
    how: str  # what to do; empty when there is nothing to do
    needed: bool  # False: Kernelwright works without it


class FieldProblem(Data):
    """One field of a request that is not as it should be."""

    field: str  # dotted path, "inputs.sizes.n"
    message: str


class ProblemDocument(Data):
    """RFC 9457 problem+json, the body of every error of the API."""

    type: str  # stable slug as a relative address, "/problems/too-large"
    title: str
    status: int
    detail: str  # what happened and what to do
    instance: str  # the request's path
    request_id: str  # also in the X-Request-ID header and in the server's log
    errors: list[FieldProblem] = Field(default_factory=list)
    code_moved: CodeMoved | None = None  # of a review: where the code is now
