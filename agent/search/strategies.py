"""Which turns to make next. A strategy looks at the trajectory alone and keeps nothing.

So a run that was broken off goes on as it would have: branches that are missing are made first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from agent.ranking import rank
from agent.search.options import SearchOptions
from agent.trajectory import Trajectory, Turn

#: The branch of a kernel that was given; it is judged before anything else.
GIVEN = 0
#: cudaperf: the two temperatures that the paper samples with, how many samples are refined, and how often.
_TEMPERATURES = (0.2, 0.7)
_SEEDS, _REFINEMENTS = 2, 3
#: best_of_n and evolve: from careful to free.
_SPREAD = (0.2, 0.9)
#: evolve: generations in a row that may find nothing better.
PATIENCE = 3
#: Ways to go, so that samples differ in more than their words. The first is to do as the model likes.
WAYS = (
    "",
    "Go this way: one thread per element of the output, neighbouring threads on neighbouring elements.",
    "Go this way: a block per row or group, results combined in shared memory or with warp shuffles.",
    "Go this way: tiles of the input in shared memory, each element read from global memory once.",
    "Go this way: several elements per thread in a loop with the grid's stride, 16-byte loads where aligned.",
    "Go this way: a warp per row or group, __shfl_down_sync for sums, no shared memory.",
)


@dataclass(frozen=True)
class Variation:
    """How one sample is asked for. None leaves a value to the endpoint."""

    temperature: float | None = None
    seed: int | None = None
    hint: str = ""
    given: bool = False  # judge the given kernel instead of asking


@dataclass(frozen=True)
class Step:
    """One turn to be made. `shown`: the earlier turns that its policy sees."""

    branch: int
    variation: Variation
    shown: tuple[int, ...] = ()
    base: int | None = None  # whose source to start from; None leaves it to the policy
    mate: int | None = None  # a second parent


class Strategy(Protocol):
    def next(self, trajectory: Trajectory) -> Sequence[Step] | str:
        """Turns that do not depend on each other, to be made next; or why the search is over."""


@dataclass(frozen=True)
class Sampled:
    """The first samples, from nothing or from a given kernel; what follows is up to `later`."""

    options: SearchOptions
    start: bool  # a kernel was given

    def next(self, trajectory: Trajectory) -> Sequence[Step] | str:
        made = {turn.branch for turn in trajectory.turns}
        if self.start and GIVEN not in made:
            return [Step(GIVEN, Variation(given=True))]
        shown = tuple(turn.number for turn in trajectory.turns if turn.branch == GIVEN)
        missing = [b for b in range(1, self.options.samples + 1) if b not in made]
        if missing:
            return [Step(branch, self.vary(branch), shown) for branch in missing]
        return self.later(trajectory)

    def vary(self, branch: int) -> Variation:
        raise NotImplementedError

    def later(self, trajectory: Trajectory) -> Sequence[Step] | str:
        raise NotImplementedError

    def seed(self, branch: int, turn: int = 0) -> int:
        return self.options.seed * 4096 + branch * 16 + turn


class CudaPerf(Sampled):
    """Samples at two temperatures; the best of them are refined side by side, up to three times each."""

    def vary(self, branch: int) -> Variation:
        return Variation(_TEMPERATURES[(branch - 1) % len(_TEMPERATURES)], self.seed(branch))

    def later(self, trajectory: Trajectory) -> Sequence[Step] | str:
        firsts: dict[int, Turn] = {}
        for turn in trajectory.turns:
            if turn.branch != GIVEN:
                firsts.setdefault(turn.branch, turn)
        steps = []
        for first in rank(t for t in firsts.values() if t.same_as is None)[:_SEEDS]:
            turns = [t for t in trajectory.turns if t.branch == first.branch]
            if len(turns) <= _REFINEMENTS and not turns[-1].ending:
                variation = Variation(_TEMPERATURES[0], self.seed(first.branch, len(turns)))
                steps.append(Step(first.branch, variation, tuple(t.number for t in turns)))
        return steps or "the best samples are refined; the best turn is kept"


class BestOfN(Sampled):
    """Samples that are meant to differ: in temperature, in seed, and in the way they are told to go."""

    def vary(self, branch: int) -> Variation:
        low, high = _SPREAD
        share = (branch - 1) / max(self.options.samples - 1, 1)
        hint = WAYS[(branch - 1) % len(WAYS)]
        return Variation(round(low + share * (high - low), 3), self.seed(branch), hint)

    def later(self, trajectory: Trajectory) -> Sequence[Step] | str:
        return f"all {self.options.samples} samples are judged; the best turn is kept"


class Evolve(BestOfN):
    """A population. Each generation has half as many children as the population has members; a child has two
    parents among its best, chosen by rank, starts from the better one and sees what both came to."""

    def later(self, trajectory: Trajectory) -> Sequence[Step] | str:
        children = max(self.options.samples // 2, 1)
        made = {turn.branch for turn in trajectory.turns}
        first = self.options.samples + 1  # branch that begins the generation
        while all(branch in made for branch in range(first, first + children)):
            first += children
        if self._fruitless(trajectory, first, children):
            kept = "; the best turn is kept" if trajectory.best else ""
            return f"{PATIENCE} generations found nothing better{kept}"
        alive = self._alive(trajectory, first)
        if not alive:
            return "no sample wrote a candidate"
        missing = [branch for branch in range(first, first + children) if branch not in made]
        return [self._child(trajectory, alive, branch) for branch in missing]

    def _alive(self, trajectory: Trajectory, first: int) -> list[Turn]:
        """The best of what came before this generation, best first; a candidate stands in it once."""
        before = [t for t in trajectory.turns if t.branch < first and t.source and t.same_as is None]
        return rank(before)[: self.options.samples]

    def _child(self, trajectory: Trajectory, alive: Sequence[Turn], branch: int) -> Step:
        chance = Random(f"{self.options.seed}/{branch}")
        weights = list(range(len(alive), 0, -1))
        one, other = (chance.choices(range(len(alive)), weights)[0] for _ in range(2))
        if one == other and len(alive) > 1:
            other = (one + 1) % len(alive)
        better, worse = alive[min(one, other)], alive[max(one, other)]
        mate = worse.number if worse is not better else None
        hint = "Take over what is good in OTHER_CUDA." if mate is not None else ""
        low, high = _SPREAD
        variation = Variation(round(chance.uniform(low, high), 3), self.seed(branch), hint)
        return Step(branch, variation, ancestry(trajectory, better), better.number, mate)

    def _fruitless(self, trajectory: Trajectory, first: int, children: int) -> bool:
        """Whether the best turn is older than the last generations."""
        best = trajectory.best
        generation = (first - self.options.samples - 1) // children  # those that are through
        if generation < PATIENCE:
            return False
        since = first - PATIENCE * children
        return best is None or best.branch < since


def ancestry(trajectory: Trajectory, turn: Turn) -> tuple[int, ...]:
    """The turn and those it came from, oldest first."""
    line = [turn.number]
    while turn.base_turn is not None:
        turn = trajectory.turn(turn.base_turn)
        line.append(turn.number)
    return tuple(reversed(line))


def strategy_of(options: SearchOptions, *, start: bool) -> Strategy:
    match options.strategy:
        case "cudaperf":
            return CudaPerf(options, start)
        case "best_of_n":
            return BestOfN(options, start)
        case "evolve":
            return Evolve(options, start)
        case "single":
            raise ValueError("a single trajectory is no search: agent.loop.run")
