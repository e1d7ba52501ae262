"""Tables filled in an order that earlier entries decide."""

from __future__ import annotations

from trainer.data.grammar.code import Code, If
from trainer.data.grammar.grammar import Grammar, Sketch
from trainer.data.registry import family


@family("dynamic programming")
def alignment(g: Grammar) -> Sketch:
    """Edit distance, longest common subsequence, local alignment; the whole table or one row."""
    m, n = g.size("rows", 50, 160), g.size("cols", 50, 160)
    kind = g.pick("unsigned char", "char", "int")
    s, t = (
        g.array(p, size, type_=kind, low=97, high=97 + g.between(2, 5))
        for p, size in (("text", m), ("text2", n))
    )
    i, j, v, cost = g.index("i"), g.index("j"), g.name("tmp"), g.name("tmp2")
    flavour = g.between(0, 2)
    gap = 1 if flavour == 0 else g.between(1, 3)
    if g.chance(0.6):
        d = g.array("table", f"{m} + 1", f"{n} + 1", type_="int", out=True)
        zero = flavour != 0
        rim: list[Code] = [
            g.loop(i, "0", f"{m} + 1", f"{d[i, '0']} = {'0' if zero else i};"),
            g.loop(j, "0", f"{n} + 1", f"{d['0', j]} = {'0' if zero else j};"),
        ]
        diag, up, left = d[f"{i} - 1", f"{j} - 1"], d[f"{i} - 1", j], d[i, f"{j} - 1"]
        same = f"{s[f'{i} - 1']} == {t[f'{j} - 1']}"
        if flavour == 0:
            step: list[Code] = [
                g.let("int", v, f"{diag} + ({s[f'{i} - 1']} != {t[f'{j} - 1']})"),
                If(f"{up} + 1 < {v}", f"{v} = {up} + 1;"),
                If(f"{left} + 1 < {v}", f"{v} = {left} + 1;"),
                f"{d[i, j]} = {v};",
            ]
        elif flavour == 1:
            step = [If(same, f"{d[i, j]} = {diag} + 1;", f"{d[i, j]} = {up} > {left} ? {up} : {left};")]
        else:
            step = [
                g.let("int", cost, f"{same} ? {g.between(2, 4)} : -{g.between(1, 2)}"),
                g.let("int", v, f"{diag} + {cost}"),
                If(f"{up} - {gap} > {v}", f"{v} = {up} - {gap};"),
                If(f"{left} - {gap} > {v}", f"{v} = {left} - {gap};"),
                If(f"{v} < 0", f"{v} = 0;"),
                f"{d[i, j]} = {v};",
            ]
        code: list[Code] = [*rim, g.loop(i, "1", f"{m} + 1", g.loop(j, "1", f"{n} + 1", *step))]
        if flavour == 2 and g.chance(0.5):
            best = g.name("best")
            code += [
                g.let("int", best, "0"),
                g.loop(i, "1", f"{m} + 1", g.loop(j, "1", f"{n} + 1", g.maximum(best, d[i, j]))),
                f"return {best};",
            ]
            return g.program(
                ("local_align", "smith_waterman"), code, returns="int", says="Local alignment of two strings."
            )
        return g.program(
            ("edit_table", "lcs_table", "align", "distance_table"),
            code,
            says="The whole table of two strings.",
        )
    row, declared = g.local("dist", f"{n} + 1", type_="int")
    old, keep_ = g.name("prev"), g.name("tmp3")
    inner: list[Code] = [g.let("int", keep_, row[j])]
    if flavour == 1:
        inner += [
            If(
                f"{s[i]} == {t[f'{j} - 1']}",
                f"{row[j]} = {old} + 1;",
                If(f"{row[f'{j} - 1']} > {row[j]}", f"{row[j]} = {row[f'{j} - 1']};"),
            )
        ]
        start = "0"
    else:
        inner += [
            g.let("int", v, f"{old} + ({s[i]} != {t[f'{j} - 1']})"),
            If(f"{row[j]} + {gap} < {v}", f"{v} = {row[j]} + {gap};"),
            If(f"{row[f'{j} - 1']} + 1 < {v}", f"{v} = {row[f'{j} - 1']} + 1;"),
            f"{row[j]} = {v};",
        ]
        start = j
    code = [
        declared,
        g.loop(j, "0", f"{n} + 1", f"{row[j]} = {start};"),
        g.loop(
            i,
            "0",
            m,
            g.let("int", old, row["0"]),
            f"{row['0']} = {'0' if flavour == 1 else f'{i} + 1'};",
            g.loop(j, "1", f"{n} + 1", *inner, f"{old} = {keep_};"),
        ),
        f"return {row[n]};",
    ]
    return g.program(
        ("levenshtein", "lcs_length", "edit_distance", "similarity"),
        code,
        returns="int",
        says="One row of the table at a time.",
    )


@family("dynamic programming")
def knapsack(g: Grammar) -> Sketch:
    """Items and a capacity: 0/1, unbounded, or counting ways."""
    items, cap = g.size("n", 12, 40), g.size("limit", 200, 900)
    weight = g.array("in", items, type_="int", low=1, high=g.between(9, 40))
    kind = g.between(0, 2)
    dp = g.array("table", f"{cap} + 1", type_="long" if kind == 2 else "int", out=True)
    i, c, v = g.index("i"), g.index("j"), g.name("tmp")
    clear: Code = g.loop(c, "0", f"{cap} + 1", f"{dp[c]} = 0;")
    before = dp[f"{c} - {weight[i]}"]
    if kind == 2:
        inner: Code = g.loop(
            c, weight[i], f"{cap} + 1", f"{dp[c]} = ({dp[c]} + {before}) % {g.pick(10007, 65537, 1000003)};"
        )
        code: list[Code] = [clear, f"{dp['0']} = 1;", g.loop(i, "0", items, inner)]
    else:
        value = g.array("in2", items, type_="int", low=1, high=99)
        body: list[Code] = [
            g.let("int", v, f"{before} + {value[i]}", True),
            If(f"{v} > {dp[c]}", f"{dp[c]} = {v};"),
        ]
        code = [clear, g.loop(i, "0", items, g.loop(c, weight[i], f"{cap} + 1", *body, down=kind == 0))]
        if g.chance(0.3):
            code = [
                clear,
                g.loop(
                    i,
                    "0",
                    items,
                    If(f"{weight[i]} <= {cap}", g.loop(c, weight[i], f"{cap} + 1", *body, down=kind == 0)),
                ),
            ]
    return g.program(
        ("knapsack", "best_fill", "coin_ways", "subset_value"),
        code,
        says="Best value (or number of ways) for every capacity.",
    )


@family("dynamic programming")
def grid_paths(g: Grammar) -> Sketch:
    """Cheapest way through a grid, in two or three directions."""
    rows, cols = g.size("rows", 40, 150), g.size("cols", 40, 150)
    whole = g.chance(0.5)
    kind = "int" if whole else g.real
    cost = g.array("in", rows, cols, type_=kind, low=0, high=9 if whole else 1)
    d = g.array("dist", rows, cols, type_=kind, out=True)
    i, j, best = g.index("i"), g.index("j"), g.name("best")
    if g.chance(0.5):
        first: list[Code] = [g.loop(j, "0", cols, f"{d['0', j]} = {cost['0', j]};")]
        body: list[Code] = [
            g.let(kind, best, d[f"{i} - 1", j]),
            If(f"{j} > 0 && {d[f'{i} - 1', f'{j} - 1']} < {best}", f"{best} = {d[f'{i} - 1', f'{j} - 1']};"),
            If(
                f"{j} < {cols} - 1 && {d[f'{i} - 1', f'{j} + 1']} < {best}",
                f"{best} = {d[f'{i} - 1', f'{j} + 1']};",
            ),
            f"{d[i, j]} = {best} + {cost[i, j]};",
        ]
        code: list[Code] = [*first, g.loop(i, "1", rows, g.loop(j, "0", cols, *body))]
        return g.program(
            ("seam_costs", "path_down", "cheapest_descent"), code, says="Three ways down from each cell."
        )
    least = g.chance(0.7)
    sign = "<" if least else ">"
    up, left = d[f"{i} - 1", j], d[i, f"{j} - 1"]
    choice: Code = f"{d[i, j]} = {cost[i, j]} + ({up} {sign} {left} ? {up} : {left});"
    if g.chance(0.5):
        code = [
            If(f"{rows} < 1 || {cols} < 1", "return;"),
            f"{d['0', '0']} = {cost['0', '0']};",
            g.loop(j, "1", cols, f"{d['0', j]} = {d['0', f'{j} - 1']} + {cost['0', j]};"),
            g.loop(
                i,
                "1",
                rows,
                f"{d[i, '0']} = {d[f'{i} - 1', '0']} + {cost[i, '0']};",
                g.loop(j, "1", cols, choice),
            ),
        ]
    else:
        code = [
            g.loop(
                i,
                "0",
                rows,
                g.loop(
                    j,
                    "0",
                    cols,
                    If(
                        f"{i} == 0 && {j} == 0",
                        f"{d[i, j]} = {cost[i, j]};",
                        If(
                            f"{i} == 0",
                            f"{d[i, j]} = {left} + {cost[i, j]};",
                            If(f"{j} == 0", f"{d[i, j]} = {up} + {cost[i, j]};", choice),
                        ),
                    ),
                ),
            )
        ]
    return g.program(
        ("min_path", "grid_cost", "best_route", "dtw_table"),
        code,
        says="Costs of the best way to every cell.",
    )


@family("dynamic programming")
def viterbi(g: Grammar) -> Sketch:
    """Scores of the best or of all paths through states."""
    steps, states = g.size("rows", 20, 60), g.size("cols", 12, 40)
    trans = g.array("matrix", states, states, low=-1, high=0)
    emit = g.array("in", steps, states)
    score = g.array("table", steps, states, out=True)
    t, s, p, best, v = g.index("t"), g.index("i"), g.index("j"), g.name("best"), g.name("tmp")
    first = g.loop(s, "0", states, f"{score['0', s]} = {emit['0', s]};")
    through = f"{score[f'{t} - 1', p]} + {trans[p, s]}"
    if g.chance(0.6):
        inner: list[Code] = [
            g.let(g.real, best, f"{score[f'{t} - 1', '0']} + {trans['0', s]}"),
            g.loop(p, "1", states, g.let(g.real, v, through, True), g.maximum(best, v)),
        ]
        if g.chance(0.5):
            back, at = g.array("out2", steps, states, type_="int", out=True), g.name("where")
            first = g.loop(s, "0", states, f"{score['0', s]} = {emit['0', s]};", f"{back['0', s]} = 0;")
            inner = [
                g.let(g.real, best, f"{score[f'{t} - 1', '0']} + {trans['0', s]}"),
                g.let("int", at, "0"),
                g.loop(
                    p,
                    "1",
                    states,
                    g.let(g.real, v, through, True),
                    If(f"{v} > {best}", [f"{best} = {v};", f"{at} = {p};"]),
                ),
                f"{back[t, s]} = {at};",
            ]
        end = f"{score[t, s]} = {best} + {emit[t, s]};"
    else:
        inner = [
            g.let(g.real, best, "0"),
            g.loop(p, "0", states, g.add(best, f"{score[f'{t} - 1', p]} * {g.math('exp', trans[p, s])}")),
        ]
        end = f"{score[t, s]} = {best} * {g.number(0.05)} + {g.number(0.1)} * {emit[t, s]};"
    return g.program(
        ("viterbi", "best_paths", "forward_pass", "decode_states"),
        [first, g.loop(t, "1", steps, g.loop(s, "0", states, *inner, end))],
        says="Scores of paths through the states.",
    )


@family("dynamic programming")
def interval_table(g: Grammar) -> Sketch:
    """Intervals by growing length: matrix chains, optimal trees, palindromes."""
    n = g.size("n", 30, 70)
    kind = g.between(0, 2)
    length, i, j, k, v = g.index("t"), g.index("i"), g.name("j"), g.index("k"), g.name("tmp")
    if kind == 2:
        s = g.array("text", n, type_="int", low=0, high=g.between(2, 5))
        d = g.array("table", n, n, type_="int", out=True)
        below, before = d[f"{i} + 1", j], d[i, f"{j} - 1"]
        inside = f"{length} == 2 ? 0 : {d[f'{i} + 1', f'{j} - 1']}"
        step: list[Code] = [
            If(
                f"{s[i]} == {s[j]}",
                f"{d[i, j]} = ({inside}) + 2;",
                f"{d[i, j]} = {below} > {before} ? {below} : {before};",
            )
        ]
        single = f"{d[i, i]} = 1;"
    else:
        p = g.array("in", f"{n} + 1", type_="int", low=1, high=30)
        d = g.array("table", n, n, type_="long", out=True)
        join = (
            f"{p[i]} * {p[f'{k} + 1']} * {p[f'{j} + 1']}"
            if kind == 0
            else f"{p[i]} + {p[f'{j} + 1']} + {p[k]}"
        )
        step = [
            f"{d[i, j]} = {2**40};",
            g.loop(
                k,
                i,
                j,
                g.let("long", v, f"{d[i, k]} + {d[f'{k} + 1', j]} + {join}", True),
                If(f"{v} < {d[i, j]}", f"{d[i, j]} = {v};"),
            ),
        ]
        single = f"{d[i, i]} = 0;"
    clear = g.loop(i, "0", n, g.loop(k, "0", n, f"{d[i, k]} = 0;"))
    code: list[Code] = [
        clear,
        g.loop(i, "0", n, single),
        g.loop(
            length,
            "2",
            f"{n} + 1",
            g.loop(i, "0", f"{n} - {length} + 1", g.let("int", j, f"{i} + {length} - 1", True), *step),
        ),
    ]
    return g.program(
        ("matrix_chain", "interval_costs", "best_bracketing", "palindrome_table"),
        code,
        says="Intervals, shorter ones first.",
    )


@family("dynamic programming")
def increasing(g: Grammar) -> Sketch:
    """Longest increasing runs and chains over all earlier elements."""
    n = g.size("n", 150, 500)
    x = g.array("in", n, type_=g.pick("int", None))
    best = g.array("out", n, type_="int", out=True)
    i, j, v = g.index("i"), g.index("j"), g.name("tmp")
    test = f"{x[j]} {g.pick('<', '<=', '>')} {x[i]}"
    gain = g.pick("1", f"1 + ({i} - {j} > {g.between(2, 9)})")
    body: list[Code] = [
        f"{best[i]} = 1;",
        g.loop(
            j, "0", i, If(f"{test} && {best[j]} + {gain} > {best[i]}", f"{best[i]} = {best[j]} + {gain};")
        ),
    ]
    if g.chance(0.4):
        body = [
            g.let("int", v, "0"),
            g.loop(j, "0", i, If(test, g.maximum(v, best[j]))),
            f"{best[i]} = {v} + {g.between(1, 3)};",
        ]
    code: list[Code] = [g.loop(i, "0", n, *body)]
    if g.chance(0.5):
        top = g.name("best")
        code += [g.let("int", top, "0"), g.loop(i, "0", n, g.maximum(top, best[i])), f"return {top};"]
        return g.program(
            ("longest_increasing", "chain_length"),
            code,
            returns="int",
            says="Longest chains, and the longest of all.",
        )
    return g.program(
        ("chains", "increasing_runs", "rank_chains"),
        code,
        says="The longest chain that ends at each element.",
    )
