"""The tools protocol: think, call a tool, look at what it says, until the candidate goes to the judge.

A turn is what leads to one judgement. Each turn begins a conversation anew (`agent.llm.context`): old
reasoning and old observations are gone, what they came to is kept.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace

from agent.edits import edited_events
from agent.events import Event, ToolUsed, TurnStarted
from agent.llm import context
from agent.llm.answers import sentence
from agent.llm.conversation import Conversation, size
from agent.llm.rewrite import PATIENCE, reflection, unasked
from agent.llm.skills import Means, index
from agent.llm.toolbox import At, Toolbox, Used, intent, notes, schemas, spoken_calls
from agent.llm.wire import Answer, Message, ToolCall
from agent.loop import CANDIDATE_FILE
from agent.protocols import Action, Environment, Finish, Keep, Submit, Unusable
from agent.trajectory import Trajectory

#: Shares of the room for a prompt: the turn's opening, and one tool's observation.
_OPENING, _OBSERVATION = 0.6, 0.15
_LEFT_OUT = "(left out to save room; use the tool again)"
_NUDGE = (
    "Go on by calling a tool. Write the source with write_file, hand it to the judge with verify, or call "
    "finish when nothing is left to gain."
)


@dataclass
class ToolPolicy:
    """`agent.protocols.Policy`. Its scratch folder lives as long as it does; else it keeps nothing."""

    conversation: Conversation
    environment: Environment
    start_from: str | None = None
    hint: str = ""  # a way to go, for one of several samples
    instruction: str = ""  # what a person asks for
    means: Means = field(default_factory=Means)
    name: str = "llm"
    steps_per_turn: int = 24  # answers before a turn must have come to a judgement
    toolbox: Toolbox = field(init=False)

    def __post_init__(self) -> None:
        self.toolbox = Toolbox(self.environment, self.means)

    def act(self, trajectory: Trajectory) -> Generator[Event, None, Action]:
        settled = unasked(trajectory, self.start_from)
        if isinstance(settled, Submit):
            self.toolbox.scratch.write(CANDIDATE_FILE, settled.source)
        if settled is not None:
            return settled
        turn = trajectory.next_turn
        aim = context.goal(trajectory)
        base = aim.base.number if aim.base else None
        yield TurnStarted(turn=turn, title=aim.title, base_turn=base)
        yield from self._lay_out(turn, trajectory, aim)
        return (yield from self._steps(turn, trajectory, aim, base))

    def reflect(self, trajectory: Trajectory) -> str:
        return reflection(trajectory)

    def _lay_out(self, turn: int, trajectory: Trajectory, aim: context.Goal) -> Iterator[Event]:
        """The base is what is edited: after a step that did not help, its source is back in kernel.cu."""
        self.toolbox.opened.clear()
        if aim.base is None:
            return
        judged = next((t.source for t in reversed(trajectory.before(turn)) if t.source), "")
        shown = self.toolbox.scratch.files.get(CANDIDATE_FILE, judged)
        self.toolbox.scratch.write(CANDIDATE_FILE, aim.base.source)
        yield from edited_events(
            turn, shown, self.toolbox.scratch.files[CANDIDATE_FILE], file=CANDIDATE_FILE, version=0
        )

    def _steps(
        self, turn: int, trajectory: Trajectory, aim: context.Goal, base: int | None
    ) -> Generator[Event, None, Action]:
        tools = schemas(self.means)
        room = self.conversation.room(tools)
        messages = self._opening(trajectory, aim, room)
        kept = len(messages)  # never left out
        idle = 0
        for _ in range(self.steps_per_turn):
            messages = shortened(messages, kept, room)
            answer = yield from self.conversation.ask(turn, messages, tools)
            if not answer.tool_calls and (spoken := spoken_calls(answer.text)):
                answer = answer.model_copy(update={"tool_calls": spoken})
            messages.append(answer.message())
            if not answer.tool_calls:
                yield self._answered(turn, answer)
                idle += 1
                why = _no_call(answer)
                if idle == PATIENCE or answer.refusal or answer.finish_reason == "content_filter":
                    return Unusable(why, aim.title, base)
                messages.append(Message(role="user", content=f"{why}. {_NUDGE}"))
                continue
            idle = 0
            plan, lesson = intent(answer.tool_calls)
            yield self._answered(turn, answer, plan, lesson)
            at = At(turn, trajectory, aim.title, base, int(room * _OBSERVATION))
            action = yield from self._use(at, answer, messages)
            if action is not None:
                return action
        return Unusable(f"{self.steps_per_turn} answers, and no candidate went to the judge", aim.title, base)

    def _use(
        self, at: At, answer: Answer, messages: list[Message]
    ) -> Generator[Event, None, Submit | Finish | Keep | None]:
        """The calls of one answer, in order, up to one that ends the turn."""
        for call in answer.tool_calls:
            began = time.monotonic()
            used = yield from self.toolbox.use(at, call.name, call.arguments)
            if not used.ok and answer.finish_reason in ("length", "cut"):
                used = replace(
                    used, observation=f"{used.observation}. The answer was cut off: write less at once"
                )
            yield _told(at.turn, call, used, time.monotonic() - began)
            messages.append(Message(role="tool", content=used.observation, tool_call_id=call.id))
            if used.action is not None:
                return used.action
        return None

    def _answered(self, turn: int, answer: Answer, plan: str = "", lesson: str = "") -> Event:
        return self.conversation.answered(
            turn,
            answer,
            plan=plan or sentence(answer.text, "PLAN"),
            lesson=lesson or sentence(answer.text, "LESSON"),
            skills=self.toolbox.opened,
        )

    def _opening(self, trajectory: Trajectory, aim: context.Goal, room: int) -> list[Message]:
        spec, target, ledger = self.environment.spec, self.environment.target, self.conversation.ledger
        system = context.system(spec, tools=True)
        sections = context.task(spec, target)
        sections.append(context.Section("SKILLS", index(self.means.skills), rank=6))
        remembered = notes(trajectory)
        if remembered:
            sections.append(
                context.Section("NOTES", "\n".join(f"- {note}" for note in remembered[-12:]), rank=1)
            )
        observed = int(room * _OBSERVATION)
        sections += context.state(trajectory, aim, prototype=spec.prototype, tokens=observed)
        others = sorted(set(self.toolbox.scratch.files) - {CANDIDATE_FILE})
        holds = "PREV_CUDA stands in it as kernel.cu" if aim.base else "kernel.cu is not written yet"
        how = f"{holds}{', beside ' + ', '.join(others) if others else ''}."
        sections.append(context.aimed(aim, self.hint, self.instruction, how))
        user = context.fit(sections, int(room * _OPENING) - ledger.estimate(system), ledger.estimate)
        return [Message(role="system", content=system), Message(role="user", content=user)]


def shortened(messages: Sequence[Message], kept: int, room: int) -> list[Message]:
    """The conversation in at most `room` estimated tokens: the oldest observations after the first `kept`
    messages go first, then the oldest whole steps."""
    shorter = list(messages)
    for position in range(kept, len(shorter) - 2):
        if size(shorter) <= room:
            return shorter
        message = shorter[position]
        if message.role == "tool" and len(message.content) > len(_LEFT_OUT):
            shorter[position] = message.model_copy(update={"content": _LEFT_OUT})
    while size(shorter) > room and len(shorter) > kept + 2:
        # A step is an answer with the observations of its calls: one without the other is no conversation.
        end = kept + 1
        while end < len(shorter) and shorter[end].role == "tool":
            end += 1
        if end >= len(shorter):
            break
        del shorter[kept:end]
    return shorter


def _told(turn: int, call: ToolCall, used: Used, seconds: float) -> ToolUsed:
    return ToolUsed(
        turn=turn,
        tool=call.name,
        arguments=call.arguments,
        observation=used.observation,
        ok=used.ok,
        seconds=seconds,
    )


def _no_call(answer: Answer) -> str:
    if answer.refusal or answer.finish_reason == "content_filter":
        words = " ".join((answer.refusal or answer.text).split())[:200]
        return f"the model refused: {words or 'its server filtered the answer'}"
    if answer.finish_reason in ("length", "cut"):
        return "the answer was cut off before it called a tool: answer shorter"
    return "the answer called no tool"
