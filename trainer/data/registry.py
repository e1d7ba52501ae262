"""All families, and programs by number: program `index` of `seed` is always the same."""

from __future__ import annotations

import functools
import hashlib
import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from trainer.data import families
from trainer.data.grammar import style
from trainer.data.grammar.grammar import Grammar, Sketch

Write = Callable[[Grammar], Sketch]


@dataclass(frozen=True)
class Family:
    """Programs of one kind. `group` is the module's subject, as data cards list it."""

    name: str
    group: str
    write: Write


_FOUND: dict[str, Family] = {}


def family(group: str) -> Callable[[Write], Write]:
    """Registers a function that writes programs of one family, under the function's name."""

    def register(write: Write) -> Write:
        name = write.__name__
        if name in _FOUND:
            raise ValueError(f"two families are called {name}")
        _FOUND[name] = Family(name, group, write)
        return write

    return register


@functools.cache
def all_families() -> tuple[Family, ...]:
    """In order of their names, whatever the order of import."""
    for module in pkgutil.iter_modules(families.__path__):
        importlib.import_module(f"{families.__name__}.{module.name}")
    return tuple(_FOUND[name] for name in sorted(_FOUND))


def family_of(seed: int, index: int) -> Family:
    """Every family once in each round, in an order that the seed and the round decide."""
    found = list(all_families())
    turn, place = divmod(index, len(found))
    Random(_key(seed, "round", turn)).shuffle(found)
    return found[place]


def sketch(family: Family, seed: int, index: int, attempt: int = 0) -> Sketch:
    """Program `index` of this seed; `attempt` counts replacements of duplicates."""
    rng = Random(_key(seed, family.name, index, attempt))
    return family.write(Grammar(rng, style.draw(rng), configurations=rng.randint(2, 4)))


def _key(*parts: object) -> int:
    text = "/".join(map(str, parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
