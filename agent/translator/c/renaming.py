"""Parameters whose names the emitted code has uses of its own for: `grid`, `blocks`, `max`.

    void scale(int blocks, float *grid)    ->    void scale(int blocks_2, float *grid_2)

Only types count where `launch` is called, so its parameters may be called anything. Locals are renamed when
the function is read (`places.Lowering.fresh`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from pycparser import c_ast


def rename_parameters(function: Any, reserved: Collection[str]) -> dict[str, str]:
    """Renames them throughout a pycparser FuncDef, in place; the new names by the old ones."""
    arguments = function.decl.type.args
    named = [p.name for p in arguments.params if getattr(p, "name", None)] if arguments is not None else []
    taken = {*named, *reserved, *_names(function)}
    renamed: dict[str, str] = {}
    for name in named:
        if name in reserved:
            renamed[name] = next(f"{name}_{i}" for i in range(2, 99) if f"{name}_{i}" not in taken)
            taken.add(renamed[name])
    if renamed:
        _rename(function, renamed)
    return renamed


def function_of(tree: Any, name: str) -> Any:
    """The FuncDef of this name in a pycparser tree."""
    return next(n for n in tree.ext if isinstance(n, c_ast.FuncDef) and n.decl.name == name)


def renamed_text(text: str, renamed: Mapping[str, str]) -> str:
    """An expression or a prototype in the new names."""
    return re.sub(r"[A-Za-z_]\w*", lambda word: renamed.get(word[0], word[0]), text)


def _names(node: Any) -> set[str]:
    found = {node.name} if isinstance(node, c_ast.ID | c_ast.Decl) and node.name else set()
    for _, child in node.children():
        found |= _names(child)
    return found


def _rename(node: Any, renamed: Mapping[str, str]) -> None:
    if isinstance(node, c_ast.ID | c_ast.Decl) and node.name in renamed:
        node.name = renamed[node.name]
    if isinstance(node, c_ast.TypeDecl) and node.declname in renamed:
        node.declname = renamed[node.declname]
    for where, child in node.children():
        if not (isinstance(node, c_ast.StructRef) and where == "field"):
            _rename(child, renamed)
