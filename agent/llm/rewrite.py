"""The rewrite protocol: one answer a turn, with the whole source in a code block.

For models that cannot call tools, and for training: a turn is one prompt and one sample.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field

from agent.events import Event, TurnStarted
from agent.llm import context
from agent.llm.answers import Reading, read
from agent.llm.conversation import Conversation
from agent.llm.critique import critique
from agent.llm.skills import Means
from agent.llm.wire import Message
from agent.protocols import Action, Finish, Keep, Submit, Unusable
from agent.trajectory import Trajectory
from sandbox.tasks.base import TaskSpec

#: Turns in a row without a candidate before the run ends.
PATIENCE = 3
#: The prompt's last words: small models follow these, and may repeat those before.
_ASKED = "Answer with a line PLAN: and then all of the source in one ```cuda block."
#: Share of the prompt that observations may take.
_OBSERVED = 0.2


@dataclass
class RewritePolicy:
    """`agent.protocols.Policy`. Keeps nothing between turns: what it knows is in the trajectory."""

    conversation: Conversation
    spec: TaskSpec
    target: str
    start_from: str | None = None
    hint: str = ""  # a way to go, for one of several samples
    instruction: str = ""  # what a person asks for
    means: Means = field(default_factory=Means)
    name: str = "llm"

    def act(self, trajectory: Trajectory) -> Generator[Event, None, Action]:
        settled = unasked(trajectory, self.start_from)
        if settled is not None:
            return settled
        turn = trajectory.next_turn
        aim = context.goal(trajectory)
        base = aim.base.number if aim.base else None
        yield TurnStarted(turn=turn, title=aim.title, base_turn=base)
        messages, skills = self.prompt(trajectory, aim)
        answer = yield from self.conversation.ask(turn, messages)
        reading = read(answer, self.spec.prototype)
        yield self.conversation.answered(
            turn,
            answer,
            plan=reading.plan,
            lesson=reading.lesson,
            repairs=reading.repairs,
            skills=skills,
        )
        return self._action(reading, trajectory, aim.title, base)

    def reflect(self, trajectory: Trajectory) -> str:
        return reflection(trajectory)

    def prompt(self, trajectory: Trajectory, aim: context.Goal) -> tuple[list[Message], list[str]]:
        """What the model is shown, and the skills in it."""
        room = self.conversation.room()
        system = context.system(self.spec, tools=False)
        sections = context.task(self.spec, self.target)
        fitting = context.fitting_skill(aim, self.means.skills)
        # Pages of its users' own that are about no one weakness are always in sight: it cannot open them.
        general = [skill for skill in self.means.skills if not skill.families and skill is not fitting]
        in_prompt = [*general, *([fitting] if fitting else [])]
        for skill in in_prompt:
            sections.append(context.Section(f"SKILL {skill.name}", skill.page(self.target), rank=6))
        observed = int(room * _OBSERVED)
        sections += context.state(trajectory, aim, prototype=self.spec.prototype, tokens=observed)
        sections.append(context.aimed(aim, self.hint, self.instruction, _ASKED))
        ledger = self.conversation.ledger
        user = context.fit(sections, room - ledger.estimate(system), ledger.estimate)
        shown = [skill.name for skill in in_prompt if f"[SKILL {skill.name}]" in user]
        return [Message(role="system", content=system), Message(role="user", content=user)], shown

    def _action(self, reading: Reading, trajectory: Trajectory, title: str, base: int | None) -> Action:
        if reading.source is not None:
            return Submit(reading.source, title, base)
        if reading.keep and trajectory.best is None:
            return Keep(f"the model would leave this sequential: {reading.keep}")
        if reading.done or reading.keep:
            if trajectory.best is not None:
                return Finish(f"the model has nothing left to try: {reading.done or reading.keep}")
            return Unusable(
                f"nothing has passed yet, and still the model is done: {reading.done}", title, base
            )
        return Unusable(reading.why, title, base)


def unasked(trajectory: Trajectory, start_from: str | None) -> Submit | Finish | None:
    """What needs no model: a given kernel is judged first; too many turns for nothing are the end."""
    if not trajectory.turns and start_from is not None:
        return Submit(start_from, "Your kernel as it stands")
    if _fruitless(trajectory) >= PATIENCE:
        return Finish(f"the model wrote no candidate {PATIENCE} turns in a row; the best turn is kept")
    return None


def _fruitless(trajectory: Trajectory) -> int:
    """How many of the last turns in a row had no candidate."""
    count = 0
    for turn in reversed(trajectory.turns):
        if turn.source:
            break
        count += 1
    return count


def reflection(trajectory: Trajectory) -> str:
    """What was measured, and what the model said of it."""
    turn = trajectory.turns[-1]
    said = critique(trajectory).text()
    same = next((t.number for t in trajectory.turns[:-1] if t.source and t.source == turn.source), None)
    if same is not None:
        said += f"\nThis is the source of turn {same}, unchanged."
    plans = [answer.plan for answer in turn.answers if answer.plan]
    return f"{said}\nPlan of this turn: {plans[-1]}" if plans else said
