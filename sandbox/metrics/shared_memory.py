"""Shared memory: wavefronts its accesses take, against what the same bytes need without bank conflicts.

score = soft(ideal wavefronts / actual wavefronts), loads and stores and all launches added up. relevance =
shared wavefronts / (shared wavefronts + global wavefronts): the share of the SM's memory pipe that shared
accesses take (a global request takes one wavefront per four sectors, at least one). So a kernel that
touches shared memory once is hardly graded on it.

Not applicable when no shared memory is accessed.
"""

from __future__ import annotations

from collections.abc import Sequence

from sandbox.emulator.trace import LineCounts
from sandbox.metrics.finding import Finding, at, counted, number, soft
from sandbox.metrics.launches import MeasuredLaunch, by_line

SECTORS_PER_WAVEFRONT = 4


def shared_wavefronts(counts: LineCounts) -> int:
    return counts.shared_load_wavefronts + counts.shared_store_wavefronts


def global_wavefronts(counts: LineCounts) -> float:
    """An estimate: what the SM's memory pipe spends on global requests that hit."""
    loads = max(counts.global_load_requests, counts.global_load_sectors / SECTORS_PER_WAVEFRONT)
    return loads + max(counts.global_store_requests, counts.global_store_sectors / SECTORS_PER_WAVEFRONT)


def assess(launches: Sequence[MeasuredLaunch]) -> Finding:
    lines = by_line(launches)
    actual = sum(shared_wavefronts(line) for line in lines)
    if not actual:
        return Finding(None, "No shared memory is accessed.")
    ideal = sum(line.shared_load_ideal + line.shared_store_ideal for line in lines)
    other = sum(global_wavefronts(line) for line in lines)
    return Finding(soft(ideal / actual), _note(lines, launches), actual / (actual + other))


def _note(lines: Sequence[LineCounts], launches: Sequence[MeasuredLaunch]) -> str:
    used = max(launch.shared_bytes for launch in launches)
    line = max(lines, key=_conflicts)
    if _conflicts(line) == 0:
        return f"No bank conflicts; {used:,} bytes of shared memory per block."
    load_conflicts = line.shared_load_wavefronts - line.shared_load_ideal
    if 2 * load_conflicts >= _conflicts(line):
        verb, requests, wavefronts = "reads", line.shared_load_requests, line.shared_load_wavefronts
        ideal = line.shared_load_ideal
    else:
        verb, requests, wavefronts = "writes", line.shared_store_requests, line.shared_store_wavefronts
        ideal = line.shared_store_ideal
    return (
        f"{at(line.line)} {verb} shared memory in {counted(wavefronts / requests, 'wavefront')} per request "
        f"({number(ideal / requests)} would do): lanes meet in the same bank. {_cure(wavefronts / ideal)}"
    )


def _conflicts(line: LineCounts) -> int:
    return shared_wavefronts(line) - line.shared_load_ideal - line.shared_store_ideal


def _cure(ways: float) -> str:
    if ways >= 8:
        return "Pad the rows of the array by one element."
    return "Pad or swizzle the array so that the stride between lanes is odd in 4-byte words."
