"""C types, resolved through typedefs to what crosses the device boundary: scalars and flat arrays of
scalars."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pycparser import c_ast

Kind = Literal["scalar", "void", "pointer", "array", "struct", "function", "unknown"]

#: Canonical C spelling (sorted words, "int" and "signed" dropped where they say nothing) -> numpy dtype.
_DTYPES = {
    ("_Bool",): "bool",
    ("char",): "int8",
    ("char", "signed"): "int8",
    ("char", "unsigned"): "uint8",
    ("short",): "int16",
    ("short", "unsigned"): "uint16",
    (): "int32",
    ("unsigned",): "uint32",
    ("long",): "int64",
    ("long", "unsigned"): "uint64",
    ("long", "long"): "int64",
    ("long", "long", "unsigned"): "uint64",
    ("float",): "float32",
    ("double",): "float64",
}
#: How a dtype is written in the prototype of `launch`, where the user's typedefs do not exist.
CUDA_NAMES = {
    "bool": "bool",
    "int8": "signed char",
    "uint8": "unsigned char",
    "int16": "short",
    "uint16": "unsigned short",
    "int32": "int",
    "uint32": "unsigned int",
    "int64": "long long",
    "uint64": "unsigned long long",
    "float32": "float",
    "float64": "double",
}
_KEPT_NAMES = ("size_t", "long", "char")  # names that CUDA C++ knows too, so they stay as the user wrote them


@dataclass(frozen=True)
class CType:
    """One resolved type. `dtype` and `cuda` for scalars; `target` for pointers and arrays."""

    kind: Kind
    dtype: str = ""  # numpy's name
    cuda: str = ""  # as written in CUDA C++
    const: bool = False
    target: CType | None = None
    dim: c_ast.Node | None = None  # arrays: the dimension as written; None for `[]`
    words: str = ""  # as written, for messages

    @property
    def is_integer(self) -> bool:
        return self.kind == "scalar" and not self.dtype.startswith("float")

    @property
    def is_float(self) -> bool:
        return self.kind == "scalar" and self.dtype.startswith("float")

    @property
    def is_address(self) -> bool:
        return self.kind in ("pointer", "array")

    @property
    def element(self) -> CType:
        """The scalar at the bottom of nested arrays and one pointer."""
        return self.target.element if self.target is not None else self


def resolve(node: c_ast.Node, typedefs: Mapping[str, c_ast.Node]) -> CType:
    """`node` is the `type` of a declaration, typename or typedef."""
    match node:
        case c_ast.TypeDecl():
            inner = resolve(node.type, typedefs)
            return _const(inner) if "const" in node.quals else inner
        case c_ast.IdentifierType():
            return _named(node.names, typedefs)
        case c_ast.PtrDecl():
            target = resolve(node.type, typedefs)
            return CType("pointer", target=target, const="const" in node.quals, words=f"{target.words} *")
        case c_ast.ArrayDecl():
            target = resolve(node.type, typedefs)
            return CType("array", target=target, dim=node.dim, words=f"{target.words}[]")
        case c_ast.Enum():
            return CType("scalar", dtype="int32", cuda="int", words="enum")
        case c_ast.Struct() | c_ast.Union():
            return CType("struct", words=f"{type(node).__name__.lower()} {node.name or ''}".strip())
        case c_ast.FuncDecl():
            return CType("function", words="function")
        case c_ast.Typename() | c_ast.Decl() | c_ast.Typedef():
            return resolve(node.type, typedefs)
        case _:
            return CType("unknown", words=type(node).__name__)


def _named(names: list[str], typedefs: Mapping[str, c_ast.Node]) -> CType:
    words = " ".join(names)
    if names == ["void"]:
        return CType("void", words=words)
    if len(names) == 1 and names[0] in typedefs:
        inner = resolve(typedefs[names[0]], typedefs)
        kept = names[0] if names[0] in _KEPT_NAMES else inner.cuda
        return CType(inner.kind, inner.dtype, kept, inner.const, inner.target, inner.dim, words)
    key = sorted(name for name in names if name != "int")
    if "char" not in key:
        key = [name for name in key if name != "signed"]
    dtype = _DTYPES.get(tuple(key))
    if dtype is None:
        return CType("unknown", words=words)
    return CType("scalar", dtype, words if words in _KEPT_NAMES else CUDA_NAMES[dtype], words=words)


def _const(inner: CType) -> CType:
    return CType(inner.kind, inner.dtype, inner.cuda, True, inner.target, inner.dim, inner.words)
