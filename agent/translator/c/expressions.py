"""C expressions lowered: typed, pointers resolved to array and offset, side effects put out as statements."""

from __future__ import annotations

from typing import Any

from pycparser import c_ast

from agent.translator.c.library import BUILTIN_CONSTANTS, CLASSIFIERS, FUNCTIONS
from agent.translator.c.places import Places
from agent.translator.c.problems import line_of, unsupported
from agent.translator.c.scope import Array, ConstantName, PointerVar
from agent.translator.c.syntax import (
    Assign,
    Binary,
    Call,
    Cast,
    Cond,
    Decl,
    Expr,
    If,
    Load,
    Num,
    SameArray,
    Unary,
    Var,
    constant,
    mul,
    negate,
    number,
)
from agent.translator.c.types import DOUBLE, FLOAT, INT, LONG, SIZE, VOID, Scalar, common, promote

_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_LOGICAL = ("&&", "||")


class Expressions(Places):
    """The part of lowering that turns pycparser expressions into trees. `Lowering` adds statements."""

    def call_user(self, node: Any, name: str) -> Expr:
        raise NotImplementedError

    # Values
    def value(self, node: Any) -> Expr:
        """A full or partial expression's value."""
        match node:
            case c_ast.Constant():
                return self._constant(node)
            case c_ast.ID():
                return self._name(node)
            case c_ast.ArrayRef():
                return self._load(node, self._subscript(node))
            case c_ast.UnaryOp():
                return self._unary(node)
            case c_ast.BinaryOp():
                return self._binary(node)
            case c_ast.TernaryOp():
                return self._ternary(node)
            case c_ast.Cast():
                return self._cast(node)
            case c_ast.Assignment():
                return self.assignment(node)
            case c_ast.FuncCall():
                return self._call(node)
            case c_ast.ExprList():
                for part in node.exprs[:-1]:
                    self.effect(part)
                return self.value(node.exprs[-1])
            case c_ast.StructRef():
                field = self.field(node)
                if isinstance(field, Array):
                    unsupported(node, f"the array `{field.name}` used as a number")
                return field
            case _:
                unsupported(node, f"the expression {type(node).__name__}: it is not translated")

    def effect(self, node: Any) -> None:
        """An expression statement."""
        if isinstance(node, c_ast.ExprList):
            for part in node.exprs:
                self.effect(part)
            return
        self.value(node)
        self.flush()

    def flush(self) -> None:
        self.out += self.post
        self.post = []

    def _constant(self, node: Any) -> Expr:
        text = node.value
        if node.type in ("float", "double", "long double") or (
            node.type not in ("char",) and any(c in text for c in ".pP") and not text.startswith("'")
        ):
            if text[-1] in "fF" and not text.lower().startswith("0x"):
                return Num(text, FLOAT)
            return Num(text.rstrip("lL"), DOUBLE)
        if node.type == "char":
            return Num(text, INT)
        if node.type == "string":
            unsupported(node, "a string: kernels work on numbers")
        suffix = text[len(text.rstrip("uUlL")) :].lower()
        value = Num(text, INT).value or 0
        if "u" in suffix:
            kind = SIZE if "l" in suffix or value > 0xFFFFFFFF else Scalar("unsigned int")
        else:
            kind = LONG if "l" in suffix or value > 0x7FFFFFFF else INT
        return Num(text, kind)

    def _name(self, node: Any) -> Expr:
        symbol = self.find(node)
        match symbol:
            case Var():
                return symbol
            case ConstantName():
                return symbol.value
            case _:
                unsupported(node, f"the pointer `{node.name}` used as a number")

    # Operators
    def _unary(self, node: Any) -> Expr:
        match node.op:
            case "sizeof":
                return self._sizeof(node)
            case "*":
                return self._load(node, self._subscript(node))
            case "p++" | "p--" | "++" | "--":
                return self._increment(node)
            case "&":
                unsupported(node, "an address used as a number")
            case "!":
                if self.is_pointer(node.expr):
                    return number(0)  # an array the function was given, or allocated, is there
                return negate(self.value(node.expr))
            case op:
                arg = self.value(node.expr)
                if isinstance(arg, Num) and op == "-" and not arg.text.startswith("-"):
                    return Unary("-", arg, promote(arg.type))
                return arg if op == "+" else Unary(op, arg, promote(arg.type))

    def _increment(self, node: Any) -> Expr:
        target = self.value(node.expr)
        if not isinstance(target, Var | Load):
            unsupported(node, "an increment of something that is not a variable")
        change = Assign(target, number(1), "+" if "++" in node.op else "-", line_of(node))
        if node.op.startswith("p"):
            self.post.append(change)
        else:
            self.out.append(change)
        return target

    def _sizeof(self, node: Any) -> Expr:
        operand = node.expr
        if isinstance(operand, c_ast.Typename):
            declared = self.unit.declared(operand.type)
            size: Expr = number(8 if declared.kind == "pointer" else declared.type.size, SIZE)
            for dim in declared.dims if declared.kind == "array" else ():
                size = mul(size, self.value(dim))
            return size
        inner = getattr(operand, "expr", None) or getattr(operand, "name", None)
        if isinstance(operand, c_ast.UnaryOp | c_ast.ArrayRef) and isinstance(inner, c_ast.ID):
            pointer = self.find(inner)
            if isinstance(pointer, PointerVar):  # `sizeof *p`, where p need not point anywhere yet
                return number(pointer.type.size, SIZE)
        symbol = self.find(operand) if isinstance(operand, c_ast.ID) else None
        if isinstance(symbol, Array) and symbol.dims[0] is not None:
            size = number(symbol.type.size, SIZE)
            for known in symbol.dims:
                assert known is not None
                size = mul(size, known)
            return size
        if isinstance(symbol, Array | PointerVar):
            return number(8, SIZE)
        _, value, _ = self.captured(lambda: self.value(operand))
        return number(value.type.size, SIZE)

    def _binary(self, node: Any) -> Expr:
        if node.op in _LOGICAL:
            return self._short_circuit(node)
        if self.is_pointer(node.left) or self.is_pointer(node.right):
            return self._pointer_arithmetic(node)
        left, right = self.value(node.left), self.value(node.right)
        return self.combine(node, node.op, left, right)

    def combine(self, node: Any, op: str, left: Expr, right: Expr) -> Expr:
        if op in _COMPARISONS:
            return Binary(op, left, right, INT)
        if op in ("<<", ">>"):
            return Binary(op, left, right, promote(left.type))
        kind = common(left.type, right.type)
        if op in ("%", "&", "|", "^") and kind.is_float:
            unsupported(node, f"`{op}` on floating-point numbers")
        return Binary(op, left, right, kind)

    def _pointer_arithmetic(self, node: Any) -> Expr:
        left, right = self.place(node.left), self.place(node.right)
        if left is None or right is None:
            if node.op in ("==", "!="):  # against NULL
                return number(0 if node.op == "==" else 1)
            unsupported(node, "this arithmetic on pointers")
        whole = constant(self.flat(left)) == 0 and constant(self.flat(right)) == 0
        moving = {left.array.name, right.array.name} & set(self.aliases)
        if node.op in ("==", "!=") and whole and moving:
            same = SameArray(left.array.name, right.array.name)
            return same if node.op == "==" else Unary("!", same, INT)
        if left.array.name != right.array.name:
            unsupported(node, f"`{node.op}` between pointers into two arrays")
        kind = LONG if node.op == "-" else INT
        return Binary(node.op, self.flat(left), self.flat(right), kind)

    def _short_circuit(self, node: Any) -> Expr:
        left = self.truth(node.left)
        before, right, after = self.captured(lambda: self.truth(node.right))
        if not before and not after:
            known = constant(left)
            if known is not None:
                return right if bool(known) == (node.op == "&&") else left
            return Binary(node.op, left, right, INT)
        result = self.temporary("both" if node.op == "&&" else "either", left, line_of(node))
        self.flush()
        test: Expr = result if node.op == "&&" else negate(result)
        self.out.append(
            If(test, (*before, Assign(result, right, line=line_of(node)), *after), line=line_of(node))
        )
        return result

    def truth(self, node: Any) -> Expr:
        """A condition."""
        if self.is_pointer(node):
            return number(1)
        return self.value(node)

    def _ternary(self, node: Any) -> Expr:
        test = self.truth(node.cond)
        before, then, after = self.captured(lambda: self.value(node.iftrue))
        before_other, other, after_other = self.captured(lambda: self.value(node.iffalse))
        kind = common(then.type, other.type) if then.type != VOID else VOID
        if not (before or after or before_other or after_other):
            return Cond(test, then, other, kind)
        result = Var(self.fresh("chosen"), kind)
        line = line_of(node)
        self.out.append(Decl(result.name, kind, line))
        self.out.append(
            If(
                test,
                (*before, Assign(result, then, line=line), *after),
                (*before_other, Assign(result, other, line=line), *after_other),
                line=line,
            )
        )
        return result

    def _cast(self, node: Any) -> Expr:
        declared = self.unit.declared(node.to_type.type)
        if declared.kind != "scalar":
            unsupported(node, "a pointer cast to another type: the bytes behind it cannot be analysed")
        if declared.type == VOID:
            return self.value(node.expr)
        return Cast(declared.type, self.value(node.expr))

    # Assignment
    def assignment(self, node: Any) -> Expr:
        if self.is_pointer(node.lvalue):
            self.assign_pointer(node)
            return number(0)
        whole = self.struct(node.lvalue)
        if whole is not None:
            source = self.struct(node.rvalue)
            if source is None:
                unsupported(node, f"what `{whole.name}` is set to: not a struct")
            self.copy_struct(node, whole, source)
            return number(0, VOID)
        line = line_of(node)
        value = self.value(node.rvalue)
        target = self.value(node.lvalue)
        if not isinstance(target, Var | Load):
            unsupported(node, "an assignment to something that is not a variable or an element")
        op = node.op[:-1]
        if op and isinstance(target, Load) and any(isinstance(s, Assign) for s in self.post):
            self.out.append(Assign(target, value, op, line))
            return target
        self.out.append(compound(target, value, op, line))
        return target

    def assign_pointer(self, node: Any) -> None:
        raise NotImplementedError

    # Calls
    def _call(self, node: Any) -> Expr:
        name = node.name.name if isinstance(node.name, c_ast.ID) else ""
        if name in self.unit.functions:
            return self.call_user(node, name)
        plain = name.removeprefix("__builtin_")
        if plain in BUILTIN_CONSTANTS and name != plain:
            return BUILTIN_CONSTANTS[plain]
        args = node.args.exprs if node.args is not None else []
        if plain in (
            "memset",
            "memcpy",
            "memmove",
            "free",
            "assert",
            "__assert_fail",
            "expect",
            "unreachable",
        ):
            return self.call_memory(node, plain, args)
        if plain in CLASSIFIERS or plain in ("isinf_sign",):
            return Call(plain.removesuffix("_sign"), tuple(self.value(a) for a in args), INT)
        if plain in FUNCTIONS:
            wanted, kind = FUNCTIONS[plain]
            values = [self.value(a) for a in args]
            if len(values) != len(wanted):
                unsupported(node, f"`{name}` called with {len(values)} arguments")
            converted = tuple(convert(v, t) for v, t in zip(values, wanted, strict=True))
            return Call(plain, converted, kind)
        if plain in ("sqrtl", "expl", "fabsl", "powl", "logl", "sinl", "cosl"):
            unsupported(node, f"`{name}`: CUDA has no long double")
        if plain in ("printf", "fprintf", "puts", "putchar"):
            unsupported(node, f"`{name}`: a kernel's results are what it writes to its arrays, not text")
        if plain in ("malloc", "calloc", "realloc", "alloca"):
            unsupported(node, f"`{name}` here: an allocation must initialise a pointer")
        if plain in ("rand", "srand", "random", "drand48"):
            unsupported(node, f"`{name}`: its hidden state makes every call depend on the one before")
        unsupported(node, f"a call of `{name or 'a function pointer'}`, which is not defined in this file")

    def call_memory(self, node: Any, name: str, args: list[Any]) -> Expr:
        raise NotImplementedError


def compound(target: Var | Load, value: Expr, op: str, line: int) -> Assign:
    """`s = s + v` is put as `s += v`, so that later passes know one form."""
    if not op and isinstance(value, Binary) and value.op in ("+", "-", "*", "&", "|", "^"):
        same_kind = value.type == target.type
        if same_kind and value.left == target:
            return Assign(target, value.right, value.op, line)
        if same_kind and value.right == target and value.op != "-":
            return Assign(target, value.left, value.op, line)
        if same_kind and value.op in "+-":  # (s + a) + b, (s + a) - b: one sum
            inner, signs = value, [(value.op, value.right)]
            while isinstance(inner.left, Binary) and inner.left.op in "+-" and inner.left.type == value.type:
                inner = inner.left
                signs.append((inner.op, inner.right))
            if inner.left == target:
                total: Expr | None = None
                for sign, part in reversed(signs):
                    if total is None:
                        total = part if sign == "+" else Unary("-", part, part.type)
                    else:
                        total = Binary(sign, total, part, common(total.type, part.type))
                assert total is not None
                return Assign(target, total, "+", line)
    return Assign(target, value, op, line)


def convert(value: Expr, kind: Scalar) -> Expr:
    """A value as an argument of this type, with the conversion C makes written out."""
    if value.type == kind:
        return value
    if isinstance(value, Num) and kind == DOUBLE and value.type == INT and value.value is not None:
        return Num(f"{value.value}.0", DOUBLE)
    return Cast(kind, value)
