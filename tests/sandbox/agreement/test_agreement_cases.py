"""The suite's kernels in the emulator: with all checks, against references in NumPy."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from suite_runs import CASES, built, outcomes

from sandbox.agreement import bounds
from sandbox.agreement.build import FLAGS, Flags, kernel_names
from sandbox.agreement.case import Case
from sandbox.metrics.launches import add_lines

pytestmark = pytest.mark.usefixtures("jail")
by_name = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
by_flags = pytest.mark.parametrize("flags", list(FLAGS))


def test_the_suite_is_whole() -> None:
    assert len(kernel_names()) >= 60
    assert {case.kernel for case in CASES} == set(kernel_names())
    assert set(built("ordinary").resources) == set(kernel_names())
    assert max(Counter(case.name for case in CASES).values()) == 1
    assert sum(case.reference is not None for case in CASES) >= 150


@by_flags
@by_name
def test_outputs_are_the_references(case: Case, flags: Flags) -> None:
    """Bit for bit where a build may not contract; else within what a card may differ by as well."""
    _, outputs = outcomes(flags)[case.name]
    if case.reference is None:
        assert all(np.any(array.view("u1") != 0xFF) for array in outputs.values())
        return
    wanted = {name: np.ascontiguousarray(array) for name, array in case.reference(case.beginnings()).items()}
    assert {name: array.dtype for name, array in outputs.items()} == {
        name: array.dtype for name, array in wanted.items()
    }
    assert bounds.outputs(case, flags, outputs, wanted).verdict == "ok"


@by_flags
@by_name
def test_the_checks_find_nothing_but_races_on_purpose(case: Case, flags: Flags) -> None:
    result, _ = outcomes(flags)[case.name]
    allowed = {"race"} if case.races else set[str]()
    assert {finding.kind for finding in result.findings} <= allowed, result.findings


@pytest.mark.parametrize(
    ("name", "field", "wanted"),
    [
        ("copy_coalesced", "global_load_sectors", 64 * 4),
        ("load_strided_8", "global_load_sectors", 16 * 32),
        ("load_misaligned_1", "global_load_sectors", 64 * 5),
        ("load_misaligned_8", "global_load_sectors", 64 * 4),
        ("copy_vectors4", "global_store_sectors", 64 * 16),
        ("broadcast", "global_load_sectors", 64),
        ("banks_4_bytes_stride_32", "shared_store_wavefronts", 4 * 32),
        ("banks_4_bytes_stride_3", "shared_store_wavefronts", 4),
        ("banks_1_byte_stride_3", "shared_store_wavefronts", 4),
        ("transpose_conflicts", "shared_load_wavefronts", 9 * 32 * 32),
        ("transpose_padded", "shared_load_wavefronts", 9 * 32),
        ("transpose_swizzled", "shared_load_wavefronts", 9 * 32),
        ("barriers", "barriers", 8 * 4 * 16),
        ("explicit_fma", "flop_fp32", 1024 * 16 * 2),
        ("doubles", "flop_fp64", 1024 * 8 * 2),
        ("adds_and_products", "flop_fp32", 1024 * 4),
        ("half_pairs", "flop_fp16", 1024 * 3),
    ],
)
def test_counts_are_what_the_kernels_are_made_for(name: str, field: str, wanted: int) -> None:
    result, _ = outcomes("ordinary")[name]
    assert getattr(add_lines(result.launches[0].lines), field) == wanted
