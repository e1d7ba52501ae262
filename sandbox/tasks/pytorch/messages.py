"""What the judge and the jailed worker say to each other: JSON files in one scratch folder, arrays as
raw bytes.

`request.json` and `task.py` (and `draws.bin`) go in; `reply.json` (and `arrays.bin`) come out. The reply is
written by a process that ran the user's code, so it is validated like any other input.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sandbox.tasks.pytorch.graph import Graph, TensorType
from sandbox.types import Data, Problem

FILE = "task.py"  # what the user's file is called in tracebacks and problems
REQUEST, REPLY, DRAWS, ARRAYS = "request.json", "reply.json", "draws.bin", "arrays.bin"


class LoadRequest(Data):
    action: Literal["load"] = "load"
    sizes: dict[str, int]  # what the user asked for
    max_elements: int | None  # lower module-level integers until the work fits; None: take the file as it is
    max_flop: int | None


class Values(Data):
    """How to draw one tensor of `launch`."""

    name: str
    type: TensorType
    domain: Literal["real", "nonnegative", "observed", "integer", "fixed"]
    low: float  # as get_inputs or the initialisation had it
    high: float
    mean: float
    deviation: float
    offset: int | None = None  # of its bytes in arrays.bin, when fixed


class Scalar(Data):
    name: str
    c_type: Literal["int", "float", "bool"]
    value: int | float


class Loaded(Data):
    """A module that runs, traced."""

    module: str
    graph: Graph
    order: list[str]  # launch's parameters before the outputs: scalars and tensors
    values: list[Values]
    scalars: list[Scalar]
    sizes: dict[str, int]
    notes: list[str]
    offset: float  # how far "large_offset" may move the inputs before float32 itself falls apart


class DrawLayout(Data):
    """Where the tensors of one draw lie in draws.bin, in the order of `ExpectedRequest.targets`."""

    offsets: list[int]


class Target(Data):
    name: str
    kind: Literal["input", "parameter", "buffer", "constant"]
    target: str
    type: TensorType


class ExpectedRequest(Data):
    action: Literal["expected"] = "expected"
    sizes: dict[str, int]
    targets: list[Target]
    draws: list[DrawLayout]
    outputs: list[TensorType]


class Computed(Data):
    """Where the outputs of every draw lie in arrays.bin: native bytes and float64 truth, per output."""

    native: list[list[int]]
    truth: list[list[int]]  # float64 for floats, the output's own dtype else


class Reply(Data):
    problem: Problem | None = None
    loaded: Loaded | None = None
    computed: Computed | None = None


Request = Annotated[LoadRequest | ExpectedRequest, Field(discriminator="action")]
