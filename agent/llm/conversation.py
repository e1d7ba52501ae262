"""Asking within a run: its limits, its events, its record."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.endings import RunEnds
from agent.events import Answered, Event, Spent, Stage, TextDelta
from agent.llm.client import ChatClient, DeadlinePassed, EndpointFailed, Piece, Waiting
from agent.llm.ledger import Ledger
from agent.llm.record import Exchange
from agent.llm.wire import Answer, Message, Request, Usage, estimated_tokens
from sandbox.errors import Cancelled

#: Left free in the context: the server's own template, and estimates that are too low.
_MARGIN = 256


@dataclass
class _Counted:
    """Which request of which turn is being answered, and how much of the answer has been told."""

    turn: int = 0
    request: int = 0
    told: int = 0

    def begin(self, turn: int) -> None:
        self.request = self.request + 1 if turn == self.turn else 1
        self.turn, self.told = turn, 0

    def piece(self, said: Piece) -> TextDelta:
        start = self.told
        self.told += len(said.text)
        return TextDelta(
            turn=self.turn, text=said.text, thought=said.thought, request=self.request, start=start
        )


@dataclass
class Conversation:
    """One model for one run. `record` gets each exchange as it was: for training, and to be replayed."""

    client: ChatClient
    ledger: Ledger
    record: Callable[[Exchange], None] = lambda exchange: None
    _last_cost: float | None = None
    _counted: _Counted = field(default_factory=lambda: _Counted())

    def room(self, tools: Sequence[dict[str, Any]] = ()) -> int:
        """Tokens that a prompt may have, tools apart, so that an answer still fits."""
        endpoint = self.client.endpoint
        answer = min(endpoint.answer_tokens, endpoint.context_tokens // 2)
        taken = self.ledger.estimate(json.dumps(list(tools))) if tools else 0
        return endpoint.context_tokens - answer - taken - _MARGIN

    def ask(
        self, turn: int, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = ()
    ) -> Generator[Event, None, Answer]:
        """Yields text as it comes. Raises RunEnds for a limit that is reached and a model that stays away."""
        endpoint, ledger = self.client.endpoint, self.ledger
        text = "".join(_said(message) for message in messages) + (json.dumps(list(tools)) if tools else "")
        prompt = ledger.estimate(text)
        wished = min(endpoint.answer_tokens, max(endpoint.context_tokens - prompt - _MARGIN, 64))
        with ledger.reserved(prompt, wished, self.client.check_cancelled) as room:
            request = Request(messages, tools, room)
            before = self.client.spent
            yield Stage(turn=turn, stage="model", detail=f"asking {endpoint.model}")
            asking = self.client.ask(request, deadline=ledger.deadline)
            try:
                answer = yield from self._listen(turn, asking)
            except (DeadlinePassed, EndpointFailed, Cancelled) as ended:
                yield self._settle(turn, before)
                if isinstance(ended, DeadlinePassed):
                    raise ledger.time_is_up() from None
                if isinstance(ended, EndpointFailed):
                    why = f"{endpoint.model} cannot be asked: {ended}"
                    raise RunEnds("model_unavailable", why) from ended
                raise
            finally:
                asking.close()
            yield self._settle(turn, before)
        ledger.learn(prompt, answer.usage)
        self.record(Exchange.of(turn, endpoint, request, answer))
        return answer

    def _listen(
        self, turn: int, asking: Generator[Piece | Waiting, None, Answer]
    ) -> Generator[Event, None, Answer]:
        self._counted.begin(turn)
        try:
            while True:
                said = next(asking)
                if isinstance(said, Piece):
                    yield self._counted.piece(said)
                    continue
                detail = f"{said.why}; attempt {said.attempt + 1} of {said.of} in {said.seconds:.1f} s"
                yield Stage(turn=turn, stage="model_wait", detail=detail, done=said.attempt + 1, of=said.of)
                self._counted.begin(turn)
        except StopIteration as stop:
            answer: Answer = stop.value
            return answer

    def _settle(self, turn: int, before: Usage) -> Spent:
        """Books what was asked since `before`."""
        spent = _difference(self.client.spent, before)
        self.ledger.add(spent)
        self._last_cost = self.ledger.cost_of(spent)
        return Spent(
            turn=turn,
            prompt_tokens=spent.prompt_tokens,
            completion_tokens=spent.completion_tokens,
            estimated=spent.estimated,
            cost=self._last_cost,
        )

    def answered(
        self,
        turn: int,
        answer: Answer,
        *,
        plan: str = "",
        lesson: str = "",
        repairs: Sequence[str] = (),
        skills: Sequence[str] = (),
    ) -> Answered:
        """The event of the answer just asked for."""
        return Answered(
            turn=turn,
            request=self._counted.request,
            model=self.client.endpoint.model,
            text=answer.text or answer.refusal,
            plan=plan,
            lesson=lesson,
            repairs=list(repairs),
            skills=list(skills),
            finish_reason=answer.finish_reason,
            prompt_tokens=answer.usage.prompt_tokens,
            completion_tokens=answer.usage.completion_tokens,
            estimated=answer.usage.estimated,
            cost=self._last_cost,
            seconds=answer.seconds,
            first_token_seconds=answer.first_token_seconds,
            attempts=answer.attempts,
        )

    def close(self) -> None:
        self.client.close()


def _said(message: Message) -> str:
    return message.content + "".join(call.name + call.arguments for call in message.tool_calls)


def _difference(after: Usage, before: Usage) -> Usage:
    return Usage(
        prompt_tokens=after.prompt_tokens - before.prompt_tokens,
        completion_tokens=after.completion_tokens - before.completion_tokens,
        estimated=after.estimated,
    )


def size(messages: Sequence[Message]) -> int:
    """Estimated tokens of a conversation."""
    return sum(estimated_tokens(_said(message)) + 4 for message in messages)
