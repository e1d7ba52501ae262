"""What bounds a run. Each limit ends it with its own reason and keeps the best candidate."""

from __future__ import annotations

from sandbox.types import Data


class Limits(Data):
    turns: int = 8
    seconds: float = 600.0  # wall time; looked at between turns, and by a policy that waits for a model
    tokens: int | None = None  # of a language model, prompts and answers together
    cost: float | None = None  # in the currency of the model's price
