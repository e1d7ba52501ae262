"""In the jail: the user's file as a module, with some of its module-level integers replaced.

A failure of the user's code becomes a problem with the line of the user's file that raised.
"""

from __future__ import annotations

import ast
import inspect
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from torch import nn

from sandbox.errors import TaskProblem
from sandbox.tasks.pytorch.messages import FILE
from sandbox.types import Problem

_SEED = 20250711  # the same in every process, so that constants made from random numbers agree


@dataclass(frozen=True)
class Built:
    """`Model(*get_init_inputs())` in eval mode, and what `get_inputs()` gave."""

    model: nn.Module
    inputs: Sequence[Any]

    def run(self, inputs: Sequence[Any] | None = None) -> Any:
        """Forward without gradients, on copies: a module may write into what it is given."""
        given = self.inputs if inputs is None else inputs
        with torch.no_grad():
            return self.model(*torch.utils._pytree.tree_map(_copy, list(given)))


@dataclass(frozen=True)
class UserFile:
    """The parsed file and the integers that its module level assigns literally."""

    tree: ast.Module
    integers: Mapping[str, int]  # "batch_size", or "shape[0]" for an element of a tuple or list

    @classmethod
    def parse(cls, source: str) -> UserFile:
        try:
            tree = ast.parse(source, FILE)
        except SyntaxError as error:
            raise TaskProblem(
                Problem(
                    kind="parse_error",
                    message=f"the file does not parse: {error.msg}",
                    file=FILE,
                    line=error.lineno,
                    column=error.offset,
                )
            ) from None
        return cls(tree, {name: value for name, value, _ in _integers(tree)})

    def execute(self, sizes: Mapping[str, int]) -> ModuleType:
        """Run the file's top level with these integers in place of its own."""
        tree = _Replace({id(node): sizes[name] for name, _, node in _integers(self.tree) if name in sizes})
        module = ModuleType("task")
        module.__file__ = FILE
        with blaming("the file raises when it is imported"):
            exec(compile(tree.visit_copy(self.tree), FILE, "exec"), module.__dict__)
        return module

    def build(self, sizes: Mapping[str, int]) -> Built:
        """Construct the module and its inputs. Raises TaskProblem naming what is missing or what raised."""
        module = self.execute(sizes)
        model_class = getattr(module, "Model", None)
        if not (inspect.isclass(model_class) and issubclass(model_class, nn.Module)):
            classes = [n.name for n in self.tree.body if isinstance(n, ast.ClassDef)]
            raise TaskProblem(
                Problem(
                    kind="no_model",
                    message="the file has no class `Model` that is a torch.nn.Module",
                    hint="call the module to translate `Model`",
                    file=FILE,
                    choices=classes,
                )
            )
        if not callable(getattr(module, "get_inputs", None)):
            raise TaskProblem(
                Problem(
                    kind="no_get_inputs",
                    message="the file has no function `get_inputs()`",
                    hint="add get_inputs() that returns the list of forward's arguments, "
                    "and get_init_inputs() for the constructor's",
                    file=FILE,
                )
            )
        torch.manual_seed(_SEED)
        with blaming("get_init_inputs() raises"):
            init = list(module.get_init_inputs()) if hasattr(module, "get_init_inputs") else []
        with blaming("Model(*get_init_inputs()) raises"):
            model: nn.Module = model_class(*init)
        with blaming("get_inputs() raises"):
            inputs = list(module.get_inputs())
        model.eval()
        return Built(model, inputs)


@contextmanager
def blaming(what: str, kind: str = "raises") -> Iterator[None]:
    """Turn any exception of the user's code into a problem with the last line of the user's own that ran."""
    try:
        yield
    except TaskProblem:
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
            kind = "out_of_memory"
        frames = traceback.extract_tb(error.__traceback__)
        line = next((f.lineno for f in reversed(frames) if f.filename == FILE), None)
        said = (str(error).strip() or "no message").splitlines()[0][:300]
        hint = ""
        if "cuda" in said.lower() or "nvidia" in said.lower():
            hint = "the reference runs on the CPU: leave out .cuda() and device=..."
        elif isinstance(error, ModuleNotFoundError):
            hint = "only torch and Python's standard library can be imported"
        raise TaskProblem(
            Problem(
                kind=kind, message=f"{what}: {type(error).__name__}: {said}", hint=hint, file=FILE, line=line
            )
        ) from None


def _copy(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _integers(tree: ast.Module) -> Iterator[tuple[str, int, ast.expr]]:
    """Module-level `name = 128`, `name = 4 * 1024` and `shape = (64, 256)`: name, value, expression."""
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, value = statement.targets[0], statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            target, value = statement.target, statement.value
        else:
            continue
        if isinstance(target, ast.Name):
            pairs = [(target.id, value)]
            if isinstance(value, ast.Tuple | ast.List):
                pairs = [(f"{target.id}[{i}]", item) for i, item in enumerate(value.elts)]
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple | ast.List):
            pairs = [
                (t.id, v) for t, v in zip(target.elts, value.elts, strict=False) if isinstance(t, ast.Name)
            ]
        else:
            continue
        for name, expression in pairs:
            number = _literal(expression)
            if number is not None:
                yield name, number, expression


def _literal(node: ast.expr) -> int | None:
    """The value of an expression of integer literals, None for anything else."""
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value
        case ast.BinOp(left=left, op=ast.Mult() | ast.Add() | ast.Sub() | ast.FloorDiv() as op, right=right):
            a, b = _literal(left), _literal(right)
            if a is None or b is None:
                return None
            if isinstance(op, ast.FloorDiv):
                return a // b if b else None
            return a * b if isinstance(op, ast.Mult) else a + b if isinstance(op, ast.Add) else a - b
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            a, b = _literal(left), _literal(right)
            return a**b if a is not None and b is not None and 0 <= b <= 40 and abs(a) <= 1024 else None
    return None


class _Replace:
    def __init__(self, values: Mapping[int, int]) -> None:
        self._values = values

    def visit_copy(self, tree: ast.Module) -> ast.Module:
        """The tree with the integers replaced; the original stays as it is."""
        return ast.Module(body=[self._statement(s) for s in tree.body], type_ignores=[])

    def _statement(self, statement: ast.stmt) -> ast.stmt:
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
            return statement
        value = self._expression(statement.value)
        if value is statement.value:
            return statement
        if isinstance(statement, ast.Assign):
            new: ast.stmt = ast.Assign(targets=statement.targets, value=value)
        else:
            new = ast.AnnAssign(
                target=statement.target, annotation=statement.annotation, value=value, simple=statement.simple
            )
        return ast.copy_location(new, statement)

    def _expression(self, value: ast.expr) -> ast.expr:
        if id(value) in self._values:
            return ast.copy_location(ast.Constant(self._values[id(value)]), value)
        if isinstance(value, ast.Tuple | ast.List):
            items = [self._expression(item) for item in value.elts]
            if any(a is not b for a, b in zip(items, value.elts, strict=True)):
                made = (
                    ast.Tuple(items, ast.Load())
                    if isinstance(value, ast.Tuple)
                    else ast.List(items, ast.Load())
                )
                return ast.copy_location(made, value)
        return value
