"""Trying an endpoint: a short answer, whether it calls tools, which names it serves."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any

from agent.llm.client import ChatClient, DeadlinePassed, EndpointFailed, served_models
from agent.llm.endpoint import Endpoint
from agent.llm.guard import AddressRefused
from agent.llm.wire import Answer, Message, Request
from sandbox.cancellation import Cancellation
from webapp.live.resources import ModelTried

SECONDS = 20.0
_TOKENS = 256
_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "report_ready",
        "description": "Say that you are ready.",
        "parameters": {"type": "object", "properties": {"ready": {"type": "boolean"}}, "required": ["ready"]},
    },
}


def tried(endpoint: Endpoint) -> ModelTried:
    """Asks twice: for one word, then for a tool call. Never raises for what the endpoint does."""
    endpoint = endpoint.model_copy(update={"attempts": 1, "answer_tokens": _TOKENS})
    try:
        served = served_models(endpoint)
    except EndpointFailed:
        served = []  # not every endpoint lists what it serves; the answer decides
    try:
        answer = _ask(endpoint, "Answer with the one word: ready", [])
    except (EndpointFailed, DeadlinePassed, AddressRefused) as failed:
        why = str(failed) or f"no whole answer within {SECONDS:.0f} s"
        if served and endpoint.model not in served:
            why = f"{why}; it serves {', '.join(served)}"
        return ModelTried(ok=False, detail=why, served=served)
    try:
        calls_tools = bool(_ask(endpoint, "Call the tool report_ready with ready=true.", [_TOOL]).tool_calls)
    except (EndpointFailed, DeadlinePassed):
        calls_tools = False
    first = answer.first_token_seconds
    began = f"first token after {first:.2f} s" if first is not None else "an answer without text"
    tools = "it calls tools" if calls_tools else "it calls no tools"
    return ModelTried(
        ok=True,
        detail=f"{endpoint.model} answers: {began}, {answer.seconds:.2f} s in all; {tools}",
        first_token_seconds=first,
        seconds=answer.seconds,
        prompt_tokens=answer.usage.prompt_tokens,
        completion_tokens=answer.usage.completion_tokens,
        calls_tools=calls_tools,
        served=served,
    )


def _ask(endpoint: Endpoint, words: str, tools: list[dict[str, Any]]) -> Answer:
    request = Request([Message(role="user", content=words)], tools, _TOKENS)
    with closing(ChatClient(endpoint, cancel=Cancellation())) as client:
        asking = client.ask(request, deadline=time.monotonic() + SECONDS)
        try:
            while True:
                next(asking)
        except StopIteration as stop:
            answer: Answer = stop.value
            return answer
