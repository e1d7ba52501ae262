"""What `bench agent` prints: one row for each agent, and what a paired comparison says of its turns."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

from trainer.intervals import mcnemar, paired_difference, wilson
from webapp.cli.bench_agent import Result


def summary(results: Sequence[Result], turns: int) -> dict[str, Any]:
    """All figures as data. Tasks that cannot be judged count for no agent."""
    unusable = sorted({result.task for result in results if result.unusable})
    counted = [result for result in results if result.task not in unusable]
    agents: dict[tuple[str, str], list[Result]] = {}
    for result in counted:
        agents.setdefault((result.protocol, result.model), []).append(result)
    return {
        "unusable": unusable,
        "agents": [_agent(protocol, model, rows, turns) for (protocol, model), rows in agents.items()],
        "comparisons": list(_comparisons(agents, turns)),
    }


def _agent(protocol: str, model: str, rows: Sequence[Result], turns: int) -> dict[str, Any]:
    best = [turn for turn in (row.best() for row in rows) if turn is not None]
    scores = [turn.score for turn in best if turn.score is not None]
    speedups = [turn.speedup for turn in best if turn.speedup is not None]
    costs = [row.cost for row in rows]
    return {
        "protocol": protocol,
        "model": model,
        "tasks": len(rows),
        "passed_by_turn": [_share(sum(r.passed_by(n) for r in rows), len(rows)) for n in range(1, turns + 1)],
        "kept": sum(row.reason == "kept" for row in rows),
        "score": statistics.fmean(scores) if scores else None,
        "scored": len(scores),
        "speedup": statistics.geometric_mean(speedups) if speedups else None,
        "timed": len(speedups),
        "prompt_tokens": sum(row.prompt_tokens for row in rows),
        "completion_tokens": sum(row.completion_tokens for row in rows),
        "estimated": any(row.estimated for row in rows),
        "cost": sum(c for c in costs if c is not None) if any(c is not None for c in costs) else None,
        "seconds": sum(row.seconds for row in rows),
        "model_seconds": sum(row.model_seconds for row in rows),
    }


def _share(passed: int, of: int) -> dict[str, float]:
    low, high = wilson(passed, of)
    return {"passed": passed, "of": of, "share": passed / of if of else 0.0, "low": low, "high": high}


def _comparisons(agents: dict[tuple[str, str], list[Result]], turns: int) -> Iterator[dict[str, Any]]:
    for (protocol, model), rows in agents.items():
        if turns > 1:
            before = [row.passed_by(1) for row in rows]
            after = [row.passed_by(turns) for row in rows]
            yield _pair(f"{protocol}, turn {turns} against turn 1", model, before, after)
    for (one, first), (other, second) in combinations(agents.items(), 2):
        by_task = {row.task: row for row in first}
        common = [row for row in second if row.task in by_task]
        if common:
            before = [by_task[row.task].passed_by(turns) for row in common]
            after = [row.passed_by(turns) for row in common]
            model = other[1] or one[1]
            yield _pair(f"{other[0]} against {one[0]}, turn {turns}", model, before, after)


def _pair(what: str, model: str, before: list[bool], after: list[bool]) -> dict[str, Any]:
    gained = sum(b and not a for a, b in zip(before, after, strict=True))
    lost = sum(a and not b for a, b in zip(before, after, strict=True))
    difference, low, high = paired_difference(before, after)
    return {
        "what": what,
        "model": model,
        "pairs": len(before),
        "gained": gained,
        "lost": lost,
        "difference": difference,
        "low": low,
        "high": high,
        "p": mcnemar(gained, lost),
    }


def table(said: dict[str, Any], turns: int) -> Iterator[str]:
    heads = ["agent", "tasks", *(f"by turn {n}" for n in range(1, turns + 1)), "kept"]
    heads += ["mean score", "speedup", "tokens in", "tokens out", "cost", "seconds"]
    yield f"| {' | '.join(heads)} |"
    yield f"|{' --- |' * len(heads)}"
    for agent in said["agents"]:
        name = f"{agent['protocol']}, {agent['model']}" if agent["model"] else agent["protocol"]
        tilde = "~" if agent["estimated"] else ""
        cells = [name, agent["tasks"], *map(_cell, agent["passed_by_turn"]), agent["kept"]]
        cells.append("" if agent["score"] is None else f"{agent['score']:.1f} ({agent['scored']})")
        cells.append("" if agent["speedup"] is None else f"{agent['speedup']:.2f} ({agent['timed']})")
        cells += [f"{tilde}{agent['prompt_tokens']:,}", f"{tilde}{agent['completion_tokens']:,}"]
        cells += ["" if agent["cost"] is None else f"{agent['cost']:.4f}", f"{agent['seconds']:.0f}"]
        yield f"| {' | '.join(map(str, cells))} |"
    yield ""
    yield "Shares with 95% Wilson intervals; scores of what passed in the end; seconds of all runs added up."
    for pair in said["comparisons"]:
        yield (
            f"{pair['what']}: {100 * pair['difference']:+.1f} points "
            f"({100 * pair['low']:+.1f} to {100 * pair['high']:+.1f}, paired bootstrap), "
            f"{pair['gained']} gained, {pair['lost']} lost of {pair['pairs']}, McNemar p = {pair['p']:.3g}"
        )
    if said["unusable"]:
        yield f"Cannot be judged, and count for no agent: {', '.join(said['unusable'])}"


def _cell(share: dict[str, float]) -> str:
    low, high = 100 * share["low"], 100 * share["high"]
    return f"{share['passed']:.0f}: {100 * share['share']:.0f}% ({low:.0f} to {high:.0f})"
