"""Arithmetic expressions over integer sizes, such as the extent "n * m" or "(n + 31) / 32".

They come from the inputs block, so they are never given to `eval`: a small tree of allowed nodes is walked.
Division and remainder truncate toward zero, as in C.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache

MAX_CHARACTERS = 400
MAX_VALUE = 1 << 62


class ExpressionError(ValueError):
    """The text is no expression over sizes, or it has no value; the message says why."""


def evaluate(text: str, sizes: Mapping[str, int]) -> int:
    """The value of `text`. Raises ExpressionError for unknown names, division by zero and huge values."""
    return _value(_parse(text), sizes)


def names(text: str) -> frozenset[str]:
    """The sizes that `text` mentions. Raises ExpressionError when it does not parse."""
    tree = _parse(text)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return frozenset(n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in called)


@lru_cache(maxsize=1024)
def _parse(text: str) -> ast.expr:
    if len(text) > MAX_CHARACTERS:
        raise ExpressionError(f"longer than {MAX_CHARACTERS} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError(f"{text!r} is not an arithmetic expression") from error
    _check(tree, text)
    return tree


def _check(node: ast.expr, text: str) -> None:
    match node:
        case ast.Constant(value=int()) if not isinstance(node.value, bool):
            return
        case ast.Name():
            return
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            _check(operand, text)
        case ast.BinOp(
            left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() | ast.FloorDiv() | ast.Mod()
        ):
            _check(left, text)
            _check(node.right, text)
        case ast.Call(func=ast.Name(id="min" | "max"), args=[_, *_] as arguments, keywords=[]):
            for argument in arguments:
                _check(argument, text)
        case _:
            raise ExpressionError(f"{text!r} may use only integers, sizes, + - * / % ( ) min and max")


def _value(node: ast.expr, sizes: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int(value)):
            result = value
        case ast.Name(id=name):
            if name not in sizes:
                raise ExpressionError(f"{name!r} is not a size")
            result = int(sizes[name])
        case ast.UnaryOp(op=op, operand=operand):
            inner = _value(operand, sizes)
            result = -inner if isinstance(op, ast.USub) else inner
        case ast.BinOp(left=left, op=op, right=right):
            result = _binary(op, _value(left, sizes), _value(right, sizes))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            values = [_value(argument, sizes) for argument in arguments]
            result = min(values) if name == "min" else max(values)
        case _:
            raise AssertionError("checked when parsed")
    if abs(result) > MAX_VALUE:
        raise ExpressionError("the value does not fit 63 bits")
    return result


def _binary(op: ast.operator, left: int, right: int) -> int:
    match op:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
    if right == 0:
        raise ExpressionError("division by zero")
    quotient = abs(left) // abs(right)
    quotient = quotient if (left < 0) == (right < 0) else -quotient
    return left - quotient * right if isinstance(op, ast.Mod) else quotient
