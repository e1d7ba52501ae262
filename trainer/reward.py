"""Rewards: pure functions of an evaluation, one formula each.

A verdict that is not the candidate's doing (Kernelwright's own fault, a degenerate task, a judgement that
never finished) has no reward at all: None, never a number, so that nobody learns from the judge's failures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sandbox.types import Evaluation, Reward, Timing, Verification

DOES_NOT_COMPILE = -3.0
SPEEDUP_FLOOR, SPEEDUP_CAP = -0.5, 4.0  # of log2(speedup): a slow-down to 0.7, a speedup of 16
STRUCTURE_WEIGHT = 0.2
VARIATION_WEIGHT = 0.5
KEEP_BONUS = 0.5
FASTER = 1.05  # "more than 5% faster"
GAMMA = 0.4

# What the reference is, in order of preference, where several baselines were timed.
REFERENCE_BASELINES = ("eager", "c", "torch.compile")


def is_judged(evaluation: Evaluation) -> bool:
    """True when the verdict is about the candidate, so that a reward means something. A time that nobody
    believes waits for a person's look."""
    if evaluation.timing is not None and evaluation.timing.implausible:
        return False
    return evaluation.verdict == "passed" or evaluation.fault == "candidate"


def pass_rate(verification: Verification | None, *, passed: bool) -> float:
    """draws passed / draws where the judge counted them, else 1 when everything passed and 0 when not.

    A candidate that passes every draw but breaks another rule (a guard byte, an input changed) has 0.
    """
    if passed:
        return 1.0
    if verification is None or verification.draws_passed is None or not verification.draws:
        return 0.0
    if verification.draws_passed >= verification.draws:
        return 0.0
    return verification.draws_passed / verification.draws


def structure_term(score: float) -> float:
    """s = 2 * score / 100 - 1: the structural score (0..100) on [-1, 1]."""
    return 2 * min(max(score, 0.0), 100.0) / 100 - 1


def speedup_term(speedup: float) -> float:
    """clamp(log2(t_ref / t_cand), -0.5, 4)."""
    return min(max(math.log2(speedup), SPEEDUP_FLOOR), SPEEDUP_CAP)


def variation(timing: Timing) -> float:
    """cv: standard deviation over mean of the candidate's timings; 0 where it was not recorded."""
    return timing.candidate_cv or 0.0


def unified(
    evaluation: Evaluation, *, weight: float = STRUCTURE_WEIGHT, structure: float | None = None
) -> float:
    """-3 when it does not compile; else c = -2 * (1 - pass_rate), and c alone unless all pass; then
    c + clamp(log2(t_ref / t_cand), -0.5, 4) + weight * s - 0.5 * cv.

    `structure` is s in [-1, 1], of a ranker; without one the structural score is mapped onto it. Where
    nothing was timed, the speedup and cv terms are 0. Raises ValueError for an evaluation that says nothing
    of the candidate, and for `structure` out of range.
    """
    if not is_judged(evaluation):
        raise ValueError(f"{evaluation.verdict} is no verdict on the candidate; it has no reward")
    if structure is not None and not -1 <= structure <= 1:
        raise ValueError(f"the structure term must lie in [-1, 1], not {structure}")
    if evaluation.verdict == "compile_error":
        return DOES_NOT_COMPILE
    passed = evaluation.verdict == "passed"
    correctness = -2.0 * (1.0 - pass_rate(evaluation.verification, passed=passed))
    if not passed:
        return correctness
    reward = correctness + weight * _structure(evaluation, structure)
    speedup = reference_speedup(evaluation.timing)
    if evaluation.timing is not None and speedup is not None:
        reward += speedup_term(speedup) - VARIATION_WEIGHT * variation(evaluation.timing)
    return reward


def keep(pass_rate_of_source: float) -> float:
    """c + 0.5 * pass_rate: a program that is rightly left sequential; c = -2 * (1 - pass_rate)."""
    return -2.0 * (1.0 - pass_rate_of_source) + KEEP_BONUS * pass_rate_of_source


def milestone(evaluation: Evaluation) -> int | None:
    """-1 not correct; 1 correct; 2 more than 5% faster than eager; 3 than eager and torch.compile.

    "Faster" is the lower end of the measured interval. None where a correct candidate was not timed, or the
    verdict says nothing of the candidate.
    """
    if not is_judged(evaluation):
        return None
    if evaluation.verdict != "passed":
        return -1
    if evaluation.timing is None:
        return None
    low = {baseline.name: baseline.speedup_low for baseline in evaluation.timing.baselines}
    if low.get("eager", 0.0) <= FASTER:
        return 1
    return 3 if low.get("torch.compile", 0.0) > FASTER else 2


def turn_returns(rewards: Sequence[float], gamma: float = GAMMA) -> list[float]:
    """Return of turn i: sum over t >= i of gamma^(t - i) * r_t."""
    returns: list[float] = []
    ahead = 0.0
    for reward in reversed(rewards):
        ahead = reward + gamma * ahead
        returns.append(ahead)
    return returns[::-1]


def terminal_returns(rewards: Sequence[float]) -> list[float]:
    """Every turn gets the last turn's reward."""
    return [rewards[-1]] * len(rewards) if rewards else []


def attach(evaluation: Evaluation) -> Evaluation:
    """A copy with `reward` filled in; None where the verdict says nothing of the candidate."""
    reward = None
    if is_judged(evaluation):
        reward = Reward(unified=unified(evaluation), milestone=milestone(evaluation))
    return evaluation.model_copy(update={"reward": reward})


def reference_speedup(timing: Timing | None) -> float | None:
    """t_ref / t_cand of the baseline that stands for the user's own program; None where nothing was timed."""
    if timing is None or not timing.baselines:
        return None
    by_name = {baseline.name: baseline.speedup for baseline in timing.baselines}
    name = next((name for name in REFERENCE_BASELINES if name in by_name), timing.baselines[0].name)
    return by_name[name]


def _structure(evaluation: Evaluation, structure: float | None) -> float:
    if structure is not None:
        return structure
    return structure_term(evaluation.score) if evaluation.score is not None else 0.0
