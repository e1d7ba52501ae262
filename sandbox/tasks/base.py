"""The interface every kind of task has, and the data that describes one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sandbox.cancellation import Cancellation
from sandbox.types import Data

Array = npt.NDArray[Any]
Language = Literal["c", "pytorch"]
Distribution = Literal["normal", "uniform", "heavy_tail", "large_offset", "cancellation", "special", "given"]


class ArrayInput(Data):
    """One array of the `inputs` block, every field optional: what is not said is inferred."""

    extent: str | None = None  # elements, an expression over integer parameters: "n * m"
    access: Literal["read", "write", "read_write"] | None = None
    low: float | None = None  # value range
    high: float | None = None
    distribution: Distribution | None = None


class Inputs(Data):
    """The `inputs` block: TOML in files, JSON in the API. Corrects what was inferred.

    TOML: `[sizes]` n = 1000; `[scalars]` a = 2.0; `[arrays.x]` extent = "n"; `tolerance = 1e-5`.
    """

    sizes: dict[str, int] = Field(default_factory=dict)  # the representative size
    scalars: dict[str, float | int] = Field(default_factory=dict)
    arrays: dict[str, ArrayInput] = Field(default_factory=dict)
    tolerance: float | None = None  # normalised error allowed, instead of the rule's
    reproducible: bool = False  # two replays must agree bit for bit


class Parameter(Data):
    """One parameter of `launch`, in order."""

    name: str
    kind: Literal["scalar", "array"]
    dtype: str  # numpy's name of the element: "float32", "float64", "int32", "int64", "uint8", ...
    c_type: str  # as written in the prototype: "const float *"
    access: Literal["read", "write", "read_write"] = "read"
    extent: str | None = None  # arrays: elements, an expression over integer scalar parameters
    shape: list[str] = Field(default_factory=list)  # arrays: as far as known, expressions, outermost first
    role: Literal["size", "value", "data", "result"] = (
        "data"  # "size": an integer that bounds loops or extents
    )
    #                                                           "result": the return value as one more pointer


class TaskSpec(Data):
    """Everything about a task that an agent, a page or a log may see. No expected output is in it."""

    language: Language
    name: str  # entry function or module class
    source: str  # the user's own, unchanged
    prototype: str  # 'extern "C" void launch(int n, float a, const float *x, float *y)'
    parameters: list[Parameter]
    sizes: dict[str, int]  # the representative size; further ones stay hidden until the evaluation is over
    inputs: Inputs  # as given by the user
    notes: list[str] = Field(default_factory=list)  # what was inferred or shrunk, for the user to correct
    tolerance_rule: str = ""  # in words
    graph: dict[str, Any] | None = None  # PyTorch: the exported graph as data (sandbox.tasks.pytorch.graph)


@dataclass(frozen=True)
class Draw:
    """One set of inputs. Arrays that are only written have no content here: they start as poison."""

    sizes: Mapping[str, int]
    scalars: Mapping[str, int | float]  # every scalar parameter, sizes included
    arrays: Mapping[
        str, Array
    ]  # flat or shaped, C-contiguous, the parameter's dtype; read and read_write ones
    extents: Mapping[str, int]  # elements of every array parameter, pure outputs and "result" included
    distribution: Distribution
    representative: bool = False  # the draw whose trace becomes the metrics (exactly one is)


@dataclass(frozen=True)
class Expected:
    """The truth for one draw, for every array that is written (and "result")."""

    truth: Mapping[str, Array]  # float64 for floats, the parameter's dtype for integers
    native: Mapping[str, Array]  # the reference in its own precision
    reduction_length: int = 1  # the longest chain of additions behind one element, as far as known
    rows: Mapping[str, int] = field(default_factory=dict)  # elements per row, for the per-row error
    # How far the truth moves, element by element, when every input moves by one unit of rounding: where terms
    # cancel, no kernel can do better. Absolute, float64; absent where not known.
    response: Mapping[str, Array] = field(default_factory=dict)
    # Integers that hang on a rounding (a quantised value): what they are when inputs move by a few units.
    alternatives: Mapping[str, Sequence[Array]] = field(default_factory=dict)


@dataclass(frozen=True)
class Baseline:
    """How long the user's own program takes, as a whole, on inputs of the representative size."""

    name: str  # "c", "eager", ...
    microseconds: npt.NDArray[np.float64]  # (blocks, trials), as sandbox.timing has them


class Task(Protocol):
    """A task the judge can use. Made by `sandbox.tasks.load.load_task`."""

    @property
    def spec(self) -> TaskSpec: ...

    def draws(self, seed: bytes) -> Sequence[Draw]:
        """At least 5, over several distributions and sizes; deterministic in `seed`, which stays secret."""

    def expected(self, draws: Sequence[Draw], cancel: Cancellation) -> Sequence[Expected]:
        """Runs the user's own program in the jail, in its own precision and in float64.

        Raises TaskProblem when the reference crashes, never ends or cannot be built.
        """

    def baselines(self, draws: Sequence[Draw], cancel: Cancellation) -> Sequence[Baseline]:
        """Times the user's own program in the jail on these inputs. Empty where there is no way to yet."""
