"""Asking within a run: its limits, its events, its record."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

from agent.endings import RunEnds
from agent.events import Answered, Event, Stage, TextDelta
from agent.llm.client import ChatClient, DeadlinePassed, EndpointFailed, Waiting
from agent.llm.ledger import Ledger
from agent.llm.record import Exchange
from agent.llm.wire import Answer, Message, Request, Usage, estimated_tokens

#: Left free in the context: the server's own template, and estimates that are too low.
_MARGIN = 256


@dataclass
class Conversation:
    """One model for one run. `record` gets each exchange as it was: for training, and to be replayed."""

    client: ChatClient
    ledger: Ledger
    record: Callable[[Exchange], None] = lambda exchange: None
    _last_cost: float | None = None

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
        request = Request(messages, tools, ledger.room(prompt, wished))
        before = self.client.spent
        yield Stage(turn=turn, stage="model", detail=f"asking {endpoint.model}")
        asking = self.client.ask(request, deadline=ledger.deadline)
        try:
            while True:
                said = next(asking)
                if isinstance(said, Waiting):
                    detail = f"{said.why}; attempt {said.attempt + 1} of {said.of} in {said.seconds:.1f} s"
                    yield Stage(turn=turn, stage="model", detail=detail)
                else:
                    yield TextDelta(turn=turn, text=said.text, thought=said.thought)
        except StopIteration as stop:
            answer: Answer = stop.value
        except DeadlinePassed:
            raise ledger.time_is_up() from None
        except EndpointFailed as failed:
            raise RunEnds("model_unavailable", f"{endpoint.model} cannot be asked: {failed}") from failed
        finally:
            asking.close()
            spent = _difference(self.client.spent, before)
            ledger.add(spent)
        self._last_cost = ledger.cost_of(spent)
        ledger.learn(prompt, answer.usage)
        self.record(Exchange.of(turn, endpoint, request, answer))
        return answer

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
