"""Random arithmetic over given values: well conditioned, never constant, different each time."""

from __future__ import annotations

from collections.abc import Sequence

from trainer.data.grammar.grammar import Grammar

_ATOMS = 24  # characters up to which an operand may stand more than once


def formula(g: Grammar, values: Sequence[str], scalars: Sequence[str] = (), depth: int = 2) -> str:
    """An expression of the program's floating-point type that uses every one of `values`."""
    waiting = [_dressed(g, value, scalars, depth) for value in values]
    g.rng.shuffle(waiting)
    text = waiting.pop()
    while waiting:
        text = _joined(g, text, waiting.pop())
    if g.chance(0.3):
        text = _outer(g, text, scalars)
    return text


def _dressed(g: Grammar, value: str, scalars: Sequence[str], depth: int) -> str:
    """One value with something done to it."""
    text = value
    for _ in range(g.between(0, depth)):
        text = _step(g, text, scalars)
    return text


def _step(g: Grammar, text: str, scalars: Sequence[str]) -> str:
    number = g.number(round(g.rng.uniform(0.1, 3.0), g.between(1, 3)))
    short = len(text) <= _ATOMS
    choice = g.between(0, 11)
    match choice:
        case 0 | 1 if scalars:
            return f"{g.pick(*scalars)} * {factor(text)}"
        case 2:
            return f"{number} * {factor(text)}"
        case 3:
            return f"({text} {g.pick('+', '-')} {number})"
        case 4 if short:
            return f"{factor(text)} * {factor(text)}"
        case 5:
            return g.math("fabs", text)
        case 6:
            return g.math("sqrt", f"{g.math('fabs', text)} + {number}")
        case 7 if short:
            return f"{factor(text)} / ({g.number(1)} + {factor(text)} * {factor(text)})"
        case 8:
            return g.math(g.pick("sin", "cos"), text)
        case 9:
            return g.math("exp", f"-{g.math('fabs', text)}")
        case 10 if scalars:
            return f"({text} {g.pick('+', '-')} {g.pick(*scalars)})"
        case 11 if short:
            return f"({text} > {g.number(0)} ? {text} : {number} * {factor(text)})"
        case _:
            return f"{number} * {factor(text)}"


def _joined(g: Grammar, left: str, right: str) -> str:
    sign = g.weighted(("+", 45), ("-", 30), ("*", 25))
    if sign == "*":
        return f"{factor(left)} * {factor(right)}"
    return f"{left} {sign} {factor(right) if sign == '-' else right}"


def _outer(g: Grammar, text: str, scalars: Sequence[str]) -> str:
    text = text[1:-1] if _enclosed(text) else text
    if scalars and g.chance(0.5):
        return f"{g.pick(*scalars)} * ({text})"
    return f"{g.number(g.pick(0.5, 0.25, 2.0, 1.5, 0.1))} * ({text})"


def factor(text: str) -> str:
    """Parenthesised where it is a sum; products and calls stay."""
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter in "([" and 1) or (letter in ")]" and -1) or 0
        if not depth and letter in "+-?/<>" and (at > 0 or letter == "-"):
            return f"({text})"
    return text


def integer_formula(g: Grammar, values: Sequence[str], depth: int = 2) -> str:
    """The same over unsigned integers: shifts, masks, sums, products. Uses every one of `values`."""
    waiting = list(values)
    g.rng.shuffle(waiting)
    text = waiting.pop()
    steps = [*waiting, *([None] * g.between(1, depth))]
    g.rng.shuffle(steps)
    for operand in steps:
        text = f"({_mixed(g, text, operand) if operand is not None else _turned(g, text)})"
    return text[1:-1] if _enclosed(text) else text


def _mixed(g: Grammar, text: str, operand: str) -> str:
    form = g.pick("{} ^ {}", "{} + {}", "{} - {}", "{} * ({} | 1u)")
    return str(form).format(text, operand)


def _turned(g: Grammar, text: str) -> str:
    """A step with one word alone: a shift onto itself, a rotation, a mask, a constant."""
    turn, word = g.between(1, 31), hex(g.between(0x1000, 0xFFFFFFF))
    if len(text) < 40 and g.chance(0.5):
        return str(g.pick(f"{text} ^ ({text} >> {turn})", f"({text} << {turn}) | ({text} >> {32 - turn})"))
    odd = g.between(3, 65599) | 1
    return str(
        g.pick(f"{text} ^ {word}u", f"{text} + {word}u", f"{text} * {odd}u", f"{text} & 0xf{word[2:]}u")
    )


def _enclosed(text: str) -> bool:
    """Whether the first parenthesis closes at the end."""
    if not text.startswith("("):
        return False
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return at == len(text) - 1
    return False
