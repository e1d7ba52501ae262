"""What a run may still spend, and what it has spent: tokens, money, time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from agent.endings import RunEnds
from agent.limits import Limits
from agent.llm.endpoint import Price
from agent.llm.wire import Usage, estimated_tokens

#: An answer that may not even have this many tokens is not asked for.
LEAST_ANSWER = 64


@dataclass
class Ledger:
    """The run's clock starts with the ledger. One for all threads of a run: what is being asked for is
    reserved, so that answers that are written side by side do not pass a limit together."""

    limits: Limits
    price: Price | None = None
    spent: Usage = field(default_factory=Usage)
    began: float = field(default_factory=time.monotonic)
    _factor: float = 1.0  # tokens the server counts for one that we estimate
    _reserved: list[Usage] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)

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
        with self._changed:
            self.spent += usage

    def learn(self, estimated: int, usage: Usage) -> None:
        """A prompt estimated at so many tokens had this many."""
        if not usage.estimated and estimated > 0:
            self._factor = min(max(self._factor * usage.prompt_tokens / estimated, 0.5), 3.0)

    @contextmanager
    def reserved(self, prompt_tokens: int, wished: int, check: Callable[[], None]) -> Iterator[int]:
        """Tokens the next answer may have, kept free until it is there. Where others are being written that
        may take what is left, waits for them. Raises RunEnds as `room`, and what `check` raises meanwhile."""
        with self._changed:
            while self._reserved and self._tight(prompt_tokens, wished):
                check()
                if time.monotonic() >= self.deadline:
                    raise self.time_is_up()
                self._changed.wait(0.1)
            room = self.room(prompt_tokens, wished)
            mine = Usage(prompt_tokens=prompt_tokens, completion_tokens=room)
            self._reserved.append(mine)
        try:
            yield room
        finally:
            with self._changed:
                self._reserved.remove(mine)
                self._changed.notify_all()

    def _tight(self, prompt_tokens: int, wished: int) -> bool:
        """Whether what was spent, what is reserved and this could pass a limit."""
        most = sum(self._reserved, self.spent) + Usage(prompt_tokens=prompt_tokens, completion_tokens=wished)
        if (
            self.limits.tokens is not None
            and most.prompt_tokens + most.completion_tokens > self.limits.tokens
        ):
            return True
        if self.limits.cost is None or self.price is None:
            return False
        return self.price.of(most.prompt_tokens, most.completion_tokens) > self.limits.cost

    def room(self, prompt_tokens: int, wished: int) -> int:
        """Tokens the next answer may have, with nothing reserved. Raises RunEnds where a limit leaves no room
        for one."""
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
