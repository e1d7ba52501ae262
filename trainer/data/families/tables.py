"""Columns of a table: filters, groups, joins, sorting."""

from __future__ import annotations

from trainer.data.grammar.code import Code, If, While
from trainer.data.grammar.grammar import Grammar, Sketch
from trainer.data.registry import family


@family("tables")
def filter_rows(g: Grammar) -> Sketch:
    """Keeps the rows that qualify, one behind the other."""
    n = g.size("n", 1500, 12000)
    key = g.array("key", n, type_="int", low=0, high=g.pick(100, 1000))
    val = g.array("in", n)
    i, c = g.index("i"), g.name("cnt")
    limit = g.between(10, 60)
    test = g.pick(
        f"{key[i]} < {limit}",
        f"{key[i]} % {g.between(2, 7)} == 0",
        f"{val[i]} > {g.number(0)} && {key[i]} >= {limit}",
    )
    kind = g.between(0, 2)
    if kind == 0:
        out = g.array("out", n, inout=True, extent=True)
        store: list[Code] = [f"{out[f'{c}']} = {val[i]};", f"{c}++;"]
        if g.chance(0.5):
            out2 = g.array("out2", n, type_="int", inout=True, extent=True)
            store.insert(1, f"{out2[c]} = {i};")
        code: list[Code] = [g.let("int", c, "0"), g.loop(i, "0", n, If(test, store)), f"return {c};"]
        return g.program(
            ("select_rows", "compact", "filter_table"),
            code,
            returns="int",
            says="Copies the rows that qualify, closed up.",
        )
    if kind == 1:
        flag = g.array("mask", n, type_="int", out=True)
        code = [
            g.loop(i, "0", n, f"{flag[i]} = {test};"),
            g.let("int", c, "0"),
            g.loop(i, "0", n, If(flag[i], f"{c}++;")),
            f"return {c};",
        ]
        return g.program(
            ("mark_rows", "where_clause"), code, returns="int", says="Marks and counts the rows that qualify."
        )
    total, most = g.name("sum"), g.name("best")
    code = [
        g.let(g.real, total, "0"),
        g.let(g.real, most, g.number(0)),
        g.let("int", c, "1"),
        g.loop(i, "0", n, If(test, [g.add(total, val[i]), f"{c}++;", g.maximum(most, val[i])])),
        f"return {g.pick(f'{total} / {c}', f'{total} / {c} + {most}')};",
    ]
    return g.program(
        ("filtered_mean", "select_sum", "aggregate_where"),
        code,
        returns=g.real,
        says="Aggregates the rows that qualify.",
    )


@family("tables")
def group_by(g: Grammar) -> Sketch:
    """Sums, counts, extremes and means for each key."""
    n, k = g.size("n", 2000, 14000), g.size("keys", 16, 120)
    key = g.array("key", n, type_="int")
    whole = g.chance(0.4)
    val = g.array("in", n, type_="int" if whole else None)
    total = g.array("out", k, type_="long" if whole else None, out=True, extent=True)
    i, b = g.index("i"), g.index("j")
    kind = g.between(0, 3)
    clear = f"{total[b]} = 0;"
    if kind == 0:
        code: list[Code] = [g.loop(b, "0", k, clear), g.loop(i, "0", n, g.add(total[key[i]], val[i]))]
    elif kind == 1:
        count = g.array("out2", k, type_="int", out=True, extent=True)
        code = [
            g.loop(b, "0", k, clear, f"{count[b]} = 0;"),
            g.loop(i, "0", n, g.add(total[key[i]], val[i]), f"{count[key[i]]}++;"),
            g.loop(b, "0", k, If(f"{count[b]} > 0", g.add(total[b], count[b], "/"))),
        ]
    elif kind == 2:
        least = g.chance(0.5)
        low = "1000000" if whole else g.number(1e6)
        code = [
            g.loop(b, "0", k, f"{total[b]} = {low if least else '-' + low};"),
            g.loop(
                i,
                "0",
                n,
                If(f"{val[i]} {'<' if least else '>'} {total[key[i]]}", f"{total[key[i]]} = {val[i]};"),
            ),
        ]
    else:
        t = g.name("sum")
        code = [
            g.loop(
                b,
                "0",
                k,
                g.let(total.type, t, "0"),
                g.loop(i, "0", n, If(f"{key[i]} == {b}", g.add(t, val[i]))),
                f"{total[b]} = {t};",
            )
        ]
        if g.chance(0.7):  # otherwise keys need not be valid places
            code.append(g.loop(i, "0", n, g.add(total[key[i]], g.pick("1", val[i]))))
    return g.program(
        ("group_sums", "group_by_key", "aggregate_groups", "totals_by_category"),
        code,
        says="One aggregate for each key.",
    )


@family("tables")
def join_tables(g: Grammar) -> Sketch:
    """For each row of one table the partner in the other: by search, by index, or by comparing all."""
    kind = g.between(0, 2)
    n = g.size("rows", 150, 700) if kind == 0 else g.size("rows", 800, 6000)
    m = g.size("cols", 100, 400)
    left = g.array("key", n, type_="int", low=0, high=500)
    i, j, at = g.index("i"), g.index("j"), g.name("where")
    val = g.array("in2", m)
    out = g.array("out", n, out=True)
    if kind == 0:
        right = g.array("index", m, type_="int", low=0, high=500)
        if g.chance(0.5):
            total = g.name("sum")
            code: Code = g.loop(
                i,
                "0",
                n,
                g.let(g.real, total, "0"),
                g.loop(j, "0", m, If(f"{left[i]} == {right[j]}", g.add(total, val[j]))),
                f"{out[i]} = {total};",
            )
        else:
            code = g.loop(
                i,
                "0",
                n,
                f"{out[i]} = {g.number(-1)};",
                g.loop(j, "0", m, If(f"{left[i]} == {right[j]}", [f"{out[i]} = {val[j]};", "break;"])),
            )
        return g.program(
            ("nested_join", "lookup_join", "match_rows"), code, says="Joins by comparing with every row."
        )
    if kind == 1:
        lo, hi, mid = g.name("low"), g.name("high"), g.name("tmp")
        step = g.between(1, 5)
        search = While(
            f"{lo} < {hi}",
            [
                g.let("int", mid, f"({lo} + {hi}) / 2", True),
                If(f"{mid} * {step} < {left[i]}", f"{lo} = {mid} + 1;", f"{hi} = {mid};"),
            ],
        )
        code = g.loop(
            i,
            "0",
            n,
            g.let("int", lo, "0"),
            g.let("int", hi, m),
            search,
            f"{out[i]} = {lo} < {m} && {lo} * {step} == {left[i]} ? {val[lo]} : {g.number(0)};",
        )
        return g.program(
            ("sorted_join", "bisect_join"), code, says="Joins with a table whose keys are evenly spaced."
        )
    code = g.loop(
        i,
        "0",
        n,
        g.let("int", at, f"{left[i]} % {m}", True),
        If(f"{left[i]} < {m}", f"{out[i]} = {val[at]};", f"{out[i]} = {g.pick(g.number(0), '-' + val[at])};"),
    )
    return g.program(
        ("index_join", "fetch_dimension", "left_join"), code, says="Joins through the key as a place."
    )


@family("tables")
def sort_rows(g: Grammar) -> Sketch:
    """Sorts: by rank, by exchange, by insertion, one array or many short ones."""
    kind = g.between(0, 4)
    type_ = g.pick("int", g.real)
    i, j, t, r = g.index("i"), g.index("j"), g.name("tmp"), g.name("cnt")
    names = ("sort_values", "order_rows", "sort_keys", "arrange")
    if kind == 0:
        n = g.size("n", 150, 600)
        x, out = g.array("in", n, type_=type_), g.array("out", n, type_=type_, inout=True)
        code: Code = g.loop(
            i,
            "0",
            n,
            g.let("int", r, "0"),
            g.loop(j, "0", n, If(f"{x[j]} < {x[i]} || ({x[j]} == {x[i]} && {j} < {i})", f"{r}++;")),
            f"{out[r]} = {x[i]};",
        )
        return g.program(names, code, says="Each value goes where its rank says.")
    if kind == 1:
        rows, w = g.size("rows", 100, 600), g.size("window", 6, 24)
        x = g.array("in", rows, w, type_=type_, inout=True)
        a = g.index("k")
        inner: list[Code] = [
            g.loop(
                i,
                "1",
                w,
                g.let(type_, t, x[a, i]),
                g.let("int", r, f"{i} - 1"),
                While(f"{r} >= 0 && {x[a, r]} > {t}", [f"{x[a, f'{r} + 1']} = {x[a, r]};", f"{r}--;"]),
                f"{x[a, f'{r} + 1']} = {t};",
            )
        ]
        return g.program(names, g.loop(a, "0", rows, *inner), says="Sorts every row.")
    n = g.size("n", 80, 300)
    x = g.array("in", n, type_=type_, inout=True)
    swap: list[Code] = [g.let(type_, t, x[j]), f"{x[j]} = {x[f'{j} + 1']};", f"{x[f'{j} + 1']} = {t};"]
    if kind == 2:
        code = g.loop(
            i, "0", n, g.loop(j, f"{i} % 2", f"{n} - 1", If(f"{x[j]} > {x[f'{j} + 1']}", swap), step="2")
        )
        return g.program(names, code, says="Odd and even neighbours in turn.")
    if kind == 3:
        code = g.loop(
            i,
            "0",
            n,
            g.loop(j, "0", f"{n} - {i} - 1", If(f"{x[j]} {g.pick('>', '<')} {x[f'{j} + 1']}", swap)),
        )
        return g.program(names, code, says="Neighbours change places until all is in order.")
    code = g.loop(
        i,
        "0",
        f"{n} - 1",
        g.let("int", r, i),
        g.loop(j, f"{i} + 1", n, If(f"{x[j]} < {x[r]}", f"{r} = {j};")),
        g.let(type_, t, x[i]),
        f"{x[i]} = {x[r]};",
        f"{x[r]} = {t};",
    )
    return g.program(names, code, says="Selects the least of what is left.")


@family("tables")
def top_values(g: Grammar) -> Sketch:
    """The k best of each row, or of all."""
    rows, cols = g.size("rows", 80, 400), g.size("cols", 30, 120)
    k = g.between(2, 5)
    size = g.constant("top", str(k))
    x = g.array("in", rows, cols)
    out = g.array("out", rows, size, out=True, flat=True)
    i, j, a, b = g.index("i"), g.index("j"), g.index("k"), g.index("t")

    def at(place: str) -> str:
        return f"{out.name}[{i} * {size} + {place}]"

    clear = g.loop(a, "0", size, f"{at(a)} = -{g.number(1e30)};")
    shift = g.loop(b, f"{a} + 1", size, f"{at(b)} = {at(f'{b} - 1')};", down=True)
    insert = g.loop(a, "0", size, If(f"{x[i, j]} > {at(a)}", [shift, f"{at(a)} = {x[i, j]};", "break;"]))
    if g.chance(0.4):
        best, where = g.name("best"), g.name("where")
        used = g.array("grid2", rows, cols, type_="int", out=True)
        pick: list[Code] = [
            g.loop(j, "0", cols, f"{used[i, j]} = 0;"),
            g.loop(
                a,
                "0",
                size,
                g.let(g.real, best, f"-{g.number(1e30)}"),
                g.let("int", where, "0"),
                g.loop(
                    j,
                    "0",
                    cols,
                    If(f"!{used[i, j]} && {x[i, j]} > {best}", [f"{best} = {x[i, j]};", f"{where} = {j};"]),
                ),
                f"{used[i, where]} = 1;",
                f"{at(a)} = {best};",
            ),
        ]
        return g.program(
            ("top_k", "leaders"),
            g.loop(i, "0", rows, *pick),
            says=f"The best {k} of every row, one after the other.",
        )
    return g.program(
        ("top_k", "best_of_row", "leaders"),
        g.loop(i, "0", rows, clear, g.loop(j, "0", cols, insert)),
        says=f"The best {k} of every row.",
    )


@family("tables")
def window_rows(g: Grammar) -> Sketch:
    """Comparisons with the row before: changes, gaps, streaks, distinct values of a sorted column."""
    n = g.size("n", 2000, 14000)
    x = g.array("in", n, type_="int", low=0, high=g.pick(3, 20, 500))
    i, run = g.index("i"), g.name("cnt")
    out = g.array("out", n, type_="int", out=True)
    kind = g.between(0, 3)
    if kind == 0:
        code: list[Code] = [
            g.loop(i, "0", n, If(f"{i} == 0", f"{out[i]} = {x[i]};", f"{out[i]} = {x[i]} - {x[f'{i} - 1']};"))
        ]
    elif kind == 1:
        code = [
            g.let("int", run, "0"),
            g.loop(
                i,
                "0",
                n,
                If(
                    f"{i} > 0 && {x[i]} {g.pick('==', '>=', '>')} {x[f'{i} - 1']}",
                    f"{run}++;",
                    f"{run} = {g.pick('0', '1')};",
                ),
                f"{out[i]} = {run};",
            ),
        ]
    elif kind == 2:
        code = [
            g.let("int", run, "0"),
            g.loop(
                i, "0", n, If(f"{i} == 0 || {x[i]} != {x[f'{i} - 1']}", f"{run}++;"), f"{out[i]} = {run};"
            ),
        ]
    else:
        back = g.between(2, 6)
        code = [
            g.loop(
                i,
                "0",
                n,
                f"{out[i]} = {i} >= {back} ? {g.between(2, 4)} * {x[i]} - {x[f'{i} - {back}']} : {x[i]};",
            )
        ]
    if g.chance(0.3):
        best = g.name("best")
        code += [g.let("int", best, "0"), g.loop(i, "0", n, g.maximum(best, out[i])), f"return {best};"]
        return g.program(
            ("longest_streak", "largest_change"),
            code,
            returns="int",
            says="Looks at each row and the one before.",
        )
    return g.program(
        ("differences", "streaks", "segment_ids", "lag_column"),
        code,
        says="Looks at each row and those before.",
    )
