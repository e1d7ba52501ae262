"""What is asked of a search; part of `agent.translate.TranslateRequest`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sandbox.types import Data

Strategy = Literal[
    "single",  # one trajectory, a turn after the other
    "cudaperf",  # first samples; the best of them refined, up to three times each
    "best_of_n",  # samples that are meant to differ, none refined
    "evolve",  # a population: children of the better ones, which are shown what both parents came to
]


class SearchOptions(Data):
    strategy: Strategy = "single"
    samples: int = Field(default=4, ge=1, le=64)  # independent first candidates; the population of evolve
    parallel: int = Field(default=4, ge=1, le=16)  # turns at a time, as far as they are independent
    seed: int = Field(default=0, ge=0, lt=1 << 20)  # of sampling, and of who becomes a parent
