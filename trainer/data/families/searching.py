"""Finding things: many patterns, sorted tables, nearest points."""

from __future__ import annotations

from trainer.data.grammar.code import Code, If, While
from trainer.data.grammar.grammar import Grammar, Sketch
from trainer.data.registry import family


@family("search")
def many_patterns(g: Grammar) -> Sketch:
    """Every pattern at every place of a text."""
    n, p, m = g.size("n", 800, 4000), g.size("patterns", 4, 24), g.size("window", 3, 6)
    text = g.array("text", n, type_=g.pick("unsigned char", "char"), low=97, high=g.pick(98, 99))
    pats = g.array("text2", p, m, type_=text.type, low=97, high=99, flat=True)
    i, a, k, ok, c = g.index("i"), g.index("j"), g.index("k"), g.name("mask"), g.name("cnt")
    test = f"{text[f'{i} + {k}']} != {pats[a, k]}"
    compare: list[Code] = [g.let("int", ok, "1"), g.loop(k, "0", m, If(test, [f"{ok} = 0;", "break;"]))]
    if g.chance(0.4):
        compare = [
            g.let("int", k, "0"),
            While(f"{k} < {m} && {text[f'{i} + {k}']} == {pats[a, k]}", f"{k}++;"),
            g.let("int", ok, f"{k} == {m}", True),
        ]
    kind = g.between(0, 2)
    if kind == 0:
        hits = g.array("hist", p, type_="int", out=True)
        code: Code = g.loop(
            a,
            "0",
            p,
            g.let("int", c, "0"),
            g.loop(i, "0", f"{n} - {m} + 1", *compare, If(ok, f"{c}++;")),
            f"{hits[a]} = {c};",
        )
    elif kind == 1:
        out = g.array("out", n, type_="int", out=True)
        code = [
            g.loop(i, "0", n, f"{out[i]} = -1;"),
            g.loop(
                i,
                "0",
                f"{n} - {m} + 1",
                g.loop(a, "0", p, *compare, If(f"{ok} && {out[i]} < 0", f"{out[i]} = {a};")),
            ),
        ]
    else:
        first = g.array("out", p, type_="int", out=True)
        code = g.loop(
            a,
            "0",
            p,
            f"{first[a]} = -1;",
            g.loop(i, "0", f"{n} - {m} + 1", *compare, If(ok, [f"{first[a]} = {i};", "break;"])),
        )
    return g.program(
        ("scan_signatures", "match_patterns", "multi_search", "find_rules"),
        code,
        says="Looks for all patterns.",
    )


@family("search")
def bisect_queries(g: Grammar) -> Sketch:
    """Binary search for every query in a table made ascending first."""
    n, q = g.size("n", 300, 2000), g.size("queries", 500, 5000)
    gap = g.array("in", n, low=0.1, high=1)
    query = g.array("in2", q, low=0, high=400)
    table, out = g.array("table", n, out=True), g.array("out", q, type_="int", out=True)
    i, lo, hi, mid, total = g.index("i"), g.name("low"), g.name("high"), g.name("tmp"), g.name("sum")
    build: list[Code] = [
        g.let(g.real, total, "0"),
        g.loop(i, "0", n, g.add(total, gap[i]), f"{table[i]} = {total};"),
    ]
    if g.chance(0.5):
        build = [
            g.loop(i, "0", n, f"{table[i]} = {g.number(0.3)} * ({g.real}){i} + {g.number(0.1)} * {gap[i]};")
        ]
    step = If(f"{table[mid]} {g.pick('<', '<=')} {query[i]}", f"{lo} = {mid} + 1;", f"{hi} = {mid};")
    find: list[Code] = [
        g.let("int", lo, "0"),
        g.let("int", hi, n),
        While(f"{lo} < {hi}", [g.let("int", mid, f"{lo} + ({hi} - {lo}) / 2", True), step]),
    ]
    if g.chance(0.3):
        find = [g.let("int", lo, "0"), While(f"{lo} < {n} && {table[lo]} < {query[i]}", f"{lo}++;")]
    return g.program(
        ("lower_bounds", "locate", "bucketise", "search_sorted"),
        [*build, g.loop(i, "0", q, *find, f"{out[i]} = {lo};")],
        says="The place of every query in an ascending table.",
    )


@family("search")
def nearest_point(g: Grammar) -> Sketch:
    """The nearest of many centres for every point."""
    n, k, d = g.size("n", 200, 1200), g.size("clusters", 6, 32), g.size("dims", 2, 6)
    x, c = g.array("in", n, d), g.array("matrix2", k, d)
    out = g.array("out", n, type_="int", out=True)
    i, a, j, best, at, total, t = (
        g.index("i"),
        g.index("j"),
        g.index("k"),
        g.name("best"),
        g.name("where"),
        g.name("sum"),
        g.name("dx"),
    )
    metric = g.pick(f"{t} * {t}", g.math("fabs", t), f"{t} * {t}")
    body: list[Code] = [
        g.let(g.real, total, "0"),
        g.loop(j, "0", d, g.let(g.real, t, f"{x[i, j]} - {c[a, j]}", True), g.add(total, metric)),
    ]
    if g.chance(0.3):
        body = [
            g.let(g.real, total, "0"),
            g.loop(
                j,
                "0",
                d,
                g.let(g.real, t, g.math("fabs", f"{x[i, j]} - {c[a, j]}"), True),
                g.maximum(total, t),
            ),
        ]
    code: list[Code] = [
        g.loop(
            i,
            "0",
            n,
            g.let(g.real, best, g.number(1e30)),
            g.let("int", at, "0"),
            g.loop(a, "0", k, *body, If(f"{total} < {best}", [f"{best} = {total};", f"{at} = {a};"])),
            f"{out[i]} = {at};",
        )
    ]
    if g.chance(0.5):
        count = g.array("hist", k, type_="int", out=True)
        code += [g.loop(a, "0", k, f"{count[a]} = 0;"), g.loop(i, "0", n, f"{count[out[i]]}++;")]
    return g.program(
        ("assign_clusters", "nearest_centre", "classify_points", "quantise_vectors"),
        code,
        says="The nearest centre for every point.",
    )


@family("search")
def distance_matrix(g: Grammar) -> Sketch:
    """Distances or similarities of all pairs of rows."""
    n, m, d = g.size("rows", 40, 140), g.size("cols", 40, 140), g.size("dims", 6, 30)
    x, y = g.array("in", n, d), g.array("in2", m, d)
    out = g.array("out", n, m, out=True)
    i, j, k, total, other, t = (
        g.index("i"),
        g.index("j"),
        g.index("k"),
        g.name("sum"),
        g.name("sum2"),
        g.name("dx"),
    )
    kind = g.between(0, 3)
    diff = g.let(g.real, t, f"{x[i, k]} - {y[j, k]}", True)
    if kind == 0:
        body: list[Code] = [
            g.let(g.real, total, "0"),
            g.loop(k, "0", d, diff, g.add(total, f"{t} * {t}")),
            f"{out[i, j]} = {g.pick(total, g.math('sqrt', total))};",
        ]
    elif kind == 1:
        body = [
            g.let(g.real, total, "0"),
            g.loop(k, "0", d, diff, g.add(total, f"{t} * {t}")),
            f"{out[i, j]} = {g.math('exp', f'-{g.number(0.05)} * {total}')};",
        ]
    elif kind == 2:
        body = [
            g.let(g.real, total, "0"),
            g.let(g.real, other, g.number(0.01)),
            g.loop(k, "0", d, g.add(total, f"{x[i, k]} * {y[j, k]}"), g.add(other, f"{y[j, k]} * {y[j, k]}")),
            f"{out[i, j]} = {total} / {g.math('sqrt', other)};",
        ]
    else:
        body = [
            g.let(g.real, total, "0"),
            g.loop(
                k,
                "0",
                d,
                diff,
                g.maximum(total, g.math("fabs", t)) if g.chance(0.5) else g.add(total, g.math("fabs", t)),
            ),
            f"{out[i, j]} = {total};",
        ]
    return g.program(
        ("pairwise_distances", "kernel_matrix", "similarities", "cost_matrix"),
        g.loop(i, "0", n, g.loop(j, "0", m, *body)),
        says="Every row against every other.",
    )
