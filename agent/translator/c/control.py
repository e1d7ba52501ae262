"""C statements lowered: conditions, switches, loops, and the forms of counting that become `For`."""

from __future__ import annotations

from typing import Any

from pycparser import c_ast, c_generator

from agent.translator.c.declarations import Declarations
from agent.translator.c.exits import without_continues
from agent.translator.c.headers import header_of, steady, writes_any
from agent.translator.c.problems import line_of, unsupported
from agent.translator.c.scope import StructVar
from agent.translator.c.syntax import (
    Assign,
    Binary,
    Body,
    Break,
    Continue,
    Decl,
    Expr,
    For,
    If,
    Return,
    Swap,
    Switch,
    Var,
    While,
    constant,
    map_expressions,
    negate,
    number,
    sub,
    substitute,
    walk,
    walk_statements,
)
from agent.translator.c.types import INT, Scalar


class Control(Declarations):
    """The part of lowering that knows statements."""

    returned_struct: StructVar | None = None  # where the function that is being inlined puts its result

    def statement_list(self, nodes: list[Any]) -> None:
        self.scopes.append({})
        position = 0
        while position < len(nodes):
            taken = self.swap_at(nodes, position)
            if taken:
                position += taken
                continue
            self.statement(nodes[position])
            position += 1
        self.scopes.pop()

    def body_of(self, node: Any) -> Body:
        """A nested statement, lowered aside."""
        saved, self.out = self.out, []
        pointers = self.pointer_state()
        nodes = (node.block_items or []) if isinstance(node, c_ast.Compound) else [node] if node else []
        self.statement_list(nodes)
        body, self.out = tuple(self.out), saved
        self.check_pointers(node, pointers)
        return body

    def statement(self, node: Any) -> None:
        line = line_of(node)
        match node:
            case c_ast.Decl():
                self.declaration(node)
            case c_ast.DeclList():
                for each in node.decls:
                    self.declaration(each)
            case c_ast.Compound():
                self.statement_list(node.block_items or [])
            case c_ast.If():
                self._if(node)
            case c_ast.For():
                self.scopes.append({})
                self._for(node)
                self.scopes.pop()
            case c_ast.While():
                self._while(node)
            case c_ast.DoWhile():
                self._do(node)
            case c_ast.Switch():
                self._switch(node)
            case c_ast.Break():
                self.out.append(Break(line))
            case c_ast.Continue():
                self.out.append(Continue(line))
            case c_ast.Return() if self.returned_struct is not None:
                source = self.struct(node.expr)
                if source is None:
                    unsupported(node, "what is returned: not a local struct")
                self.copy_struct(node, self.returned_struct, source)
                self.out.append(Return(None, line))
            case c_ast.Return():
                value = self.value(node.expr) if node.expr is not None else None
                self.flush()
                self.out.append(Return(value, line))
            case c_ast.EmptyStatement() | c_ast.Pragma() | c_ast.Typedef():
                if isinstance(node, c_ast.Typedef):
                    self.unit.typedefs[node.name] = node.type
            case c_ast.Goto() | c_ast.Label():
                unsupported(node, "`goto`: jumps have no parallel form")
            case _:
                self.effect(node)

    def _if(self, node: Any) -> None:
        test = self.truth(node.cond)
        self.flush()
        known = constant(test)
        if known is not None:
            chosen = node.iftrue if known else node.iffalse
            if chosen is not None:
                self.statement_list(
                    (chosen.block_items or []) if isinstance(chosen, c_ast.Compound) else [chosen]
                )
            return
        then, other = self.body_of(node.iftrue), self.body_of(node.iffalse)
        if then or other:
            self.out.append(
                If(test, then, other, line_of(node)) if then else If(negate(test), other, (), line_of(node))
            )

    def _while(self, node: Any) -> None:
        if self._countdown_while(node):
            return
        before, test, after = self.captured(lambda: self.truth(node.cond))
        body = self.body_of(node.stmt)
        line = line_of(node)
        if not before and not after:
            self.out.append(While(test, body, line=line))
        else:
            self.out.append(While(number(1), self._leave(before, test, after, line) + body, line=line))

    def _countdown_while(self, node: Any) -> bool:
        """`while (n-- > 0)`: n turns, after which n is -1."""
        var = self._decremented(node.cond)
        if var is None:
            return False
        body = self.body_of(node.stmt)
        if not steady(var, (), body) or any(isinstance(s, Break) for s in walk_statements(body)):
            return self._give_up_countdown(node, var, body)
        turn = Var(self.fresh("turn"), var.type)
        left = sub(sub(var, number(1)), turn)
        body = tuple(map_expressions(s, lambda e: substitute(e, {var.name: left})) for s in body)
        line = line_of(node)
        self.out.append(For(turn, number(0), "<", var, number(1), body, True, line))
        self.out.append(Assign(var, number(-1), line=line))
        return True

    def _give_up_countdown(self, node: Any, var: Var, body: Body) -> bool:
        line = line_of(node)
        test = Binary(
            ">" if isinstance(node.cond, c_ast.BinaryOp) and node.cond.op == ">" else "!=",
            var,
            number(0),
            INT,
        )
        leave = self._leave((), test, (Assign(var, number(1), "-", line),), line)
        self.out.append(While(number(1), leave + body, line=line))
        return True

    def _decremented(self, cond: Any) -> Var | None:
        """The variable of `n--`, `n-- > 0`, `n-- != 0`."""
        step = cond.left if isinstance(cond, c_ast.BinaryOp) and cond.op in (">", "!=") else cond
        if isinstance(cond, c_ast.BinaryOp) and (
            cond.op not in (">", "!=") or constant(self.value(cond.right)) != 0
        ):
            return None
        if isinstance(step, c_ast.UnaryOp) and step.op == "p--" and isinstance(step.expr, c_ast.ID):
            var = self.find(step.expr)
            return var if isinstance(var, Var) else None
        return None

    def _leave(self, before: Body, test: Expr, after: Body, line: int) -> Body:
        """Evaluate a condition with side effects, and break where it fails."""
        if not after:
            return (*before, If(negate(test), (Break(line),), line=line))
        going = Var(self.fresh("going"), Scalar("int"))
        return (
            *before,
            Decl(going.name, going.type, line),
            Assign(going, test, line=line),
            *after,
            If(negate(going), (Break(line),), line=line),
        )

    def _do(self, node: Any) -> None:
        body = self.body_of(node.stmt)
        before, test, after = self.captured(lambda: self.truth(node.cond))
        line = line_of(node)
        if not before and not after:
            if constant(test) == 0 and not any(
                isinstance(s, Break | Continue) for s in walk_statements(body)
            ):
                self.out += body
            else:
                self.out.append(While(test, body, after=True, line=line))
            return
        body = without_continues(body, self.fresh("skipped"))
        self.out.append(While(number(1), body + self._leave(before, test, after, line), line=line))

    def _switch(self, node: Any) -> None:
        value = self.value(node.cond)
        self.flush()
        cases: list[tuple[str | None, Body]] = []
        items = (node.stmt.block_items or []) if isinstance(node.stmt, c_ast.Compound) else [node.stmt]
        for item in items:
            if isinstance(item, c_ast.Case):
                known = self.value(item.expr)
                cases.append(
                    (
                        c_generator.CGenerator().visit(item.expr)
                        if constant(known) is None
                        else str(constant(known)),
                        self.body_of(c_ast.Compound(item.stmts)),
                    )
                )
            elif isinstance(item, c_ast.Default):
                cases.append((None, self.body_of(c_ast.Compound(item.stmts))))
            else:
                unsupported(item, "a statement of a switch outside its cases")
        self.out.append(Switch(value, tuple(cases), line_of(node)))

    # Loops
    def _for(self, node: Any) -> None:
        own: set[str] = set()
        if isinstance(node.init, c_ast.DeclList):
            for each in node.init.decls:
                self.declaration(each)
                symbol = self.scopes[-1].get(each.name)
                if isinstance(symbol, Var):
                    own.add(symbol.name)
        elif node.init is not None:
            self.effect(node.init)
        if not self._countdown(node, own) and not self._counted(node, own):
            self._general(node)

    def _counted(self, node: Any, own: set[str]) -> bool:
        """`for (i = lo; i < bound; i += step)`, where nothing in the body disturbs it."""
        if node.cond is None or node.next is None:
            return False
        before, test, after = self.captured(lambda: self.truth(node.cond))
        steps_before, _, steps_after = self.captured(lambda: self.stepped(node.next))
        steps = (*steps_before, *steps_after)
        if before or after:
            return False
        header = header_of(test, steps)
        if header is None:
            return False
        var, relation, bound, step, others = header
        body = self.body_of(node.stmt)
        if others:
            body = without_continues(body, self.fresh("skipped")) + others
        line = line_of(node)
        if not steady(var, (bound, step), body):
            self._as_while(
                test,
                body if others else without_continues(body, self.fresh("skipped")),
                steps if not others else tuple(s for s in steps if s not in others),
                line,
            )
            return True
        self.out.append(
            self.loop(var, self.start_of(var), relation, bound, step, body, var.name in own, line)
        )
        return True

    def stepped(self, node: Any) -> Expr:
        """A loop's step, for its effect."""
        self.effect(node)
        return number(0)

    def loop(
        self, var: Var, lo: Expr, relation: str, bound: Expr, step: Expr, body: Body, own: bool, line: int
    ) -> For:
        if own and self.out and isinstance(self.out[-1], Decl) and self.out[-1].name == var.name:
            self.out.pop()
        return For(var, lo, relation, bound, step, body, own, line)

    def start_of(self, var: Var) -> Expr:
        """The value that was just assigned to the loop's variable, taken out of the statements before it."""
        for position in range(len(self.out) - 1, max(len(self.out) - 6, -1), -1):
            stmt = self.out[position]
            if isinstance(stmt, Assign) and stmt.target == var and not stmt.op:
                between = self.out[position + 1 :]
                names = {n.name for n in walk(stmt.value) if isinstance(n, Var)} | {var.name}
                if any(isinstance(s, Assign) and writes_any(s, names) for s in between):
                    break
                if any(not isinstance(s, Assign | Decl) for s in between):
                    break
                if any(n == var for s in between if isinstance(s, Assign) for n in walk(s.value)):
                    break
                del self.out[position]
                return stmt.value
            if not isinstance(stmt, Assign | Decl):
                break
        return self.temporary(var.name + "_start", var)

    def _countdown(self, node: Any, own: set[str]) -> bool:
        """`for (i = n; i-- > 0;)`."""
        if node.next is not None or node.cond is None:
            return False
        var = self._decremented(node.cond)
        if var is None:
            return False
        body = self.body_of(node.stmt)
        if not steady(var, (), body):
            return False
        lo = sub(self.start_of(var), number(1))
        self.out.append(self.loop(var, lo, ">=", number(0), number(-1), body, var.name in own, line_of(node)))
        return True

    def _general(self, node: Any) -> None:
        before, test, after = (
            self.captured(lambda: self.truth(node.cond)) if node.cond is not None else ((), number(1), ())
        )
        body = without_continues(self.body_of(node.stmt), self.fresh("skipped"))
        steps: Body = ()
        if node.next is not None:
            steps_before, _, steps_after = self.captured(lambda: self.stepped(node.next))
            steps = (*steps_before, *steps_after)
        if before or after:
            body = self._leave(before, test, after, line_of(node)) + body
            test = number(1)
        self._as_while(test, body, steps, line_of(node))

    def _as_while(self, test: Expr, body: Body, steps: Body, line: int) -> None:
        self.out.append(While(test, body + steps, line=line))

    def pointer_swap(self, left: str, right: str, line: int) -> None:
        self.out.append(Swap(left, right, line))
