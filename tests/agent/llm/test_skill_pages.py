"""Every example of every skill is what its page says it is: the judge decides."""

from __future__ import annotations

import re

import pytest

from agent.llm.skills import for_family, index, parse, search, skills
from sandbox import client
from sandbox.cancellation import Cancellation
from sandbox.metrics.measure import WEIGHTS
from sandbox.targets import TARGETS
from sandbox.tasks.load import load_task

EXAMPLES = [
    pytest.param(skill.task, example.source, example.verdict, id=f"{skill.name}-{number}")
    for skill in skills().values()
    for number, example in enumerate(skill.examples, 1)
]


@pytest.mark.usefixtures("jail")
@pytest.mark.parametrize(("task", "source", "verdict"), EXAMPLES)
def test_an_example_is_what_its_page_says(task: str, source: str, verdict: str) -> None:
    cancel = Cancellation()
    loaded = load_task(task, filename="skill.c", entry=None, inputs=None, cancel=cancel)
    evaluation = client.evaluate(loaded, source, backend="emulator", target="sm_90", cancel=cancel)
    assert evaluation.verdict == verdict, evaluation.message


def test_every_page_has_an_example_that_passes_and_a_line_in_the_index() -> None:
    for skill in skills().values():
        assert any(example.verdict == "passed" for example in skill.examples), skill.name
        assert f"- {skill.name}: {skill.description}" in index()
        assert len(skill.page("sm_90")) < 3600, f"{skill.name} is too long to be opened in a small context"


def test_every_family_has_a_page() -> None:
    for family in WEIGHTS:
        skill = for_family(family)
        assert skill is not None, family
        assert set(skill.families) <= set(WEIGHTS)


def test_pages_that_name_a_skill_name_one_that_is_there() -> None:
    for skill in skills().values():
        for named in re.findall(r"\(skill: (\w+)\)", skill.text):
            assert named in skills()


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_the_facts_are_those_of_the_target(target: str) -> None:
    page = skills()["architectures"].page(target)
    assert f"{TARGETS[target].sm_count} SMs" in page
    assert "{targets}" not in page


def test_search_finds_by_what_a_page_is_about() -> None:
    assert search(["bank", "conflicts"])[0].name == "shared_memory"
    assert search(["histogram"])[0].name == "atomics"
    assert search(["zzz"]) == []


def test_a_page_without_a_task_is_refused() -> None:
    with pytest.raises(ValueError, match="exactly one"):
        parse("---\nname: x\ndescription: y\nfamilies:\n---\nno code\n")
