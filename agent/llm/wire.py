"""The chat-completions API as data: messages out, pieces of an answer in.

Reading is tolerant: servers differ in what they leave out, and a field that nobody needs must not end a run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import Field

from sandbox.types import Data

#: "cut": ended by us, since it was longer or slower than allowed.
FinishReason = Literal["stop", "length", "tool_calls", "content_filter", "cut"]


class ToolCall(Data):
    id: str
    name: str
    arguments: str  # as the model wrote them; they should be JSON


class Message(Data):
    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: list[ToolCall] = Field(default_factory=list)
    tool_call_id: str | None = None

    def wire(self) -> dict[str, Any]:
        said: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.tool_calls:
            said["tool_calls"] = [
                {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
                for c in self.tool_calls
            ]
        if self.tool_call_id is not None:
            said["tool_call_id"] = self.tool_call_id
        return said


@dataclass(frozen=True)
class Request:
    messages: Sequence[Message]
    tools: Sequence[dict[str, Any]] = ()
    answer_tokens: int = 1024


class Usage(Data):
    """Tokens. `estimated` where the server did not say."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated: bool = False

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            estimated=self.estimated or other.estimated,
        )


class Token(Data):
    """One sampled token, where the server tells."""

    text: str
    logprob: float  # natural logarithm of its probability under the sampling policy


class Answer(Data):
    """One whole answer of a model."""

    text: str
    reasoning: str = ""  # what it thought aloud, where the server tells it apart
    refusal: str = ""
    tool_calls: list[ToolCall] = Field(default_factory=list)
    tokens: list[Token] = Field(default_factory=list)  # empty unless the endpoint was set to ask for them
    finish_reason: FinishReason
    usage: Usage
    seconds: float
    first_token_seconds: float | None = None
    attempts: int = 1

    def message(self) -> Message:
        """As it stands in the conversation. Reasoning does not: it has done its work."""
        return Message(role="assistant", content=self.text, tool_calls=self.tool_calls)


class BrokenStream(Exception):
    """The answer cannot be read, or ended before its end. Worth another try."""


def storable(text: str) -> str:
    """Without what neither UTF-8 nor a database can hold: half surrogates and NUL."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def estimated_tokens(text: str) -> int:
    """An estimate for code and English: three and a third bytes a token."""
    return -(-len(text.encode(errors="replace")) * 3 // 10)


@dataclass
class Assembly:
    """An answer put together from its pieces."""

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    finish: str | None = None
    usage: Usage | None = None
    tokens: list[Token] = field(default_factory=list)
    _calls: dict[int, dict[str, str]] = field(default_factory=dict)

    def add(self, chunk: Any) -> list[tuple[str, bool]]:
        """Takes one chunk; returns the new text as (text, is it thought). Raises BrokenStream."""
        if not isinstance(chunk, Mapping):
            raise BrokenStream("a piece of the answer is no JSON object")
        if chunk.get("error"):
            raise BrokenStream(f"the server broke off: {error_text(chunk)}")
        try:
            return self._add(chunk)
        except (TypeError, AttributeError, ValueError, KeyError) as error:
            raise BrokenStream("a piece of the answer is not of the API's form") from error

    def _add(self, chunk: Mapping[str, Any]) -> list[tuple[str, bool]]:
        self._count(chunk.get("usage"))
        said: list[tuple[str, bool]] = []
        for choice in chunk.get("choices") or ():
            if not isinstance(choice, Mapping) or choice.get("index") not in (0, None):
                continue
            delta = choice.get("delta") or choice.get("message") or {}
            if isinstance(delta, Mapping):
                said += self._delta(delta)
            for token in (choice.get("logprobs") or {}).get("content") or ():
                self.tokens.append(Token(text=storable(token["token"]), logprob=float(token["logprob"])))
            if choice.get("finish_reason"):
                self.finish = str(choice["finish_reason"])
        return said

    def _delta(self, delta: Mapping[str, Any]) -> list[tuple[str, bool]]:
        said = []
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(thought, str) and thought:
            self.reasoning += (thought := storable(thought))
            said.append((thought, True))
        text = delta.get("content")
        if isinstance(text, str) and text:
            self.text += (text := storable(text))
            said.append((text, False))
        if isinstance(delta.get("refusal"), str):
            self.refusal += storable(delta["refusal"])
        for position, call in enumerate(delta.get("tool_calls") or ()):
            if isinstance(call, Mapping):
                self._call(position, call)
        return said

    def _call(self, position: int, call: Mapping[str, Any]) -> None:
        index = call.get("index")
        known = self._calls.setdefault(
            index if isinstance(index, int) else position, {"id": "", "name": "", "arguments": ""}
        )
        function = call.get("function") or {}
        known["id"] = known["id"] or storable(str(call.get("id") or ""))
        known["name"] += storable(str(function.get("name") or ""))
        arguments = function.get("arguments")
        if isinstance(arguments, Mapping):  # some servers send them parsed
            arguments = json.dumps(arguments)
        known["arguments"] += storable(arguments or "")

    def _count(self, usage: Any) -> None:
        if not isinstance(usage, Mapping):
            return
        prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
        if isinstance(prompt, int) and isinstance(completion, int) and prompt >= 0 <= completion:
            self.usage = Usage(prompt_tokens=prompt, completion_tokens=completion)

    def completion_estimate(self) -> int:
        calls = "".join(call["name"] + call["arguments"] for call in self._calls.values())
        return estimated_tokens(self.text + self.reasoning + self.refusal + calls)

    @property
    def size(self) -> int:
        """Characters so far, tool calls included."""
        calls = sum(len(call["arguments"]) for call in self._calls.values())
        return len(self.text) + len(self.reasoning) + len(self.refusal) + calls

    def calls(self) -> list[ToolCall]:
        return [
            ToolCall(id=call["id"] or f"call_{index}", name=call["name"], arguments=call["arguments"])
            for index, call in sorted(self._calls.items())
            if call["name"] or call["arguments"]
        ]

    def reason(self) -> FinishReason:
        match self.finish:
            case "length" | "content_filter" | "cut" as reason:
                return reason
            case "tool_calls" | "function_call":
                return "tool_calls"
            case _:
                return "stop"


def error_text(body: Any) -> str:
    """The server's own words about an error, one short line."""
    error = body.get("error", body) if isinstance(body, Mapping) else body
    if isinstance(error, Mapping):
        error = error.get("message") or error.get("detail") or json.dumps(error)
    words = " ".join(storable(str(error)).split())
    return words if len(words) <= 300 else words[:299] + "…"
