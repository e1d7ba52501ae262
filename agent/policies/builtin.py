"""The built-in policy: a translator's direct version first, then one measured improvement a turn.

It needs no language model. Each next step is argued from what the judge measured on the best version so
far: the translator offers moves, best first, and the policy tries the first it has not seen. What does not
help is remembered and left behind; the best turn is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import cached_property

from agent.events import Event
from agent.protocols import Action, Draft, Finish, Keep, Move, Submit, Translator
from agent.ranking import rank
from agent.trajectory import Trajectory, Turn
from sandbox.errors import TaskProblem
from sandbox.types import Evaluation

#: Turns in a row that may fail to raise the score before the policy stops.
PATIENCE = 4
#: A family that scores this much is no weakness worth a sentence.
FINE = 0.95


@dataclass
class BuiltinPolicy:
    """`agent.protocols.Policy` over a translator, made when first needed (it may refuse the task).

    `start_from` is a candidate that becomes turn 1 as it stands.
    """

    make_translator: Callable[[], Translator]
    start_from: str | None = None
    name: str = "builtin"
    _drafts: dict[int, Draft] = field(default_factory=dict)  # by turn
    _seen: set[str] = field(default_factory=set)  # sources already judged
    _next: Move | None = None  # chosen by reflect, so that the reflection can say why

    @cached_property
    def translator(self) -> Translator:
        return self.make_translator()

    def act(self, trajectory: Trajectory) -> Generator[Event, None, Action]:
        yield from ()  # it decides at once
        turn = trajectory.next_turn
        if turn == 1 and self.start_from is not None:
            self._seen.add(self.start_from)
            return Submit(self.start_from, "Your kernel as it stands")
        if not self._drafts:
            return self._direct(trajectory)
        move, self._next = self._next, None
        if move is None:
            sequential = self._sequential(trajectory)
            return Keep(sequential) if sequential else Finish(self._closing(trajectory))
        base = self._base(trajectory)
        self._remember(turn, move.draft)
        return Submit(move.draft.source, move.title, base.number if base else None)

    def reflect(self, trajectory: Trajectory) -> str:
        """What this turn measured, and the next step with its reason."""
        turn = trajectory.turns[-1]
        said = [_outcome(turn, trajectory)]
        if not self._drafts:
            self._next = None
            said.append("Next: translate the reference directly, to have something to compare with.")
            return "\n".join(said)
        self._next = self._choose(trajectory)
        if self._next is not None:
            said.append(f"Next: {self._next.title[0].lower() + self._next.title[1:]}. {self._next.reason}")
        else:
            closing = self._sequential(trajectory) or self._closing(trajectory)
            said.append(f"{closing[0].upper()}{closing[1:]}.")
        return "\n".join(said)

    def draft_of(self, turn: int) -> Draft | None:
        """What the translator wrote for a turn; None where the candidate came from elsewhere."""
        return self._drafts.get(turn)

    def _direct(self, trajectory: Trajectory) -> Action:
        try:
            draft = self.translator.first()
        except TaskProblem as error:
            if not trajectory.turns:
                raise
            return Finish(f"the built-in translator cannot go on from here: {error.problem.message}")
        self._remember(len(trajectory.turns) + 1, draft)
        return Submit(draft.source, "Direct version")

    def _remember(self, turn: int, draft: Draft) -> None:
        self._drafts[turn] = draft
        self._seen.add(draft.source)

    def _base(self, trajectory: Trajectory) -> Turn | None:
        """The best passed turn that the translator knows how to change."""
        known = [t for t in trajectory.turns if t.number in self._drafts and _passed(t)]
        return next(iter(rank(known)), None)

    def _choose(self, trajectory: Trajectory) -> Move | None:
        base = self._base(trajectory)
        if base is None or base.evaluation is None or _stale(trajectory) >= PATIENCE:
            return None
        moves = self.translator.moves(self._drafts[base.number], base.evaluation)
        return next((move for move in moves if move.draft.source not in self._seen), None)

    def _sequential(self, trajectory: Trajectory) -> str:
        """Why this is better left sequential; empty where something runs in parallel, or better was given."""
        best = trajectory.best
        if best is not None and best.number not in self._drafts:
            return ""
        why = next(iter(self._drafts.values())).sequential if self._drafts else ""
        if not why:
            return ""
        said = f"as far as the built-in translator sees, leave this sequential: {why}"
        return said if best is None else f"{said}; turn {best.number} does it right, with one thread"

    def _closing(self, trajectory: Trajectory) -> str:
        best = trajectory.best
        if best is None:
            return "nothing that was tried passed the judge; the evaluations say why"
        score = _score(best) or 0.0
        if _stale(trajectory) >= PATIENCE:
            return (
                f"the last {PATIENCE} steps did not raise the score; turn {best.number} is kept ({score:.1f})"
            )
        return (
            f"nothing left to try that the measurements argue for; turn {best.number} is kept ({score:.1f})"
        )


def _passed(turn: Turn) -> bool:
    return turn.evaluation is not None and turn.evaluation.verdict == "passed"


def _score(turn: Turn) -> float | None:
    return turn.evaluation.score if turn.evaluation else None


def _stale(trajectory: Trajectory) -> int:
    """Judged turns since the best one."""
    best = trajectory.best
    return len(trajectory.turns) - best.number if best else 0


def _outcome(turn: Turn, trajectory: Trajectory) -> str:
    evaluation = turn.evaluation
    assert evaluation is not None  # reflect is called after a judged turn
    if evaluation.verdict != "passed":
        return f"Turn {turn.number} ended as {evaluation.verdict.replace('_', ' ')}: {evaluation.message}"
    score = evaluation.score or 0.0
    before = max((_score(t) or 0.0 for t in trajectory.turns[:-1] if _score(t) is not None), default=None)
    if before is None:
        said = f"Turn {turn.number} passed with a structural score of {score:.1f}."
    elif score > before:
        digits = 1 if f"{before:.1f}" != f"{score:.1f}" else 3
        said = f"Turn {turn.number} passed; the score rose from {before:.{digits}f} to {score:.{digits}f}."
    else:
        said = f"Turn {turn.number} passed but scores {score:.1f}, not above {before:.1f}: not kept."
    worst = _worst_note(evaluation)
    return f"{said} {worst}" if worst else said


def _worst_note(evaluation: Evaluation) -> str:
    """The weakest family with its number, and the sentence that names the line behind it."""
    metrics = evaluation.metrics
    if metrics is None or not metrics.families:
        return ""
    names = list(metrics.families)  # notes stand in the same order
    worst = min(range(len(names)), key=lambda i: metrics.families[names[i]])
    score = metrics.families[names[worst]]
    if score >= FINE:
        return ""
    note = metrics.notes[worst] if worst < len(metrics.notes) else ""
    return f"Weakest is {names[worst].replace('_', ' ')}, at {score:.2f}. {note}".rstrip()
