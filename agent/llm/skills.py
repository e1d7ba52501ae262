"""Skills: short pages on how to make a kernel right and good, each with an example that a test judges.

The model sees the index and opens what it needs. Pages are `agent/skills/*.md`, with a head that names the
page, says when to read it, and lists the metric families it cures.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from pydantic import Field

from sandbox.targets import TARGETS, Target
from sandbox.types import Data

FOLDER = Path(__file__).resolve().parents[1] / "skills"
_HEAD = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_BLOCK = re.compile(r"^```(\w+)(?: +(\w+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Example(Data):
    """A candidate of the page, and what the judge must say of it."""

    source: str
    verdict: str


class Skill(Data):
    name: str
    description: str  # when to read it, one line
    families: list[str]
    text: str  # Markdown; may hold {targets}
    task: str = ""  # the C function of its examples; pages of a profile's own have none
    examples: list[Example] = Field(default_factory=list)

    def page(self, target: str) -> str:
        return self.text.replace("{targets}", _facts(TARGETS[target]))


class Means(Data):
    """What a language model may use: which tools, and pages of its users' own beside ours."""

    tools: list[str] | None = None  # None: all
    skills: list[Skill] = Field(default_factory=list)


def pages(own: Sequence[Skill]) -> dict[str, Skill]:
    """Ours and its users' own, which come first and may replace one of ours."""
    return {skill.name: skill for skill in own} | {
        name: skill for name, skill in skills().items() if all(name != it.name for it in own)
    }


@cache
def skills() -> dict[str, Skill]:
    """All pages, by name."""
    found = (parse(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.md")))
    return {skill.name: skill for skill in found}


def parse(text: str) -> Skill:
    """Raises ValueError for a page without a head or a task."""
    head = _HEAD.match(text)
    if head is None:
        raise ValueError("a skill begins with a head between --- lines")
    fields = dict(re.findall(r"^(\w+):[ \t]*(.*)$", head.group(1), re.MULTILINE))
    body = text[head.end() :].strip()
    blocks = _BLOCK.findall(body)
    tasks = [source for language, _, source in blocks if language == "c"]
    if len(tasks) != 1:
        raise ValueError("a skill has exactly one ```c block, the task of its examples")
    return Skill(
        name=fields["name"],
        description=fields["description"],
        families=[family.strip() for family in fields.get("families", "").split(",") if family.strip()],
        text=body,
        task=tasks[0],
        examples=[
            Example(source=source, verdict=verdict or "passed")
            for language, verdict, source in blocks
            if language == "cuda"
        ],
    )


def index(own: Sequence[Skill] = ()) -> str:
    """One line a page, for the prompt."""
    return "\n".join(f"- {skill.name}: {skill.description}" for skill in pages(own).values())


def known_families() -> list[str]:
    """The metric families that our pages are about."""
    return sorted({family for skill in skills().values() for family in skill.families})


def for_family(family: str, own: Sequence[Skill] = ()) -> Skill | None:
    """The page that is about a weak family first of all; its users' own before ours."""
    fitting = [skill for skill in pages(own).values() if family in skill.families]
    return min(fitting, key=lambda skill: skill.families.index(family), default=None)


def search(words: Sequence[str], own: Sequence[Skill] = ()) -> list[Skill]:
    """Pages with any of the words, the fitting ones first: a name counts eight times, a head four times."""

    def weight(skill: Skill) -> int:
        head, body = (
            f"{skill.name} {skill.description} {' '.join(skill.families)}".lower(),
            skill.text.lower(),
        )
        return sum(
            8 * (word in skill.name) + 4 * (word in head) + (word in body)
            for word in {w.lower() for w in words}
        )

    weighed = [(weight(skill), skill) for skill in pages(own).values()]
    return [skill for amount, skill in sorted(weighed, key=lambda pair: -pair[0]) if amount > 0]


def _facts(target: Target) -> str:
    kib = 1024
    return (
        f"{target.arch} ({target.product}): {target.sm_count} SMs with {target.max_warps_per_sm} warps, "
        f"{target.max_blocks_per_sm} blocks, {target.registers_per_sm:,} registers and "
        f"{target.shared_bytes_per_sm // kib} KB of shared memory. A block may have "
        f"{target.default_shared_bytes_per_block // kib} KB of it, and up to "
        f"{target.max_shared_bytes_per_block // kib} KB with leave. "
        f"L2 {target.l2_bytes // kib**2} MB, memory {target.dram_bandwidth / 1e12:.2f} TB/s; "
        f"peaks {target.peak_fp16 / 1e12:.0f} (fp16), {target.peak_fp32 / 1e12:.0f} (fp32) and "
        f"{target.peak_fp64 / 1e12:.1f} (fp64) TFLOP/s on the ordinary cores."
    )


def hardware(target: str) -> str:
    """The GPU that is judged for, in a few sentences."""
    return _facts(TARGETS[target])
