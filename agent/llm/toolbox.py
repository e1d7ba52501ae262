"""The tools of the tools protocol. None leaves the scratch folder; what they say is short.

A tool is a frozen model of its arguments, whose docstring the language model reads, and what is done with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field, ValidationError

from agent.edits import edited_events
from agent.events import Event
from agent.llm.comparison import baseline, compare
from agent.llm.observe import compilation_observation, profile
from agent.llm.scratch import Refused, Scratch
from agent.llm.skills import Means, index, pages, search
from agent.llm.wire import ToolCall
from agent.loop import CANDIDATE_FILE
from agent.protocols import Environment, Finish, Keep, Submit
from agent.trajectory import Trajectory, Turn
from sandbox.types import Data


class Baseline(Data):
    """What the task costs: the reference's own time, the bytes that must move, the least time that takes."""


class ReadFile(Data):
    """Read a file of the scratch folder, with line numbers."""

    name: str = CANDIDATE_FILE
    first: int = 1
    last: int | None = None


class WriteFile(Data):
    """Write a whole file of the scratch folder."""

    name: str = CANDIDATE_FILE
    content: str


class EditFile(Data):
    """Replace a piece of a file. `old` must stand there exactly once, spaces included."""

    name: str = CANDIDATE_FILE
    old: str
    new: str
    everywhere: bool = False


class Compile(Data):
    """Compile kernel.cu with nvcc: errors, registers, spills. Costs no turn."""


class Verify(Data):
    """Hand kernel.cu to the judge: right or wrong, then measured. Ends the turn."""

    plan: str = Field(description="one sentence: what this version changes, and why")
    learned: str = Field(default="", description="one sentence: what the last measurement showed")


class Profile(Data):
    """Kernels and lines of a judged turn, by their cost in a family of metrics (default: the weakest)."""

    turn: int | None = Field(default=None, description="default: the best turn")
    family: str | None = None


class Compare(Data):
    """Two judged turns side by side: verdicts, scores, families, and what differs in their sources."""

    first: int
    second: int


class SearchSkills(Data):
    """Find skills: short pages on how to make kernels right and fast."""

    query: str


class OpenSkill(Data):
    """Read a skill."""

    name: str


class Note(Data):
    """Remember a sentence beyond this turn."""

    text: str


class Done(Data):
    """Nothing is left to gain: end the run."""

    reason: str


class KeepSequential(Data):
    """Leave the program sequential: nothing in it could run in parallel. Ends the run without a kernel."""

    reason: str


TOOLS: dict[str, type[Data]] = {
    "baseline": Baseline,
    "read_file": ReadFile,
    "write_file": WriteFile,
    "edit_file": EditFile,
    "compile": Compile,
    "verify": Verify,
    "profile": Profile,
    "compare": Compare,
    "search_skills": SearchSkills,
    "open_skill": OpenSkill,
    "note": Note,
    "finish": Done,
    "keep": KeepSequential,
}


#: Without these no candidate comes to the judge, and no run to its end.
ALWAYS = frozenset({"write_file", "verify", "finish"})


def usable(means: Means) -> list[str]:
    """The names of the tools that a model may use."""
    return [name for name in TOOLS if means.tools is None or name in means.tools or name in ALWAYS]


def schemas(means: Means = Means()) -> list[dict[str, Any]]:  # noqa: B008  frozen
    """The tools as the API wants them."""
    allowed = usable(means)
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": " ".join((model.__doc__ or "").split()),
                "parameters": _bare(model.model_json_schema()),
            },
        }
        for name, model in TOOLS.items()
        if name in allowed
    ]


@dataclass(frozen=True)
class Used:
    """What a tool said. `action` where it ends the turn or the run."""

    observation: str
    ok: bool = True
    action: Submit | Finish | Keep | None = None


@dataclass(frozen=True)
class At:
    """Where in a run a tool is used."""

    turn: int
    trajectory: Trajectory
    title: str
    base: int | None
    tokens: int  # that an observation may have, about


@dataclass
class Toolbox:
    environment: Environment
    means: Means = field(default_factory=Means)
    scratch: Scratch = field(default_factory=Scratch)
    opened: list[str] = field(default_factory=list)  # skills, in this turn
    times: dict[str, float] | None = None  # of the reference, once they were asked for

    def use(self, at: At, tool: str, raw: str) -> Generator[Event, None, Used]:
        """Uses one tool; whatever the model got wrong comes back as an observation that says so."""
        allowed = usable(self.means)
        model = TOOLS.get(tool)
        if model is None or tool not in allowed:
            return Used(f"there is no tool {tool[:80]!r}; the tools are {', '.join(allowed)}", ok=False)
        try:
            arguments = model.model_validate(_object(raw))
        except ValueError as error:  # pydantic's is one
            return Used(f"the arguments of {tool} do not fit: {_said(error)}", ok=False)
        try:
            match arguments:
                case Baseline():
                    return (yield from self._baseline(at))
                case ReadFile():
                    text = self.scratch.read(arguments.name, arguments.first, arguments.last)
                    return Used(_cut(text, at.tokens))
                case WriteFile() | EditFile():
                    return (yield from self._change(at.turn, arguments))
                case Compile():
                    return (yield from self._compile(at))
                case Verify():
                    return self._verify(at)
                case Profile():
                    return _profile(arguments, at.trajectory, at.tokens)
                case Compare():
                    return Used(
                        compare(
                            _judged(at.trajectory, arguments.first), _judged(at.trajectory, arguments.second)
                        )
                    )
                case SearchSkills():
                    found = search(re.findall(r"\w+", arguments.query), self.means.skills)[:4]
                    lines = [f"{skill.name}: {skill.description}" for skill in found]
                    return Used(
                        "\n".join(lines) or f"nothing fits; all there is:\n{index(self.means.skills)}"
                    )
                case OpenSkill():
                    return self._open(arguments.name)
                case Note():
                    return Used("kept")
                case Done():
                    return self._finish(arguments, at.trajectory)
                case KeepSequential():
                    return self._keep(arguments, at.trajectory)
                case _:
                    raise AssertionError(tool)
        except Refused as refused:
            return Used(str(refused), ok=False)

    def _baseline(self, at: At) -> Generator[Event, None, Used]:
        if self.times is None:
            self.times = yield from self.environment.reference_times(at.turn)
        spec, target = self.environment.spec, self.environment.target
        return Used(baseline(spec, target, self.times, at.trajectory.best))

    def _change(self, turn: int, change: WriteFile | EditFile) -> Generator[Event, None, Used]:
        before = self.scratch.files.get(change.name, "")
        if isinstance(change, WriteFile):
            self.scratch.write(change.name, change.content)
            lines = self.scratch.files[change.name].count("\n")
            said = f"{change.name} has {lines} line{'' if lines == 1 else 's'} now"
        else:
            count = self.scratch.edit(change.name, change.old, change.new, everywhere=change.everywhere)
            said = "edited" if count == 1 else f"edited in {count} places"
        if change.name == CANDIDATE_FILE:  # the editor shows it at once; the loop gives the versions
            yield from edited_events(
                turn, before, self.scratch.files[change.name], file=CANDIDATE_FILE, version=0
            )
        return Used(said)

    def _compile(self, at: At) -> Generator[Event, None, Used]:
        source = self._candidate()
        ok, compilation = yield from self.environment.compile(at.turn, source)
        prototype = self.environment.spec.prototype
        said = compilation_observation(ok, compilation, source, prototype=prototype, tokens=at.tokens)
        return Used(said)

    def _verify(self, at: At) -> Used:
        source = self._candidate()
        same = next((t for t in at.trajectory.turns if t.source == source and t.evaluation is not None), None)
        if same is not None and same.evaluation is not None:
            return Used(
                f"this is the source of turn {same.number}, unchanged, which was judged: "
                f"{same.evaluation.verdict.replace('_', ' ')}, {same.evaluation.message}",
                ok=False,
            )
        return Used("handed to the judge", action=Submit(source, at.title, at.base))

    def _candidate(self) -> str:
        source = self.scratch.files.get(CANDIDATE_FILE, "")
        if not source.strip():
            raise Refused(f"{CANDIDATE_FILE} is empty: write it first")
        return source

    def _open(self, name: str) -> Used:
        skill = pages(self.means.skills).get(name)
        if skill is None:
            there = index(self.means.skills)
            return Used(f"there is no skill {name[:80]!r}; there are:\n{there}", ok=False)
        if name not in self.opened:
            self.opened.append(name)
        return Used(skill.page(self.environment.target))

    def _finish(self, wish: Done, trajectory: Trajectory) -> Used:
        if trajectory.best is None:
            return Used(
                "nothing has passed yet: go on, the run ends by itself when its limits are reached", ok=False
            )
        return Used("done", action=Finish(f"the model has nothing left to try: {wish.reason[:300]}"))

    def _keep(self, wish: KeepSequential, trajectory: Trajectory) -> Used:
        if trajectory.best is not None:
            return Used("a kernel has passed already: use finish when nothing is left to gain", ok=False)
        said = f"the model would leave this sequential: {wish.reason[:300]}"
        return Used("done", action=Keep(said))


def notes(trajectory: Trajectory) -> list[str]:
    """What the model wished to remember in this run."""
    kept = []
    for turn in trajectory.turns:
        for used in turn.tools:
            if used.tool == "note" and used.ok:
                kept.append(Note.model_validate(_object(used.arguments)).text[:400])
    return kept


def spoken_calls(text: str) -> list[ToolCall]:
    """Calls that stand in an answer's text: servers that do not know how a model calls leave them there.

    Understood are `<tool_call>{...}</tool_call>`, and an answer that is nothing but one such object, fenced
    or not, where it names a tool there is.
    """
    bodies = [part.split("</tool_call>")[0] for part in text.split("<tool_call>")[1:]]
    if not bodies:
        alone = text.strip().removeprefix("```json").strip("`").strip()
        bodies = [alone] if alone.startswith("{") else []
    calls: list[ToolCall] = []
    for body in bodies:
        try:
            said = _object(body)
        except ValueError:
            continue
        arguments = said.get("arguments", said.get("parameters", {}))
        if str(said.get("name")) in TOOLS:
            raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
            calls.append(ToolCall(id=f"spoken_{len(calls)}", name=said["name"], arguments=raw))
    return calls


def intent(calls: Sequence[ToolCall]) -> tuple[str, str]:
    """(plan, lesson) that a call of verify among these gives; empty where there is none that fits."""
    for call in calls:
        if call.name == "verify":
            try:
                wish = Verify.model_validate(_object(call.arguments))
            except ValueError:  # the call is refused with this reason when it is used
                continue
            return wish.plan[:300], wish.learned[:300]
    return "", ""


def _profile(wish: Profile, trajectory: Trajectory, tokens: int) -> Used:
    if wish.turn is not None:
        turn = _judged(trajectory, wish.turn)
    elif trajectory.best is not None:
        turn = trajectory.best
    else:
        raise Refused("nothing has passed yet, and only what passed is measured")
    metrics = turn.evaluation.metrics if turn.evaluation else None
    if metrics is None:
        raise Refused(f"turn {turn.number} did not pass, so nothing of it was measured")
    if wish.family is not None and wish.family not in metrics.families:
        raise Refused(f"no family {wish.family[:40]!r} was measured; there are {', '.join(metrics.families)}")
    return Used(profile(metrics, turn.source, tokens=tokens, family=wish.family))


def _judged(trajectory: Trajectory, number: int) -> Turn:
    for turn in trajectory.turns:
        if turn.number == number and turn.evaluation is not None:
            return turn
    judged = [str(turn.number) for turn in trajectory.turns if turn.evaluation is not None]
    raise Refused(f"turn {number} was not judged; judged are: {', '.join(judged) or 'none yet'}")


def _object(raw: str) -> dict[str, Any]:
    """The arguments as an object. Raises ValueError. Nothing at all is an empty one."""
    try:
        parsed = json.loads(raw) if raw.strip() else {}
        if isinstance(parsed, str):  # encoded twice, as small models do
            parsed = json.loads(parsed)
    except RecursionError as error:
        raise ValueError("they are nested too deeply") from error
    if not isinstance(parsed, dict):
        raise ValueError("they must be one JSON object")
    return parsed


def _said(error: ValueError) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(
            f"{'.'.join(map(str, e['loc'])) or 'they'}: {e['msg'].lower()}" for e in error.errors()[:3]
        )
    if isinstance(error, json.JSONDecodeError):
        return f"they are not JSON ({error.msg.lower()} at character {error.pos})"
    return str(error)


def _cut(text: str, tokens: int) -> str:
    most = tokens * 3
    return text if len(text) <= most else text[:most] + "\n… (cut: read it in parts, with first and last)"


def _bare(schema: dict[str, Any]) -> dict[str, Any]:
    """Without the titles and descriptions that say nothing new."""
    properties = {
        name: {key: value for key, value in each.items() if key != "title"}
        for name, each in schema.get("properties", {}).items()
    }
    return {"type": "object", "properties": properties, "required": schema.get("required", [])}
