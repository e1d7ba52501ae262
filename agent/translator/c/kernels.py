"""The direct version of each kind of kernel, and what every version shares: signatures, indices, launches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from agent.translator.c.dataflow import arrays_declared, arrays_used, arrays_written, flow, names_read
from agent.translator.c.emit import Dims, Printer, private_scalars
from agent.translator.c.frontend import Function
from agent.translator.c.normalise import hull, trip_count
from agent.translator.c.schedules import Choice, default_block
from agent.translator.c.stage_code import own_names, whole_body
from agent.translator.c.stages import Kernel, MapStage, Plan, SerialStage
from agent.translator.c.syntax import (
    ArrayDecl,
    Assign,
    Binary,
    Body,
    Cast,
    Decl,
    Expr,
    For,
    If,
    Stmt,
    Var,
    While,
    add,
    all_expressions,
    blocks,
    constant,
    expressions,
    mul,
    negate,
    number,
    sub,
    walk_statements,
    with_blocks,
)
from agent.translator.c.types import INT, Scalar

AXES = "xyz"


@dataclass(frozen=True)
class Buffer:
    """Device memory that a kernel wants for itself, allocated once by `launch`."""

    name: str
    type: str
    count: str


@dataclass
class KernelCode:
    """One kernel: its definitions and the lines of `launch` that start it."""

    text: str
    launch: list[str]
    buffers: list[Buffer] = field(default_factory=list)
    helpers: list[str] = field(default_factory=list)  # names of helpers in `helpers.py`


@dataclass
class Context:
    """What emission knows of the function."""

    function: Function
    plan: Plan
    dims: Dims
    elements: Mapping[str, Scalar]  # element types of all arrays
    tables: frozenset[str]
    extents: dict[str, str] = field(default_factory=dict)  # lengths of parameter arrays, as host text

    @staticmethod
    def of(function: Function, plan: Plan, body: Body) -> Context:
        dims = {a.name: a.dims for a in function.arrays.values()}
        elements = {a.name: a.type for a in function.arrays.values()}
        for table in function.tables:
            dims[table.array.name], elements[table.array.name] = table.array.dims, table.array.type
        for alias, base in function.aliases.items():
            dims[alias], elements[alias] = (None,), elements.get(base, INT)
        for stmt in walk_statements(body):
            if isinstance(stmt, ArrayDecl):
                dims[stmt.name], elements[stmt.name] = stmt.dims, stmt.type
        for alias, base in function.aliases.items():
            elements[alias] = elements[base]
        return Context(function, plan, dims, elements, frozenset(t.array.name for t in function.tables))

    def printer(self, body: Body, atomics: frozenset[str] = frozenset(), exact: bool = False) -> Printer:
        local = {s.name for s in walk_statements(body) if isinstance(s, ArrayDecl)}
        return Printer(self.dims, self.tables | local, atomics, exact=exact)

    def host_printer(self) -> Printer:
        return Printer(self.dims, frozenset())

    def free(self, *wanted: str) -> list[str]:
        """Names for the kernel's own use, numbered where the source has them already."""
        taken = {*self.function.taken, *self.plan.types, *self.elements}
        found: list[str] = []
        for name in wanted:
            count, chosen = 2, name
            while chosen in taken:
                chosen, count = f"{name}_{count}", count + 1
            taken.add(chosen)
            found.append(chosen)
        return found

    def scalar_order(self, names: Iterable[str]) -> list[str]:
        """The source's order: parameters first."""
        known = list(self.plan.types)
        return sorted(names, key=lambda n: known.index(n) if n in known else len(known))

    def array_order(self, names: Iterable[str]) -> list[str]:
        known = list(self.elements)
        return sorted(names, key=lambda n: known.index(n) if n in known else len(known))


@dataclass
class Signature:
    """What a kernel is given."""

    parameters: list[str]
    arguments: list[str]
    prologue: list[str]  # values that are fetched first
    fetched: list[str]  # of those, scalars that live in device memory

    def text(self) -> str:
        return ", ".join(self.parameters)

    def call(self) -> str:
        return ", ".join(self.arguments)


def signature(
    context: Context, body: Body, stage: Kernel, own: Iterable[str] = (), stores: Iterable[str] = ()
) -> Signature:
    """For a kernel that runs `body`. `own`: scalars it defines itself; `stores`: those it writes back."""
    total = flow(body)
    tables = context.tables
    kept = frozenset(stores) - total.definite  # left as they are on some ways through the code
    wanted = (total.exposed | kept) - tables - frozenset(own)
    host = [n for n in context.scalar_order(wanted) if n in context.plan.host]
    device = [n for n in context.scalar_order(wanted) if n not in context.plan.host]
    used = arrays_used(body) - arrays_declared(body) - tables
    used |= extents_named(context, used | arrays_declared(body))[1]
    host_more = extents_named(context, used)[0]
    host = context.scalar_order({*host, *(n for n in host_more if n in context.plan.host)})
    written = arrays_written(body)
    parameters = [f"{context.plan.types[n].type.name} {n}" for n in host]
    arguments = list(host)
    for array in context.array_order(used):
        const = "" if array in written else "const "
        parameters.append(f"{const}{context.elements[array].name} *__restrict__ {array}")
        arguments.append(array)
    prologue = [f"if ({'!' if g.holds else ''}scalars->{g.flag.name}) return;" for g in stage.guards]
    for name in device:
        const = "" if name in total.written else "const "
        prologue.append(f"{const}{context.plan.types[name].type.name} {name} = scalars->{name};")
    if device or list(stores) or stage.guards:
        parameters.append(f"{'' if list(stores) else 'const '}Scalars *__restrict__ scalars")
        arguments.append("scalars")
    return Signature(parameters, arguments, prologue, device)


def extents_named(context: Context, arrays: Iterable[str]) -> tuple[set[str], set[str]]:
    """Scalars (and, never yet, arrays) that the extents of shaped arrays mention."""
    names: set[str] = set()
    for array in arrays:
        for extent in context.dims.get(array, ())[1:]:
            if extent is not None:
                names |= names_read((extent,))
    return names, set()


# Indices ---------------------------------------------------------------------------------------------------
def plain(loop: For) -> bool:
    """Counts up by one."""
    return not loop.down and constant(loop.step) == 1


def index_at(loop: For, position: Expr) -> Expr:
    """The loop's variable at the given iteration."""
    if loop.down:
        step = constant(loop.step)
        stride: Expr = number(-step) if step is not None else loop.step
        return sub(loop.lo, mul(position, stride))
    return add(loop.lo, mul(position, loop.step))


def index_lines(printer: Printer, loop: For, position: str) -> tuple[list[str], str]:
    """(lines that define the loop's variable from a count of iterations, the test that it is outside)."""
    kind = loop.var.type
    where = Var(position, INT)
    if plain(loop):
        value = printer.expr(add(loop.lo, where))
        outside = negate(Binary(loop.relation if loop.relation != "!=" else "<", loop.var, loop.bound, INT))
        return [f"const {kind.name} {loop.var.name} = {value};"], printer.expr(outside, 2)
    turn = f"{loop.var.name}_turn"
    lines = [
        f"const int {turn} = {position};",
        f"const {kind.name} {loop.var.name} = {printer.expr(index_at(loop, Var(turn, INT)))};",
    ]
    return lines, f"{turn} >= {printer.expr(trip_count(loop), 8)}"


def wide(loop: For) -> bool:
    return loop.var.type.size == 8


def thread_position(axis: str, loop: For, per_thread: int = 1) -> str:
    cast = "(long long)" if wide(loop) else ""
    return f"{cast}blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis}"


def axes(dims: tuple[For, ...], order: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Which dims stand along x, y and z; more than three share z, the outermost of them slowest."""
    chosen = order or tuple(range(len(dims)))
    if len(chosen) <= 3:
        return [(d,) for d in chosen]
    return [(chosen[0],), (chosen[1],), tuple(sorted(chosen[2:]))]


def most(loop: For, dims: Iterable[For]) -> Expr:
    """Iterations of a dim, over all of the others that its bounds depend on."""
    named = names_read((loop.lo, loop.bound, loop.step))
    outer = [d for d in dims if d is not loop and d.var.name in named]
    found = hull(loop, outer) if outer else trip_count(loop)
    assert found is not None, "only dims with a known hull become dims"
    return found


def product(context: Context, group: Iterable[For], dims: Iterable[For]) -> str:
    """Points of a group of dims, as host text."""
    chosen, every = list(group), list(dims)
    total: Expr | None = None
    for dim in chosen:
        trips = most(dim, every)
        if total is None:
            total = Cast(Scalar("long long"), trips) if len(chosen) > 1 and constant(trips) is None else trips
        else:
            total = mul(total, trips)
    assert total is not None
    return context.host_printer().expr(total)


def nonempty(context: Context, dims: Iterable[For]) -> str:
    """The test that every loop runs at all."""
    printer = context.host_printer()
    every = list(dims)
    parts: list[str] = []
    for dim in every:
        trips = constant(trip_count(dim))
        if trips is not None and trips > 0:
            continue
        depends = not names_read((dim.lo, dim.bound)).isdisjoint({d.var.name for d in every})
        if depends or (dim.down and not dim.var.type.signed):
            parts.append(printer.expr(Binary(">", most(dim, every), number(0), INT), 3))
            continue
        relation = (
            "<" if dim.relation == "!=" and not dim.down else ">" if dim.relation == "!=" else dim.relation
        )
        test = Binary(relation, dim.lo, dim.bound, INT)
        if constant(dim.lo) == 0 and relation == "<":
            test = Binary(">", dim.bound, number(0), INT)
        parts.append(printer.expr(test, 3))
    return " && ".join(dict.fromkeys(parts))


def when_nonempty(context: Context, dims: Iterable[For], lines: list[str]) -> list[str]:
    test = nonempty(context, dims)
    if not test:
        return ["{", *("    " + line for line in lines), "}"]
    return [f"if ({test}) {{", *("    " + line for line in lines), "}"]


# Thread code -----------------------------------------------------------------------------------------------
def prepared(context: Context, body: Body, given: Iterable[str]) -> Body:
    """The code with a declaration for every private scalar, each where it is first needed.

    `given` are the names that the kernel has from elsewhere.
    """
    declared = {s.name for s in walk_statements(body) if isinstance(s, Decl)}
    known = declared | set(given) | flow(body).exposed
    missing = private_scalars(body, context.plan.types, frozenset(known))
    return tidy((*(Decl(v.name, v.type) for v in missing), *body))


def tidy(body: Body) -> Body:
    """Declarations moved down: to the assignment of the first value, or into the only block using them."""
    out = list(body)
    for decl in reversed([s for s in body if isinstance(s, Decl)]):
        at = out.index(decl)
        var = Var(decl.name, decl.type)
        users = [i for i in range(at + 1, len(out)) if mentions(out[i], decl.name)]
        if not users:
            continue
        first = out[users[0]]
        if isinstance(first, Assign) and first.target == var and not first.op:
            out.pop(at)
            out.insert(users[0] - 1, decl)
        elif len(users) == 1 and isinstance(first, For | If | While) and _inside_only(first, decl.name):
            out[users[0]] = with_blocks(first, lambda b, d=decl: (d, *b) if _in(b, d.name) else b)  # type: ignore[misc]
            out.pop(at)
    return tuple(with_blocks(s, tidy) for s in out)


def _in(body: Body, name: str) -> bool:
    return any(mentions(s, name) for s in body)


def _inside_only(stmt: Stmt, name: str) -> bool:
    """Whether the scalar lives inside single iterations (or branches) of the statement alone."""
    if name in names_read(expressions(stmt)) or (isinstance(stmt, For) and stmt.var.name == name):
        return False
    return name not in flow((stmt,)).exposed and all(name not in flow(b).exposed for b in blocks(stmt))


def mentions(stmt: Stmt, name: str) -> bool:
    total = flow((stmt,))
    return (
        name in total.written
        or any(getattr(e, "name", None) == name for e in all_expressions((stmt,)))
        or any(isinstance(s, For) and s.var.name == name for s in walk_statements((stmt,)))
    )


def map_kernel(context: Context, stage: MapStage, choice: Choice) -> KernelCode:
    """One thread per point of dims (or `per_thread` points along x, a grid apart)."""
    whole = whole_body(stage)
    given = signature(context, whole, stage)
    body = prepared(context, stage.body, {*own_names(stage), *given.fetched})
    printer = context.printer(body, stage.atomics, stage.exact)
    lines = [*given.prologue]
    outside: list[str] = []
    placed = axes(stage.dims, choice.order)
    block = choice.block or default_block(min(len(stage.dims), 3))
    for axis, group in sorted(zip(AXES, placed, strict=False), key=lambda place: place[1]):
        position = thread_position(axis, stage.dims[group[0]])
        if len(group) > 1:
            defined, tests = shared_axis(context, stage.dims, group, axis)
            lines += defined
            outside += tests
            continue
        defined, test = index_lines(printer, stage.dims[group[0]], position)
        lines += defined
        outside.append(test)
    lines.append(f"if ({' || '.join(outside)}) return;")
    text = [f"__global__ void {stage.name}({given.text()}) {{", *("    " + line for line in lines)]
    text += [*printer.body(body), "}"]
    launch = map_launch(context, stage, placed, block, given)
    return KernelCode("\n".join([comment_of(stage), *text]), launch)


def shared_axis(
    context: Context, dims: tuple[For, ...], group: tuple[int, ...], axis: str
) -> tuple[list[str], list[str]]:
    """Several dims along one grid axis, the last fastest."""
    printer = context.host_printer()
    lines: list[str] = [f"int rest = blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis};"]
    tests: list[str] = []
    for position, dim in reversed(list(enumerate(group))):
        loop = dims[dim]
        trips = printer.expr(trip_count(loop), 11)
        if position == 0:
            defined, test = index_lines(printer, loop, "rest")
            lines += defined
            tests.append(test)
            continue
        value = index_at(loop, Var(f"rest % {trips}" if constant(loop.lo) == 0 else f"(rest % {trips})", INT))
        lines.append(f"const {loop.var.type.name} {loop.var.name} = {printer.expr(value)};")
        lines.append(f"rest /= {trips};")
    return lines, tests


def map_launch(
    context: Context, stage: MapStage, placed: list[tuple[int, ...]], block: tuple[int, ...], given: Signature
) -> list[str]:
    sizes = ", ".join(str(b) for b in block)
    grid = ", ".join(
        f"blocks_for({product(context, [stage.dims[d] for d in group], stage.dims)}, {size})"
        for group, size in zip(placed, block, strict=True)
    )
    return when_nonempty(
        context,
        stage.dims,
        [
            f"const dim3 block({sizes});",
            f"const dim3 grid({grid});",
            f"{stage.name}<<<grid, block>>>({given.call()});",
        ],
    )


def serial_kernel(context: Context, stage: SerialStage) -> KernelCode:
    """One thread, in C's order."""
    stores = stored_scalars(context, stage.body, stage)
    given = signature(context, stage.body, stage, stores=stores)
    body = prepared(context, stage.body, given.fetched)
    printer = context.printer(body, exact=stage.exact)
    lines = list(given.prologue)
    text = [f"__global__ void {stage.name}({given.text()}) {{", *("    " + line for line in lines)]
    text += printer.body(body)
    text += [f"    scalars->{n} = {n};" for n in stores]
    text.append("}")
    return KernelCode("\n".join([comment_of(stage), *text]), [f"{stage.name}<<<1, 1>>>({given.call()});"])


def stored_scalars(context: Context, body: Body, stage: Kernel) -> list[str]:
    """Device scalars that the kernel leaves for later ones."""
    written = flow(body).written
    return [n for n in context.scalar_order(context.plan.device) if n in written and n in stage.live]


def comment_of(stage: Kernel) -> str:
    """What the kernel is, in a line above it."""
    match stage:
        case MapStage():
            names = " and ".join(f"`{d.var.name}`" for d in stage.dims)
            points = f"each {names}" if len(stage.dims) == 1 else f"each pair of {names}"
            if len(stage.dims) > 2:
                points = "each point of " + ", ".join(f"`{d.var.name}`" for d in stage.dims)
            inner = " Updates that may meet are atomic." if stage.atomics else ""
            return f"// One thread for {points} (line {stage.line}).{inner}"
        case SerialStage():
            if stage.why:
                return "// One thread, in C's order: " + "; ".join(dict.fromkeys(stage.why)) + "."
            return "// Scalars, by one thread."
        case _:
            names = ", ".join(f"`{r.var.name}`" for r in stage.reductions)
            return f"// Accumulates {names} (line {stage.line})."
