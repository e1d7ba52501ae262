"""A run as JSON lines: its events, and between them what the model was shown and what it wrote.

Every line has a `type`. Beside the events of `agent.events` there are four more: `trajectory`, the first line
(what was asked for, by which version; never a key), `message`, `tools` and `exchange`. An exchange names its
messages by number, each of which stands once: prompts repeat most of what was in the one before.

That is all that training needs (what was shown, what was sampled, with which settings, and what the judge
said of it) and all that `kernelwright replay` needs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TextIO

from pydantic import Field, ValidationError

from agent.events import Event, event_adapter
from agent.llm.endpoint import Endpoint
from agent.llm.wire import Answer, Message, Request
from agent.trajectory import Trajectory, fold
from sandbox.types import Data

VERSION = 1


class Exchange(Data):
    """One request to a model and its whole answer."""

    turn: int
    model: str
    sampling: dict[str, Any]
    answer_tokens: int  # the most it was allowed
    messages: list[Message]
    tools: list[dict[str, Any]] = Field(default_factory=list)
    answer: Answer

    @classmethod
    def of(cls, turn: int, endpoint: Endpoint, request: Request, answer: Answer) -> Exchange:
        return cls(
            turn=turn,
            model=endpoint.model,
            sampling=endpoint.sampling(),
            answer_tokens=request.answer_tokens,
            messages=list(request.messages),
            tools=list(request.tools),
            answer=answer,
        )


class Head(Data):
    """The first line."""

    type: Literal["trajectory"] = "trajectory"
    version: int = VERSION
    kernelwright: str
    request: dict[str, Any]  # what was asked for: agent.translate.TranslateRequest
    model: dict[str, Any] | None = None  # the endpoint, without its key


class BadRecord(ValueError):
    """The file is no trajectory; the message names the line."""


@dataclass
class Recorder:
    """Writes a run down as it goes, a line at a time, so that what is written when it breaks off is whole."""

    out: TextIO
    _numbers: dict[str, int] = field(default_factory=dict)
    _tools: str = ""

    def head(self, head: Head) -> None:
        self._line(head.model_dump(mode="json"))

    def event(self, event: Event) -> None:
        if event.type != "text_delta":  # the answer carries the whole
            self.out.write(event.model_dump_json() + "\n")
            self.out.flush()

    def exchange(self, exchange: Exchange) -> None:
        numbers = [self._number(message) for message in exchange.messages]
        said = exchange.model_dump(mode="json", exclude={"messages", "tools"})
        tools = json.dumps(exchange.tools)
        if tools != self._tools:
            self._tools = tools
            self._line({"type": "tools", "tools": exchange.tools})
        self._line({"type": "exchange", **said, "messages": numbers, "tools": bool(exchange.tools)})

    def _number(self, message: Message) -> int:
        key = message.model_dump_json()
        if key not in self._numbers:
            self._numbers[key] = len(self._numbers)
            self._line(
                {"type": "message", "number": self._numbers[key], "message": message.model_dump(mode="json")}
            )
        return self._numbers[key]

    def _line(self, document: dict[str, Any]) -> None:
        self.out.write(json.dumps(document, ensure_ascii=False) + "\n")
        self.out.flush()


@dataclass
class Recording:
    """A run read back."""

    head: Head | None = None
    events: list[Event] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)

    @property
    def trajectory(self) -> Trajectory:
        return fold(self.events)


def read(lines: Iterable[str]) -> Recording:
    """Reads a recording; one that holds events alone is a recording too. Raises BadRecord.

    A last line that was cut off, as by a machine that went down, is left out.
    """
    recording, messages, tools = Recording(), {}, []
    numbered = [(n, line) for n, line in enumerate(lines, 1) if line.strip()]
    for number, line in numbered:
        try:
            document = json.loads(line)
            match document["type"]:
                case "trajectory":
                    recording.head = Head.model_validate(document)
                case "message":
                    messages[document["number"]] = Message.model_validate(document["message"])
                case "tools":
                    tools = document["tools"]
                case "exchange":
                    fields = {name: value for name, value in document.items() if name != "type"}
                    fields["messages"] = [messages[n] for n in fields["messages"]]
                    fields["tools"] = tools if fields["tools"] else []
                    recording.exchanges.append(Exchange.model_validate(fields))
                case _:
                    recording.events.append(event_adapter.validate_python(document))
        except (ValueError, KeyError, TypeError, ValidationError) as error:
            if number == numbered[-1][0] and not line.endswith("\n"):
                break
            said = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
            raise BadRecord(f"line {number} is no line of a trajectory: {said}") from error
    if not recording.events and recording.head is None:
        raise BadRecord("the file holds no events")
    return recording
