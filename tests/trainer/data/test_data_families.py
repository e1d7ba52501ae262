"""Every family writes programs that C compilers take without a warning, the same for the same seed."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.cancellation import Cancellation
from sandbox.jail import Bind, run
from sandbox.limits import COMPILE
from sandbox.tasks.c.parse import host_gcc
from trainer.data.duplicates import fingerprint
from trainer.data.generate import Generated
from trainer.data.registry import all_families, family_of, sketch

SEEDS = 20
NAMES = [family.name for family in all_families()]


def test_there_are_families_for_everything_the_data_set_is_about() -> None:
    groups = {family.group for family in all_families()}
    assert len(NAMES) >= 40
    assert groups >= {
        *("element-wise", "reductions", "scans", "stencils", "linear algebra", "dynamic programming"),
        *("strings", "integers and bits", "physics", "sparse", "graphs", "histograms", "search"),
        *("image and signal filters", "tables", "hashing and packets", "sequential"),
        *("models and finance", "pointers and control"),
    }


@pytest.mark.parametrize("family", all_families(), ids=NAMES)
def test_writes_different_programs_for_every_seed_and_the_same_for_one(family) -> None:  # type: ignore[no-untyped-def]
    written = [sketch(family, seed, 0) for seed in range(SEEDS)]
    assert written == [sketch(family, seed, 0) for seed in range(SEEDS)]
    assert len({s.source for s in written}) == SEEDS
    assert len({fingerprint(s.source).exact for s in written}) >= SEEDS // 3  # not only names differ
    for one in written:
        assert len(one.inputs) >= 2  # several configurations
        assert len({i.model_dump_json() for i in one.inputs}) >= 2
        assert (one.decision == "KEEP") == bool(one.why) == (family.group == "sequential")
        assert f"{one.entry}(" in one.source


@pytest.mark.usefixtures("jail")
def test_gcc_takes_them_without_a_warning(tmp_path: Path) -> None:
    """Two programs of each family, in one jail."""
    tmp_path.chmod(0o755)
    names = []
    for family in all_families():
        for seed in (1, 2):
            names.append(f"{family.name}_{seed}.c")
            (tmp_path / names[-1]).write_text(sketch(family, seed, seed).source)
    done = run(
        [host_gcc(), "-std=gnu11", "-O1", "-Wall", "-Werror", "-fsyntax-only", *names],
        binds=[Bind(tmp_path, Path("/tmp/sources"))],
        cwd=Path("/tmp/sources"),
        limits=COMPILE,
        cancel=Cancellation(),
    )
    assert done.ok, done.stderr.decode()[:2000]


def test_a_round_has_every_family_once() -> None:
    found = [family_of(3, index).name for index in range(2 * len(NAMES))]
    assert sorted(found[: len(NAMES)]) == sorted(found[len(NAMES) :]) == NAMES
    assert found[: len(NAMES)] != found[len(NAMES) :]


def test_the_sequence_of_a_seed_is_always_the_same_and_another_seeds_is_not() -> None:
    def first(seed: int, count: int) -> list[str]:
        drafts = Generated(seed).drafts()
        return [next(drafts).id for _ in range(count)]

    assert first(7, 30) == first(7, 40)[:30]
    assert not set(first(7, 30)) & set(first(8, 30))
