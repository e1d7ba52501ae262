"""Nests like a matrix product, tile by tile through shared memory.

    for (i) for (j) { s = 0; for (k) s += a[i][k] * b[k][j]; c[i][j] = s; }

Two loads, one without j and one without i: a block of threads loads a tile of each, all of them use both, and
a thread may keep several results in registers. Matched on the loops and the loads, whatever their names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from agent.translator.c.accesses import collect
from agent.translator.c.affine import Reader
from agent.translator.c.dataflow import arrays_written, flow, names_read
from agent.translator.c.elements import promote_elements
from agent.translator.c.kernels import (
    Context,
    KernelCode,
    index_lines,
    most,
    plain,
    prepared,
    signature,
    when_nonempty,
)
from agent.translator.c.normalise import last_value, simplified
from agent.translator.c.passes.bounds import plus, within
from agent.translator.c.passes.measured import Measured, Offer, number
from agent.translator.c.passes.strides import flat_index
from agent.translator.c.schedules import Choice
from agent.translator.c.stage_code import own_names, whole_body
from agent.translator.c.stages import MapStage
from agent.translator.c.syntax import (
    Assign,
    Binary,
    Body,
    Call,
    Cast,
    Decl,
    Expr,
    For,
    Load,
    Unary,
    Var,
    contains_loop,
    sub,
    substitute,
    walk,
)
from sandbox.tasks.c.polynomial import Polynomial

DEPTH = 16  # of a tile along the summed loop


@dataclass(frozen=True)
class Product:
    """What was matched. `left` depends on `row`, `right` on `column`, both on `inner`."""

    row: For
    column: For
    inner: For
    left: Load
    right: Load
    value: Expr  # what is added, with both loads in it
    total: Var
    before: Body
    after: Body
    left_along_inner: bool  # whether neighbours along `inner` are neighbours in memory
    right_along_column: bool

    @property
    def square(self) -> For:
        """The column loop over all of its range, where its bounds depend on the row."""
        return squared(self.row, self.column)


def squared(row: For, column: For) -> For:
    """A column loop whose bounds no longer depend on the row: as wide as it ever gets."""
    ends = {True: row.lo, False: sub(last_value(row), row.step)}

    def widest(expr: Expr, low: bool) -> Expr:
        """A bound at the end of the row loop that makes it smallest (or largest)."""
        slope = Reader(frozenset(), frozenset(), {}).read(expr).coefficient(row.var.name).as_constant or 0
        return simplified(substitute(expr, {row.var.name: ends[low == (slope >= 0)]}))

    return replace(column, lo=widest(column.lo, True), bound=widest(column.bound, False))


def match(context: Context, stage: MapStage) -> Product | None:
    """None where the nest is not of this kind."""
    if len(stage.dims) < 2 or stage.atomics or stage.exact:
        return None
    row, column = stage.dims[-2], stage.dims[-1]
    variables = {d.var.name for d in stage.dims}
    others = variables - {row.var.name}
    if not plain(row) or not names_read((row.lo, row.bound)).isdisjoint(variables):
        return None
    if not plain(column) or not names_read((column.lo, column.bound)).isdisjoint(others):
        return None
    found = _split(context, stage.body)
    if found is None:
        return None
    before, inner, after = found
    if not plain(inner) or not names_read((inner.lo, inner.bound)).isdisjoint(
        variables | flow(before).written
    ):
        return None
    summed = _summed(inner.body)
    if summed is None or contains_loop(before) or contains_loop(after):
        return None
    total, value = summed
    loads = list(dict.fromkeys(n for n in walk(value) if isinstance(n, Load)))
    if (
        len(loads) != 2
        or {n.array for n in loads} & arrays_written(stage.body)
        or not _is_product(value, loads)
    ):
        return None
    if not names_read((value,)) <= {*variables, inner.var.name} | set(context.plan.host):
        return None
    ordered = _ordered(context, stage, loads, row, column, inner)
    if ordered is None:
        return None
    left, right, left_along, right_along = ordered
    return Product(row, column, inner, left, right, value, total, before, after, left_along, right_along)


def _split(context: Context, body: Body) -> tuple[Body, For, Body] | None:
    """(before, the one loop, after), with a summed element turned into a scalar."""
    loops = [s for s in body if isinstance(s, For)]
    if len(loops) != 1:
        return None
    at = body.index(loops[0])
    before, loop, after = body[:at], loops[0], body[at + 1 :]
    written = arrays_written(loop.body)
    if written:
        promoted = promote_elements(loop, written, set(context.function.taken))
        if promoted is None:
            return None
        inner = next(s for s in promoted if isinstance(s, For))
        cut = promoted.index(inner)
        return (*before, *promoted[:cut]), inner, (*promoted[cut + 1 :], *after)
    return before, loop, after


def _summed(body: Body) -> tuple[Var, Expr] | None:
    """The scalar and what is added to it, private scalars put in their places."""
    values: dict[str, Expr] = {}
    for stmt in body:
        if isinstance(stmt, Decl):
            continue
        if not isinstance(stmt, Assign) or not isinstance(stmt.target, Var):
            return None
        value = substitute(stmt.value, values)
        if stmt is body[-1]:
            return (stmt.target, value) if stmt.op == "+" and stmt.target.name not in values else None
        if stmt.op:
            return None
        values[stmt.target.name] = value if value.type == stmt.target.type else Cast(stmt.target.type, value)
    return None


def _is_product(value: Expr, loads: list[Load]) -> bool:
    """Whether a zero in either load makes the value zero."""
    match value:
        case Load():
            return value in loads
        case Binary(op="*"):
            sides = [{n for n in walk(s) if isinstance(n, Load)} for s in (value.left, value.right)]
            return all(
                not s or _is_product(e, loads) for s, e in zip(sides, (value.left, value.right), strict=True)
            )
        case Cast() | Unary(op="-"):
            return _is_product(value.arg, loads)
        case Call():
            return False
        case _:
            return not any(isinstance(n, Load) for n in walk(value))


def _ordered(
    context: Context, stage: MapStage, loads: list[Load], row: For, column: For, inner: For
) -> tuple[Load, Load, bool, bool] | None:
    dims = (*stage.dims[:-1], squared(row, column))
    flat = {load: _flat(context, dims, inner, load) for load in loads}
    keys = {d.var.name: f"#{level}{d.var.name}" for level, d in enumerate((*stage.dims, inner))}
    k = keys[inner.var.name]
    if any(any(s.startswith("?") for s in p.symbols) for p in flat.values()):
        return None
    i, j = keys[row.var.name], keys[column.var.name]
    first, second = loads
    if flat[first].degree(j):
        first, second = second, first
    a, b = flat[first], flat[second]
    if a.degree(j) or b.degree(i) or not (a.degree(i) and a.degree(k) and b.degree(j) and b.degree(k)):
        return None
    left_along = a.coefficient(k).as_constant == 1 or a.coefficient(i).as_constant != 1
    right_along = b.coefficient(j).as_constant == 1 or b.coefficient(k).as_constant != 1
    return first, second, left_along, right_along


def _flat(context: Context, dims: tuple[For, ...], inner: For, load: Load) -> Polynomial:
    """The load's flat subscript in the counters of the dims and of the summed loop."""
    nest: Body = (Assign(Var("element", load.type), load),)
    for loop in (inner, *reversed(dims)):
        nest = (replace(loop, body=nest),)
    return flat_index(context, collect(nest, context.dims).found[0])


def tile_names(context: Context, found: Product) -> tuple[str, str]:
    """Of the left and the right tile."""
    left, right = context.free(f"{found.left.array}_tile", f"{found.right.array}_tile")
    return left, right


def matrix_kernel(context: Context, stage: MapStage, choice: Choice) -> KernelCode:
    """`choice.tile` threads along each edge, `choice.per_thread` results of each along both."""
    found = match(context, stage)
    assert found is not None, "only matched nests get this choice"
    edge, each = choice.tile, choice.per_thread
    total, thread, step = context.free("sum", "thread", "step")
    size, threads = edge * each, edge * edge
    tiles = tile_names(context, found)
    given = signature(context, whole_body(stage), stage)
    i, j, k = found.row.var.name, found.column.var.name, found.inner.var.name
    kind = found.total.type.name
    printer = context.printer(stage.body)
    left_pad = " + 1" if choice.pad and not found.left_along_inner else ""
    right_pad = " + 1" if choice.pad and not found.right_along_column else ""
    lines = [
        *given.prologue,
        f"__shared__ {found.left.type.name} {tiles[0]}[{size}][{DEPTH}{left_pad}];",
        f"__shared__ {found.right.type.name} {tiles[1]}[{DEPTH}][{size}{right_pad}];",
        f"const int {thread} = threadIdx.y * {edge} + threadIdx.x;",
    ]
    for axis, batch in zip(("z",), stage.dims[:-2], strict=False):
        lines += index_lines(printer, batch, f"blockIdx.{axis}")[0]
    lo_i, lo_j = printer.expr(found.row.lo), printer.expr(found.square.lo)
    lines.append(f"const int first_{i} = {plus(lo_i, f'blockIdx.y * {size}')};")
    lines.append(f"const int first_{j} = {plus(lo_j, f'blockIdx.x * {size}')};")
    many = each > 1
    lines.append(f"{kind} {total}[{each}][{each}] = {{}};" if many else f"{kind} {total} = 0;")
    bound_k = within(printer.expr(found.inner.bound, 8), found.inner)
    lines.append(
        f"for (int first_{k} = {printer.expr(found.inner.lo)}; first_{k} {bound_k}; first_{k} += {DEPTH}) {{"
    )
    inner = _tile_load(
        context,
        tiles[0],
        found.left,
        (found.row, found.inner),
        found.left_along_inner,
        (size, DEPTH),
        threads,
    )
    inner += _tile_load(
        context,
        tiles[1],
        found.right,
        (found.inner, found.square),
        found.right_along_column,
        (DEPTH, size),
        threads,
    )
    inner += ["__syncthreads();", "#pragma unroll", f"for (int {step} = 0; {step} < {DEPTH}; ++{step}) {{"]
    inner += ["    " + line for line in _multiply(context, found, edge, each)]
    inner += ["}", "__syncthreads();"]
    lines += ["    " + line for line in inner]
    lines.append("}")
    lines += _results(context, stage, found, edge, each, given.fetched)
    what = f"{size} x {size} results" if many else f"a tile of {size} x {size} results"
    text = [
        f"// A block for {what} over `{i}` and `{j}` (line {stage.line}): tiles of both in shared memory"
        + (f", {each} x {each} results in each thread's registers." if many else "."),
        f"__global__ void {stage.name}({given.text()}) {{",
        *("    " + line for line in lines),
        "}",
    ]
    host = context.host_printer()
    grid = [f"blocks_for({host.expr(most(d, stage.dims))}, {size})" for d in (found.column, found.row)]
    if stage.dims[:-2]:
        grid.append(f"(int)({host.expr(most(stage.dims[0], stage.dims))})")
    launch = [
        f"const dim3 block({edge}, {edge});",
        f"const dim3 grid({', '.join(grid)});",
        f"{stage.name}<<<grid, block>>>({given.call()});",
    ]
    return KernelCode("\n".join(text), when_nonempty(context, stage.dims, launch))


def _tile_load(
    context: Context,
    tile: str,
    load: Load,
    loops: tuple[For, For],
    along_second: bool,
    shape: tuple[int, int],
    threads: int,
) -> list[str]:
    """Loads one tile; neighbouring threads load neighbours."""
    printer = context.host_printer()
    first, second = loops
    rows, columns = shape
    names = [loop.var.name for loop in loops]
    part, row, column, thread = context.free("part", "row", "column", "thread")
    row_text = f"{part} / {columns}" if along_second else f"{part} % {rows}"
    column_text = f"{part} % {columns}" if along_second else f"{part} / {rows}"
    element = printer.element(load)
    tests = " && ".join(f"{loop.var.name} {within(printer.expr(loop.bound, 8), loop)}" for loop in loops)
    return [
        f"for (int {part} = {thread}; {part} < {rows * columns}; {part} += {threads}) {{",
        f"    const int {row} = {row_text}, {column} = {column_text};",
        f"    const {first.var.type.name} {names[0]} = first_{names[0]} + {row};",
        f"    const {second.var.type.name} {names[1]} = first_{names[1]} + {column};",
        f"    {tile}[{row}][{column}] = {tests} ? {element} : ({load.type.name})0;",
        "}",
    ]


def _multiply(context: Context, found: Product, edge: int, each: int) -> list[str]:
    left, right = tile_names(context, found)
    kinds = found.left.type.name, found.right.type.name
    total, step, mine, theirs, r, c = context.free("sum", "step", "left", "right", "r", "c")
    if each == 1:
        value = _with_names(found, f"{left}[threadIdx.y][{step}]", f"{right}[{step}][threadIdx.x]", context)
        return [f"{total} += {value};"]
    value = _with_names(found, f"{mine}[{r}]", f"{theirs}[{c}]", context)
    return [
        f"{kinds[0]} {mine}[{each}];",
        f"{kinds[1]} {theirs}[{each}];",
        "#pragma unroll",
        f"for (int {r} = 0; {r} < {each}; ++{r}) {mine}[{r}] = {left}[threadIdx.y + {edge} * {r}][{step}];",
        "#pragma unroll",
        f"for (int {c} = 0; {c} < {each}; ++{c}) "
        f"{theirs}[{c}] = {right}[{step}][threadIdx.x + {edge} * {c}];",
        "#pragma unroll",
        f"for (int {r} = 0; {r} < {each}; ++{r}) {{",
        "    #pragma unroll",
        f"    for (int {c} = 0; {c} < {each}; ++{c}) {total}[{r}][{c}] += {value};",
        "}",
    ]


def _with_names(found: Product, left: str, right: str, context: Context) -> str:
    printer = context.host_printer()
    names = {found.left: left, found.right: right}
    printer.load = lambda load: names.get(load)
    return printer.expr(found.value)


def _results(
    context: Context, stage: MapStage, found: Product, edge: int, each: int, fetched: list[str]
) -> list[str]:
    """What the point does around the loop, with the sum in its place."""
    total, r, c = context.free("sum", "r", "c")
    where = f"{total}[{r}][{c}]" if each > 1 else total
    joined = Assign(found.total, Var(where, found.total.type), "+")
    whole = (*found.before, joined, *found.after)
    body = prepared(context, whole, {*own_names(stage), *fetched})
    printer = context.printer(whole)
    i, j = found.row.var, found.column.var
    shift = (f" + {edge} * {r}", f" + {edge} * {c}") if each > 1 else ("", "")
    bounds = [within(printer.expr(d.bound, 8), d) for d in (found.row, found.column)]
    if found.square.lo != found.column.lo:
        bounds[1] += f" && {j.name} >= {printer.expr(found.column.lo, 8)}"
    lines = [
        f"const {i.type.name} {i.name} = first_{i.name} + threadIdx.y{shift[0]};",
        f"const {j.type.name} {j.name} = first_{j.name} + threadIdx.x{shift[1]};",
        f"if ({i.name} {bounds[0]} && {j.name} {bounds[1]}) {{",
        *printer.body(body),
        "}",
    ]
    if each == 1:
        return lines
    return [
        "#pragma unroll",
        f"for (int {r} = 0; {r} < {each}; ++{r}) {{",
        "    #pragma unroll",
        f"    for (int {c} = 0; {c} < {each}; ++{c}) {{",
        *("        " + line for line in lines),
        "    }",
        "}",
    ]


def offers(context: Context, stage: MapStage, choice: Choice, measured: Measured) -> Iterator[Offer]:
    """Tiles, then more results per thread, then padding where conflicts were measured."""
    if choice.rows or choice.turned or len(stage.dims) > 3 or match(context, stage) is None:
        return
    if not choice.tile:
        found = measured.worst_load() or measured.worst_store()
        if found is None or measured.reread < 3:
            return
        reason = (
            f"Each sector is asked for {number(measured.reread)} times, most by line {found[0].line}: each "
            "thread loads its own row and column. Threads of a block can share them."
        )
        yield Offer(Choice(tile=16), "Tile through shared memory", reason, 30.0)
        return
    conflicts = measured.kernel.shared_load_bank_conflicts + measured.kernel.shared_store_bank_conflicts
    if conflicts > measured.kernel.instructions / 50 and not choice.pad:
        line = max(
            measured.kernel.lines, key=lambda x: x.shared_load_bank_conflicts + x.shared_store_bank_conflicts
        )
        reason = (
            f"Line {line.line} makes {number(conflicts)} extra passes through shared memory: "
            "rows start in one bank."
        )
        yield Offer(replace(choice, pad=True), "Pad the tiles by one column", reason, 20.0)
    if choice.per_thread < 4:
        busiest = measured.busiest()
        flop = measured.kernel.flop.fp32 + measured.kernel.flop.fp64
        ratio = 64 * measured.kernel.instructions / max(1, flop)
        where = busiest.line if busiest else stage.line
        reason = (
            f"{number(ratio)} instructions are executed per multiply-add, most on line {where}: "
            "each value loaded from shared memory is used once."
        )
        for each, gain in ((4, 25.0), (2, 15.0)):
            if each > choice.per_thread:
                yield Offer(
                    replace(choice, per_thread=each),
                    f"Keep {each} x {each} results in registers",
                    reason,
                    gain,
                )
