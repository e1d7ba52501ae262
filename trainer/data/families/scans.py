"""Each element from all before it."""

from __future__ import annotations

from trainer.data.grammar.code import Code, If
from trainer.data.grammar.formulas import formula
from trainer.data.grammar.grammar import Grammar, Sketch
from trainer.data.registry import family


@family("scans")
def running_total(g: Grammar) -> Sketch:
    """Prefix sums, inclusive or exclusive, forward or backward."""
    n = g.size("n", 2000, 20000)
    whole = g.chance(0.5)
    x = g.array("in", n, type_="int" if whole else None)
    out = g.array("out", n, out=True, type_=g.pick("int", "long") if whole else None)
    kind = out.type
    i, total = g.index(), g.name("sum")
    term = (
        x[i]
        if whole and g.chance(0.6)
        else (f"{x[i]} * {g.between(2, 9)}" if whole else formula(g, [x[i]], [], 1))
    )
    store = f"{out[i]} = {total};"
    body: list[Code] = [store, g.add(total, term)] if g.chance(0.4) else [g.add(total, term), store]
    if g.chance(0.3):
        body = [*body[:1], *body[1:]]
        body.append(
            If(f"{total} {g.pick('>', '<')} {g.pick(1000, -1000, 5000)}", f"{total} = 0;")
        ) if whole and g.chance(0.5) else None
    if g.chance(0.3):
        code: list[Code] = [
            f"if ({n} <= 0) return;",
            f"{out['0']} = {x['0']};",
            g.loop(i, "1", n, f"{out[i]} = {out[f'{i} - 1']} + {term};"),
        ]
    else:
        code = [g.let(kind, total, "0"), g.loop(i, "0", n, *body, down=g.chance(0.2))]
    return g.program(("prefix_sum", "cumulative", "running_total", "integrate"), code, says="Running totals.")


@family("scans")
def running_extreme(g: Grammar) -> Sketch:
    """Running maxima and how far below them each element lies."""
    n = g.size("n", 2000, 20000)
    x = g.array("in", n)
    out = g.array("out", n, out=True)
    i, best = g.index(), g.name("best")
    least = g.chance(0.4)
    down = g.chance(0.3)
    body: list[Code] = [g.maximum(best, x[i], least)]
    body.append(f"{out[i]} = {g.pick(best, f'{best} - {x[i]}', formula(g, [best, x[i]], [], 1))};")
    code: list[Code] = [
        g.let(g.real, best, g.number(1e30) if least else f"-{g.number(1e30)}"),
        g.loop(i, "0", n, *body, down=down),
    ]
    if g.chance(0.4):
        worst, j = g.name("tmp"), g.index("j")
        code += [
            g.let(g.real, worst, g.number(0)),
            g.loop(j, "0", n, g.maximum(worst, out[j])),
            f"return {worst};",
        ]
        return g.program(
            ("max_drawdown", "envelope_peak"),
            code,
            returns=g.real,
            says="The running extreme, and the largest distance.",
        )
    return g.program(
        ("running_max", "envelope", "drawdown", "high_water"), code, says="The extreme of everything so far."
    )


@family("scans")
def row_scans(g: Grammar) -> Sketch:
    """Prefix sums along rows or columns, or both: a summed-area table."""
    rows, cols = g.size("rows", 50, 200), g.size("cols", 50, 200)
    x = g.array("in", rows, cols)
    out = g.array("out", rows, cols, out=True)
    i, j, total = g.index("i"), g.index("j"), g.name("sum")
    kind = g.between(0, 2)
    along: Code = g.loop(
        i,
        "0",
        rows,
        g.let(g.real, total, "0"),
        g.loop(j, "0", cols, g.add(total, formula(g, [x[i, j]], [], 1)), f"{out[i, j]} = {total};"),
    )
    if kind == 1:
        along = g.loop(
            j,
            "0",
            cols,
            g.let(g.real, total, "0"),
            g.loop(i, "0", rows, g.add(total, formula(g, [x[i, j]], [], 1)), f"{out[i, j]} = {total};"),
        )
    code: list[Code] = [along]
    if kind == 2:
        code.append(g.loop(j, "0", cols, g.loop(i, "1", rows, g.add(out[i, j], out[f"{i} - 1", j]))))
    return g.program(
        ("integral_image", "row_prefix", "summed_area", "accumulate_rows"),
        code,
        says="Running sums inside the matrix.",
    )


@family("scans")
def segmented_scan(g: Grammar) -> Sketch:
    """Running sums that start again where a flag stands."""
    n = g.size("n", 2000, 16000)
    x = g.array("in", n)
    flag = g.array("mask", n, type_=g.pick("int", "unsigned char"), low=0, high=g.between(2, 9))
    out = g.array("out", n, out=True)
    i, total = g.index(), g.name("sum")
    first = If(f"{flag[i]} == 0", f"{total} = {g.number(0)};")
    body: list[Code] = [first, g.add(total, formula(g, [x[i]], [], 1)), f"{out[i]} = {total};"]
    if g.chance(0.4):
        count = g.name("cnt")
        out2 = g.array("out2", n, out=True, type_="int")
        code: list[Code] = [
            g.let("int", count, "0"),
            g.let(g.real, total, "0"),
            g.loop(
                i,
                "0",
                n,
                If(f"{flag[i]} == 0", [f"{total} = {g.number(0)};", f"{count}++;"]),
                *body[1:],
                f"{out2[i]} = {count};",
            ),
        ]
    else:
        code = [g.let(g.real, total, "0"), g.loop(i, "0", n, *body)]
    return g.program(
        ("segment_sums", "restart_scan", "running_by_segment"),
        code,
        says="Running sums that begin anew at each mark.",
    )


@family("scans")
def decayed_sum(g: Grammar) -> Sketch:
    """Linear recurrences: exponential smoothing of several independent channels, or of one."""
    channels, n = g.size("rows", 40, 200), g.size("cols", 60, 200)
    x = g.array("in", channels, n)
    out = g.array("out", channels, n, out=True)
    a = g.scalar("scale", 0.1, 0.9)
    i, j, y = g.index("i"), g.index("j"), g.name("prev")
    one = g.number(1)
    step = g.pick(f"{y} = {a} * {x[i, j]} + ({one} - {a}) * {y};", f"{y} = {y} + {a} * ({x[i, j]} - {y});")
    inner: list[Code] = [step, f"{out[i, j]} = {g.pick(y, formula(g, [y, x[i, j]], [a], 1))};"]
    outer: list[Code] = [g.let(g.real, y, g.pick(x[i, "0"], g.number(0))), g.loop(j, "0", n, *inner)]
    if g.chance(0.3):
        outer += [
            f"{y} = {out[i, f'{n} - 1']};",
            g.loop(
                j, "0", n, f"{y} = {a} * {out[i, j]} + ({one} - {a}) * {y};", f"{out[i, j]} = {y};", down=True
            ),
        ]
    return g.program(
        ("smooth_channels", "ema", "leaky_rows", "low_pass"),
        g.loop(i, "0", channels, *outer),
        says="Exponential smoothing of each channel.",
    )
