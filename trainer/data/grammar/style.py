"""How one program is written: everything a reader would call taste, chosen once for each program."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Style:
    indent: str
    braces: Literal["kr", "allman", "function"]  # "function": only a function's brace stands on its own line
    always_braces: bool  # around single statements too
    increment: str  # with {v} for the variable
    declare: Literal["loop", "top"]  # where loop variables are declared
    relation: Literal["<", "<="]
    loop: Literal["for", "while"]
    space: str  # behind `for` and `if`
    subscripts: Literal["flat", "swapped", "shaped", "macro"]  # of arrays with several dimensions
    real: Literal["float", "double"]
    alias: str  # a typedef for it, or ""
    index: Literal["int", "long", "int32_t"]
    compound: bool  # `s += x`, not `s = s + x`
    choose: Literal["if", "ternary", "call"]  # how a maximum is taken
    comments: Literal["none", "block", "line", "rich"]
    order: Literal["sizes_first", "sizes_last", "outputs_first"]
    camel: bool
    const: bool
    restrict: bool
    helper: Literal["static", "static inline"]
    constants: Literal["literal", "define", "const"]


def draw(rng: Random) -> Style:
    """Common habits are common. What must go together, goes together."""
    loop: Literal["for", "while"] = weighted(rng, ("for", 93), ("while", 7))
    declare: Literal["loop", "top"] = weighted(rng, ("loop", 70), ("top", 30))
    return Style(
        indent=weighted(rng, ("    ", 60), ("  ", 25), ("\t", 15)),
        braces=weighted(rng, ("kr", 50), ("function", 30), ("allman", 20)),
        always_braces=rng.random() < 0.5,
        increment=weighted(rng, ("{v}++", 50), ("++{v}", 35), ("{v} += 1", 15)),
        declare="top" if loop == "while" else declare,
        relation=weighted(rng, ("<", 90), ("<=", 10)),
        loop=loop,
        space=weighted(rng, (" ", 85), ("", 15)),
        subscripts=weighted(rng, ("flat", 60), ("shaped", 18), ("swapped", 10), ("macro", 12)),
        real=weighted(rng, ("float", 60), ("double", 40)),
        alias=weighted(rng, ("", 82), ("real", 8), ("real_t", 6), ("scalar", 4)),
        index=weighted(rng, ("int", 84), ("long", 8), ("int32_t", 8)),
        compound=rng.random() < 0.85,
        choose=weighted(rng, ("if", 50), ("ternary", 30), ("call", 20)),
        comments=weighted(rng, ("block", 35), ("line", 20), ("rich", 20), ("none", 25)),
        order=weighted(rng, ("sizes_first", 50), ("sizes_last", 35), ("outputs_first", 15)),
        camel=rng.random() < 0.2,
        const=rng.random() < 0.85,
        restrict=rng.random() < 0.2,
        helper=weighted(rng, ("static", 60), ("static inline", 40)),
        constants=weighted(rng, ("literal", 50), ("define", 30), ("const", 20)),
    )


def weighted(rng: Random, *choices: tuple[T, int]) -> T:
    """One of the values, as often as its weight says."""
    at = rng.randrange(sum(weight for _, weight in choices))
    for value, weight in choices:
        at -= weight
        if at < 0:
            return value
    raise AssertionError("weights are positive")
