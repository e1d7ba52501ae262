"""Many values into one, or into one a row."""

from __future__ import annotations

from trainer.data.grammar.code import Code, If
from trainer.data.grammar.formulas import formula
from trainer.data.grammar.grammar import Grammar, Sketch
from trainer.data.registry import family


@family("reductions")
def fold(g: Grammar) -> Sketch:
    """One or two sums over everything; the last becomes the return value."""
    n = g.size("n", 4000, 50000)
    x = g.array("in", n)
    arrays = [x] + ([g.array("in2", n)] if g.chance(0.6) else [])
    i, total = g.index(), g.name("sum")
    wide = "double" if g.chance(0.3) else g.real
    term = formula(g, [a[i] for a in arrays], [], 1)
    body: list[Code] = [g.add(total, term)]
    if g.chance(0.3):
        body = [If(f"{x[i]} {g.pick('>', '<')} {g.number(round(g.rng.uniform(-0.5, 0.5), 2))}", body)]
    code: list[Code] = [g.let(wide, total, "0"), g.loop(i, "0", n, *body)]
    end = f"return {total};"
    if g.chance(0.35):
        second, count = g.name("sum2"), g.name("cnt")
        code = [
            g.let(wide, total, "0"),
            g.let(wide, second, "0"),
            g.let("int", count, "1"),
            g.loop(
                i,
                "0",
                n,
                *body,
                g.add(second, formula(g, [x[i]], [], 1)),
                If(f"{x[i]} > {g.number(0)}", f"{count}++;"),
            ),
        ]
        end = f"return {total} + {second} / {count};"
    elif g.chance(0.3):
        end = f"return {g.math('sqrt', g.math('fabs', total))};"
    return g.program(
        ("dot", "energy", "weighted_sum", "accumulate", "objective"),
        [*code, end],
        returns=wide,
        says="One number for all of the input.",
    )


@family("reductions")
def extreme(g: Grammar) -> Sketch:
    """The largest or smallest value, its place, or both ends of the range."""
    n = g.size("n", 3000, 40000)
    x = g.array("in", n)
    i, best, at = g.index(), g.name("best"), g.name("where")
    least = g.chance(0.5)
    value = formula(g, [x[i]], [], 1)
    sign = "<" if least else ">"
    start = f"{g.number(1e30)}" if least else f"-{g.number(1e30)}"
    kind = g.between(0, 2)
    v = g.name("tmp")
    if kind == 0:
        code: list[Code] = [
            g.let(g.real, best, start),
            g.let("int", at, "-1"),
            g.loop(
                i,
                "0",
                n,
                g.let(g.real, v, value, const=True),
                If(f"{v} {sign} {best}", [f"{best} = {v};", f"{at} = {i};"]),
            ),
            f"return {at};",
        ]
        return g.program(
            ("arg_best", "find_peak", "index_of_extreme"),
            code,
            returns="int",
            says="Where the extreme value is.",
        )
    if kind == 1:
        out = g.array("out", "2", out=True)
        other = g.name("tmp2")
        code = [
            g.let(g.real, best, start),
            g.let(g.real, other, start.removeprefix("-") if not least else f"-{start}"),
            g.loop(
                i,
                "0",
                n,
                g.let(g.real, v, value, const=True),
                g.maximum(best, v, least),
                g.maximum(other, v, not least),
            ),
            f"{out['0']} = {best};",
            f"{out['1']} = {other};",
        ]
        return g.program(("value_range", "min_max", "bounds_of"), code, says="Both ends of the range.")
    code = [
        g.let(g.real, best, start),
        g.loop(i, "0", n, g.let(g.real, v, value, const=True), g.maximum(best, v, least)),
        f"return {best};",
    ]
    return g.program(("largest", "peak_level", "worst_case"), code, returns=g.real, says="The extreme value.")


@family("reductions")
def row_statistics(g: Grammar) -> Sketch:
    """Something for each row of a matrix, in one pass or several."""
    rows, cols = g.size("rows", 60, 300), g.size("cols", 40, 160)
    a = g.array("matrix", rows, cols)
    out = g.array("out", rows, out=True)
    i, j, total = g.index("i"), g.index("j"), g.name("sum")
    count = f"({g.real}){cols}"
    passes: list[Code] = [
        g.let(g.real, total, "0"),
        g.loop(j, "0", cols, g.add(total, formula(g, [a[i, j]], [], 1))),
    ]
    kind = g.between(0, 3)
    if kind == 0:
        passes.append(f"{out[i]} = {total} / {count};")
    elif kind == 1:
        square = g.name("sum2")
        d = g.name("tmp")
        passes += [
            f"{total} = {total} / {count};",
            g.let(g.real, square, "0"),
            g.loop(
                j,
                "0",
                cols,
                g.let(g.real, d, f"{a[i, j]} - {total}", const=True),
                g.add(square, f"{d} * {d}"),
            ),
            f"{out[i]} = {g.math('sqrt', f'{square} / {count}')};",
        ]
    elif kind == 2:
        best = g.name("best")
        passes = [
            g.let(g.real, best, a[i, "0"]),
            g.loop(j, "1", cols, g.maximum(best, a[i, j], g.chance(0.5))),
            *passes,
            f"{out[i]} = {best} + {g.number(0.1)} * {total};",
        ]
    else:
        other = g.array("out2", rows, out=True, type_="int")
        count_ = g.name("cnt")
        passes += [
            g.let("int", count_, "0"),
            g.loop(j, "0", cols, If(f"{a[i, j]} > {total} / {count}", f"{count_}++;")),
            f"{out[i]} = {total};",
            f"{other[i]} = {count_};",
        ]
    return g.program(
        ("row_stats", "summarise_rows", "row_reduce", "per_row"),
        g.loop(i, "0", rows, *passes),
        says="One figure for every row.",
    )


@family("reductions")
def column_totals(g: Grammar) -> Sketch:
    """Along the other direction: rows outside or inside."""
    rows, cols = g.size("rows", 60, 250), g.size("cols", 60, 250)
    a = g.array("matrix", rows, cols)
    out = g.array("out", cols, out=True)
    i, j, total = g.index("i"), g.index("j"), g.name("sum")
    term = formula(g, [a[i, j]], [], 2)
    if g.chance(0.5):
        code: list[Code] = [
            g.loop(
                j,
                "0",
                cols,
                g.let(g.real, total, "0"),
                g.loop(i, "0", rows, g.add(total, term)),
                f"{out[j]} = {total};",
            )
        ]
    else:
        code = [
            g.loop(j, "0", cols, f"{out[j]} = {g.number(0)};"),
            g.loop(i, "0", rows, g.loop(j, "0", cols, g.add(out[j], term))),
        ]
        if g.chance(0.5):
            code.append(g.loop(j, "0", cols, g.add(out[j], f"({g.real}){rows}", "/")))
    if g.chance(0.4):
        other = g.array("out2", rows, cols, out=True)
        code.append(
            g.loop(
                i, "0", rows, g.loop(j, "0", cols, f"{other[i, j]} = {formula(g, [a[i, j], out[j]], [], 1)};")
            )
        )
    return g.program(
        ("column_sums", "sum_columns", "project_down", "marginals"), code, says="Totals of the columns."
    )


@family("reductions")
def soft_rows(g: Grammar) -> Sketch:
    """Softmax, layer norm and their relatives."""
    rows, cols = g.size("rows", 50, 200), g.size("cols", 40, 160)
    x = g.array("in", rows, cols)
    out = g.array("out", rows, cols, out=True)
    i, j, total, best = g.index("i"), g.index("j"), g.name("sum"), g.name("best")
    kind = g.between(0, 3)
    if kind == 0:
        code: list[Code] = [
            g.let(g.real, best, x[i, "0"]),
            g.loop(j, "1", cols, g.maximum(best, x[i, j])),
            g.let(g.real, total, "0"),
            g.loop(
                j,
                "0",
                cols,
                f"{out[i, j]} = {g.math('exp', f'{x[i, j]} - {best}')};",
                g.add(total, out[i, j]),
            ),
            g.loop(j, "0", cols, g.add(out[i, j], total, "/")),
        ]
    elif kind == 1:
        square, inv = g.name("sum2"), g.name("inv")
        weights = g.array("weights", cols)
        code = [
            g.let(g.real, total, "0"),
            g.loop(j, "0", cols, g.add(total, x[i, j])),
            f"{total} = {total} / {cols};",
            g.let(g.real, square, "0"),
            g.loop(j, "0", cols, g.add(square, f"({x[i, j]} - {total}) * ({x[i, j]} - {total})")),
            g.let(
                g.real,
                inv,
                f"{g.number(1)} / {g.math('sqrt', f'{square} / {cols} + {g.number(1e-5)}')}",
                const=True,
            ),
            g.loop(j, "0", cols, f"{out[i, j]} = ({x[i, j]} - {total}) * {inv} * {weights[j]};"),
        ]
    elif kind == 2:
        code = [
            g.let(g.real, total, g.number(0.001)),
            g.loop(j, "0", cols, g.add(total, f"{x[i, j]} * {x[i, j]}")),
            f"{total} = {g.number(1)} / {g.math('sqrt', total)};",
            g.loop(j, "0", cols, f"{out[i, j]} = {x[i, j]} * {total};"),
        ]
    else:
        code = [
            g.let(g.real, best, g.number(0.01)),
            g.loop(j, "0", cols, g.maximum(best, g.math("fabs", x[i, j]))),
            g.loop(j, "0", cols, f"{out[i, j]} = {formula(g, [f'{x[i, j]} / {best}'], [], 1)};"),
        ]
    return g.program(
        ("normalise_rows", "softmax", "layer_norm", "rescale_rows"),
        g.loop(i, "0", rows, *code),
        says="Every row by its own scale.",
    )


@family("reductions")
def pair_tally(g: Grammar) -> Sketch:
    """Counts over all pairs, or over the triangle of pairs."""
    n = g.size("n", 200, 700)
    x = g.array("in", n)
    y = g.array("in2", n)
    limit = g.scalar("limit", 0.3, 1.2)
    i, j, count, d = g.index("i"), g.index("j"), g.name("cnt"), g.name("dx")
    triangle = g.chance(0.5)
    test = g.pick(
        f"{d} < {limit} && {d} > -{limit}",
        f"{d} * {d} < {limit}",
        f"({x[i]} - {x[j]}) * ({y[i]} - {y[j]}) > {limit} * {d}",
    )
    pair: list[Code] = [g.let(g.real, d, f"{x[i]} - {g.pick(x, y)[j]}", const=True)]
    if g.chance(0.5):
        out = g.array("out", n, out=True, type_="int")
        inner = g.loop(j, f"{i} + 1" if triangle else "0", n, *pair, If(test, f"{count}++;"))
        return g.program(
            ("neighbours", "count_close", "rank_pairs"),
            g.loop(i, "0", n, g.let("int", count, "0"), inner, f"{out[i]} = {count};"),
            says="How many partners each one has.",
        )
    total: list[Code] = [
        g.let("long", count, "0"),
        g.loop(i, "0", n, g.loop(j, f"{i} + 1" if triangle else "0", n, *pair, If(test, f"{count}++;"))),
        f"return {count};",
    ]
    return g.program(
        ("concordant_pairs", "count_pairs", "close_pairs"),
        total,
        returns="long",
        says="Counts the pairs that qualify.",
    )
