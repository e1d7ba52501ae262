"""What a run may still spend, and what it has spent: tokens, money, time."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from agent.endings import RunEnds
from agent.limits import Limits
from agent.llm.endpoint import Price
from agent.llm.wire import Usage, estimated_tokens

#: An answer that may not even have this many tokens is not asked for.
LEAST_ANSWER = 64


@dataclass
class Ledger:
    """The run's clock starts with the ledger."""

    limits: Limits
    price: Price | None = None
    spent: Usage = field(default_factory=Usage)
    began: float = field(default_factory=time.monotonic)
    _factor: float = 1.0  # tokens the server counts for one that we estimate

    @property
    def deadline(self) -> float:
        return self.began + self.limits.seconds

    @property
    def tokens(self) -> int:
        return self.spent.prompt_tokens + self.spent.completion_tokens

    @property
    def cost(self) -> float | None:
        if self.price is None:
            return None
        return self.price.of(self.spent.prompt_tokens, self.spent.completion_tokens)

    def cost_of(self, usage: Usage) -> float | None:
        return self.price.of(usage.prompt_tokens, usage.completion_tokens) if self.price else None

    def estimate(self, text: str) -> int:
        """Tokens of `text`, by what this server counted so far."""
        return round(estimated_tokens(text) * self._factor)

    def add(self, usage: Usage) -> None:
        self.spent += usage

    def learn(self, estimated: int, usage: Usage) -> None:
        """A prompt estimated at so many tokens had this many."""
        if not usage.estimated and estimated > 0:
            self._factor = min(max(self._factor * usage.prompt_tokens / estimated, 0.5), 3.0)

    def room(self, prompt_tokens: int, wished: int) -> int:
        """Tokens the next answer may have. Raises RunEnds where a limit leaves no room for one."""
        room = wished
        if time.monotonic() >= self.deadline:
            raise self.time_is_up()
        if self.limits.tokens is not None:
            room = min(room, self.limits.tokens - self.tokens - prompt_tokens)
            if room < LEAST_ANSWER:
                said = (
                    f"{self.tokens:,} of {self.limits.tokens:,} tokens are used, too few are left for a turn"
                )
                raise RunEnds("token_limit", f"{said}; the best turn is kept")
        if self.limits.cost is not None and self.price is not None and self.cost is not None:
            left = self.limits.cost - self.cost - self.price.of(prompt_tokens, 0)
            if left < self.price.of(0, LEAST_ANSWER):
                said = f"{self.cost:.4f} of {self.limits.cost:g} is spent, too little is left for a turn"
                raise RunEnds("cost_limit", f"{said}; the best turn is kept")
            if self.price.completion:
                room = min(room, int(left / self.price.completion * 1e6))
        return room

    def time_is_up(self) -> RunEnds:
        seconds = self.limits.seconds
        return RunEnds("time_limit", f"stopped after {seconds:.0f} s; the best turn is kept")
