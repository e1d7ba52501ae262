"""What a model is told of a judgement: what matters, in the order in which it matters, within a budget.

The first error comes first, with its line; repeated and templated noise is folded. Of a wrong result the
first mismatch; of a pass the weak families with their evidence, and the lines that cost most in the weakest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from agent.llm.wire import estimated_tokens
from sandbox.types import Compilation, Evaluation, KernelMetrics, LineMetrics, Metrics
from sandbox.words import named

#: A family that scores this much is no weakness worth a sentence.
FINE = 0.95
_ERRORS = 4
_LONG = 220

#: What nvcc says, and what it nearly always means.
_HINTS: tuple[tuple[str, str], ...] = (
    (
        r'"?(blockDim|gridDim|threadIdx|blockIdx)"? .*(undefined|not.*host|host)|built-in variable',
        "blockDim, gridDim, threadIdx and blockIdx exist in kernels only; in launch, use numbers of your own",
    ),
    (r"undefined reference to .?launch|undefined symbol.*launch|require-defined", "write {prototype}"),
    (
        r"undefined (symbol|reference).*main|multiple definition of .?main",
        "no main is wanted: the judge calls launch",
    ),
    (r'identifier "(u?int\d+_t)" is undefined', "include <stdint.h>"),
    (
        r'identifier "(FLT_MAX|DBL_MAX|INT_MAX|FLT_EPSILON)" is undefined',
        "include <cfloat> or <climits>",
    ),
    (
        r"calling a __host__ function.*from a __(global|device)__",
        "functions that kernels call must be __device__",
    ),
    (r"torch/|ATen|pybind11", "no PyTorch headers: plain CUDA, and pointers as in the prototype"),
)


def observation(evaluation: Evaluation, source: str, *, prototype: str, tokens: int) -> str:
    """The judgement of `source`, in at most about `tokens` tokens."""
    lines = source.split("\n")
    parts = [f"{evaluation.verdict.replace('_', ' ')}: {_folded(evaluation.message)}", *_times(evaluation)]
    if evaluation.verdict == "compile_error" and evaluation.compile is not None:
        parts = ["compile error", *compile_parts(evaluation.compile, lines, prototype)]
    elif evaluation.verdict == "passed" and evaluation.metrics is not None:
        parts += _metrics_parts(evaluation.metrics, lines)
    else:
        parts += _failure_parts(evaluation, lines)
    return within(parts, tokens)


def _times(evaluation: Evaluation) -> list[str]:
    timing = evaluation.timing
    if timing is None:
        return []
    took = timing.candidate_us
    said = [f"takes {took.median:.4g} µs ({took.low:.4g} to {took.high:.4g})"]
    said += [f"{b.name} takes {b.us:.4g} µs: speedup {b.speedup:.2f}" for b in timing.baselines]
    return ["; ".join(said)]


def compilation_observation(
    ok: bool, compilation: Compilation, source: str, *, prototype: str, tokens: int
) -> str:
    """What nvcc said, alone."""
    if not ok:
        return within(["compile error", *compile_parts(compilation, source.split("\n"), prototype)], tokens)
    parts = ["compiles"]
    for kernel in compilation.kernels:
        spills = kernel.spill_store_bytes + kernel.spill_load_bytes
        parts.append(
            f"{_folded(kernel.name)}: {kernel.registers} registers, {kernel.shared_bytes} bytes of static"
            " shared memory" + (f", {spills} bytes spilled" if spills else "")
        )
    warnings = [d for d in compilation.diagnostics if d.severity == "warning"]
    parts += [f"warning, line {d.line}: {_folded(d.message)}" for d in warnings[:2]]
    return within(parts, tokens)


def compile_parts(compilation: Compilation, lines: Sequence[str], prototype: str) -> list[str]:
    errors = [d for d in compilation.diagnostics if d.severity == "error"]
    parts: list[str] = []
    seen: dict[str, int] = {}
    for error in errors:
        shape = re.sub(r'"[^"]*"|\d+', "*", error.message)
        seen[shape] = seen.get(shape, 0) + 1
        if seen[shape] > 1 or len(parts) >= _ERRORS:
            continue
        where = f"line {error.line}: " if error.line else ""
        parts.append(f"{where}{_folded(error.message)}{quoted(lines, error.line)}")
    more = len(errors) - len(parts)
    if more > 0:
        parts.append(f"and {more} more like these")
    if not errors:
        parts.append(_tail(compilation.log))
    # Candidates choose the words of messages: patterns look at a part of bounded length.
    said = "\n".join(d.message[:300] for d in errors[:8]) + "\n" + compilation.log[:4000]
    parts += [
        f"hint: {hint.format(prototype=prototype)}"
        for pattern, hint in _HINTS
        if re.search(pattern, said, re.IGNORECASE)
    ][:2]
    return parts


def _failure_parts(evaluation: Evaluation, lines: Sequence[str]) -> list[str]:
    parts = []
    line = re.search(r"\bline (\d+)", evaluation.message)
    if line:
        parts.append(quoted(lines, int(line.group(1))).lstrip("\n"))
    verification = evaluation.verification
    if verification is not None:
        mismatch = verification.first_mismatch
        if mismatch is not None:
            sizes = named(mismatch.sizes)
            inputs = named(mismatch.inputs)
            parts.append(
                f"first mismatch: {mismatch.place} is {mismatch.got}, expected {mismatch.expected}"
                f" (sizes: {sizes}{'; inputs: ' + inputs if inputs else ''})"
            )
        if verification.draws_passed is not None:
            parts.append(f"{verification.draws_passed} of {verification.draws} draws are right")
        parts += [
            f"{c.name.replace('_', ' ')}: {_folded(c.detail)}" for c in verification.checks if not c.passed
        ]
    if evaluation.plan is not None and evaluation.verdict != "wrong_result":
        parts += [
            f"launched {_folded(launch.kernel)} with grid {launch.grid}, block {launch.block}"
            for launch in evaluation.plan.launches[:3]
        ]
    return [part for part in parts if part]


def _metrics_parts(metrics: Metrics, lines: Sequence[str]) -> list[str]:
    parts = [weak_families(metrics)]
    worst = worst_family(metrics)
    if worst is not None:
        rows = worst_lines(metrics, worst)
        if rows:
            parts.append(f"lines that cost most in {worst.replace('_', ' ')}:")
            parts += [f"  line {n} ({said}): {_code(lines, n)}" for n, said in rows]
    fine = [name.replace("_", " ") for name, score in metrics.families.items() if score >= FINE]
    if fine:
        parts.append(f"nothing to gain in {', '.join(fine)}")
    return [part for part in parts if part]


def weak_families(metrics: Metrics) -> str:
    """The families below FINE, the weakest first, each with its number and evidence."""
    names = list(metrics.families)  # notes stand in the same order
    ranked = sorted(range(len(names)), key=lambda i: metrics.families[names[i]])
    return "\n".join(
        f"{names[i].replace('_', ' ')} {metrics.families[names[i]]:.2f}: "
        + (metrics.notes[i] if i < len(metrics.notes) else "")
        for i in ranked[:3]
        if metrics.families[names[i]] < FINE
    )


def worst_family(metrics: Metrics) -> str | None:
    """The weakest family, None where all are fine."""
    if not metrics.families:
        return None
    name = min(metrics.families, key=lambda family: metrics.families[family])
    return name if metrics.families[name] < FINE else None


_Cost = Callable[[LineMetrics], tuple[float, str]]


def _wasted_sectors(line: LineMetrics) -> tuple[float, str]:
    moved = line.global_load_sectors + line.global_store_sectors
    needed = -(-(line.global_load_bytes + line.global_store_bytes) // 32)
    return float(moved - needed), f"{moved:,} sectors moved, {needed:,} needed"


def _conflicts(line: LineMetrics) -> tuple[float, str]:
    count = line.shared_load_bank_conflicts + line.shared_store_bank_conflicts
    return float(count), f"{count:,} bank conflicts"


def _idle_lanes(line: LineMetrics) -> tuple[float, str]:
    active = line.active_threads_per_warp
    return (
        32 - active
    ) * line.instructions, f"{active:.1f} of 32 threads active, {line.instructions:,} instructions"


def _waiting(line: LineMetrics) -> tuple[float, str]:
    return float(line.barriers + line.atomics), f"{line.barriers:,} barriers, {line.atomics:,} atomics"


def _requests(line: LineMetrics) -> tuple[float, str]:
    sectors = line.global_load_sectors + line.global_store_sectors
    return float(sectors), f"{sectors:,} sectors, {line.flop:,} FLOP, {line.instructions:,} instructions"


def _instructions(line: LineMetrics) -> tuple[float, str]:
    return float(line.instructions), f"{line.instructions:,} instructions"


_COSTS: dict[str, _Cost] = {
    "coalescing": _wasted_sectors,
    "shared_memory": _conflicts,
    "divergence": _idle_lanes,
    "synchronisation": _waiting,
    "intensity": _requests,
    "balance": _instructions,
    "overheads": _requests,
}


def worst_lines(metrics: Metrics, family: str, count: int = 3) -> list[tuple[int, str]]:
    """(line, what it cost) of the lines that cost most in `family`; none where lines say nothing of it."""
    cost = _COSTS.get(family)
    if cost is None:
        return []
    rows = [(line.line, *cost(line)) for kernel in metrics.kernels for line in kernel.lines if line.line > 0]
    rows.sort(key=lambda row: -row[1])
    return [(line, said) for line, amount, said in rows[:count] if amount > 0]


def profile(metrics: Metrics, source: str, *, tokens: int, family: str | None = None) -> str:
    """Kernels and their lines, by what they cost in `family` (else in the weakest)."""
    lines = source.split("\n")
    chosen = family or worst_family(metrics) or "intensity"
    parts = [_kernel_row(kernel) for kernel in metrics.kernels]
    parts.append(f"lines by their cost in {chosen.replace('_', ' ')}:")
    parts += [f"  line {n} ({said}): {_code(lines, n)}" for n, said in worst_lines(metrics, chosen, count=12)]
    return within(parts, tokens)


def _kernel_row(kernel: KernelMetrics) -> str:
    grid, block = ("x".join(map(str, size)) for size in (kernel.grid, kernel.block))
    loads = f"{kernel.global_load_sectors:,} sectors in {kernel.global_load_requests:,} loads"
    stores = f"{kernel.global_store_sectors:,} in {kernel.global_store_requests:,} stores"
    return (
        f"{_folded(kernel.name)} <<<{grid}, {block}>>>: {kernel.instructions:,} warp instructions, {loads}, "
        f"{stores}, "
        f"occupancy {kernel.theoretical_occupancy:.0%} (limited by {kernel.occupancy_limiter}), "
        f"{kernel.active_threads_per_warp:.1f} active threads per warp"
    )


def within(parts: Sequence[str], tokens: int) -> str:
    """As many of the parts, from the first, as fit; the last one that does not is cut."""
    kept: list[str] = []
    left = tokens
    for part in parts:
        size = estimated_tokens(part) + 1
        if size > left:
            if left > 20:
                kept.append(part[: left * 3] + " … (cut)")
            elif kept:
                kept.append("… (more was cut)")
            break
        kept.append(part)
        left -= size
    return "\n".join(kept)


def quoted(lines: Sequence[str], number: int | None) -> str:
    """The source line a message is about, on a line of its own."""
    if number is None or not 1 <= number <= len(lines) or not lines[number - 1].strip():
        return ""
    return f"\n    {number} | {lines[number - 1].strip()[:_LONG]}"


def _code(lines: Sequence[str], number: int) -> str:
    return lines[number - 1].strip()[:120] if 1 <= number <= len(lines) else ""


def _folded(text: str) -> str:
    """Template arguments nobody reads are left out, and long texts cut in the middle."""
    text = _without_arguments(text[:4000].split("detected during")[0].rstrip())
    return text if len(text) <= _LONG else f"{text[: _LONG - 60]} … {text[-50:]}"


def _without_arguments(text: str) -> str:
    """Balanced angle brackets after a name that hold more than 40 characters become <…>."""
    kept, start, depth = "", 0, 0
    opened = 0
    for position, letter in enumerate(text):
        if letter == "<" and (depth or re.match(r"\w", text[position - 1 : position])):
            depth += 1
            opened = opened if depth > 1 else position
        elif letter == ">" and depth and text[position - 1] != "-":
            depth -= 1
            if depth == 0 and position - opened > 40:
                kept += text[start:opened] + "<…>"
                start = position + 1
    return kept + text[start:]


def _tail(log: str) -> str:
    said = [line for line in log.split("\n") if line.strip()]
    return "\n".join(_folded(line) for line in said[-6:])
