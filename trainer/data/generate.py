"""The sequence of drafts that a seed stands for: pure, so that every run and every number of jobs agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from trainer.data import registry
from trainer.data.duplicates import Index, fingerprint
from trainer.data.grammar.grammar import Sketch
from trainer.data.rows import Draft, content_id

#: How often a duplicate is replaced by another program of its family before its place stays empty.
ATTEMPTS = 12


@dataclass
class Generated:
    """Drafts without duplicates, and a count of everything that was left out on the way."""

    seed: int
    held_out: Index = field(default_factory=Index)  # programs that no task may resemble
    counts: Counter[str] = field(default_factory=Counter)
    similar: list[dict[str, str | float]] = field(default_factory=list)  # what resembled a held-out program
    _known: Index = field(default_factory=Index)

    def admit(self, draft: Draft) -> bool:
        """Counts the draft, and whether it is kept."""
        self.counts["written"] += 1
        print_ = fingerprint(draft.source)
        held = self.held_out.find(print_)
        if held is not None:
            self.counts["held_out"] += 1
            self.similar.append(
                {"id": draft.id, "family": draft.family, "like": held[0], "agreement": held[1]}
            )
            return False
        found = self._known.find(print_)
        if found is not None:
            self.counts["exact_duplicate" if found[1] == 1.0 else "near_duplicate"] += 1
            return False
        self._known.add(draft.id, print_)
        self.counts["kept"] += 1
        return True

    def drafts(self) -> Iterator[Draft]:
        """Generated programs, without end."""
        index = 0
        while True:
            draft = self._at(index)
            if draft is not None:
                yield draft
            else:
                self.counts["places_left_empty"] += 1
            index += 1

    def _at(self, index: int) -> Draft | None:
        family = registry.family_of(self.seed, index)
        for attempt in range(ATTEMPTS):
            draft = drafted(registry.sketch(family, self.seed, index, attempt), family, index)
            if self.admit(draft):
                return draft
        return None


def drafted(sketch: Sketch, family: registry.Family, index: int) -> Draft:
    """A sketch as the row it begins."""
    return Draft(
        id=content_id("c", sketch.entry, sketch.source),
        index=index,
        family=family.name,
        group=family.group,
        language="c",
        entry=sketch.entry,
        source=sketch.source,
        inputs=list(sketch.inputs),
        decision=sketch.decision,
        why=sketch.why,
    )
