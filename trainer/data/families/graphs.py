"""Nodes and edges."""

from __future__ import annotations

from trainer.data.grammar.code import Code, If, While
from trainer.data.grammar.formulas import formula
from trainer.data.grammar.grammar import Grammar, Sketch
from trainer.data.registry import family


@family("graphs")
def all_shortest_paths(g: Grammar) -> Sketch:
    """Floyd and Warshall, with distances, reachability or bottlenecks."""
    n = g.size("nodes", 24, 70)
    kind = g.between(0, 2)
    type_ = "int" if kind == 1 else g.pick("int", g.real)
    d = g.array("dist", n, n, type_=type_, inout=True, low=1, high=99)
    k, i, j, via = g.index("k"), g.index("i"), g.index("j"), g.name("tmp")
    if kind == 0:
        body: list[Code] = [
            g.let(type_, via, f"{d[i, k]} + {d[k, j]}", True),
            If(f"{via} < {d[i, j]}", f"{d[i, j]} = {via};"),
        ]
    elif kind == 1:
        body = [f"{d[i, j]} = {d[i, j]} || ({d[i, k]} && {d[k, j]});"]
        if g.chance(0.5):
            body = [If(f"{d[i, k]} && {d[k, j]}", f"{d[i, j]} = 1;")]
    else:
        body = [
            g.let(type_, via, f"{d[i, k]} < {d[k, j]} ? {d[i, k]} : {d[k, j]}", True),
            If(f"{via} > {d[i, j]}", f"{d[i, j]} = {via};"),
        ]
    outer: list[Code] = [g.loop(j, "0", n, *body)]
    if g.chance(0.3) and kind != 2:
        outer = [If(f"{d[i, k]} != 0", outer[0])] if kind == 1 else [If(f"{i} != {k}", outer[0])]
    code: list[Code] = [g.loop(k, "0", n, g.loop(i, "0", n, *outer))]
    if g.chance(0.3):
        code.insert(0, g.loop(i, "0", n, f"{d[i, i]} = {'1' if kind == 1 else '0'};"))
    if kind == 1:  # few edges, or everything is reached at once
        rare = f"{d[i, j]} = {d[i, j]} > {g.between(96, 98)};"
        code.insert(0, g.loop(i, "0", n, g.loop(j, "0", n, rare)))
    return g.program(
        ("floyd_warshall", "all_pairs_paths", "transitive_closure", "bottlenecks"),
        code,
        says="All pairs of nodes.",
    )


@family("graphs")
def relax_edges(g: Grammar) -> Sketch:
    """Bellman and Ford over an edge list, for a number of rounds."""
    n, m, rounds = g.size("nodes", 100, 600), g.size("edges", 800, 4000), g.size("steps", 2, 6)
    a, b = g.array("index", m, type_="int"), g.array("col_idx", m, type_="int")
    w = g.array("weights", m, type_=g.pick("int", g.real), low=1, high=20)
    d = g.array("dist", n, type_=w.type, extent=True, inout=True, low=0, high=500)
    t, e, new = g.index("t"), g.index("k"), g.name("tmp")
    relax: list[Code] = [
        g.let(w.type, new, f"{d[a[e]]} + {w[e]}", True),
        If(f"{new} < {d[b[e]]}", f"{d[b[e]]} = {new};"),
    ]
    if g.chance(0.3):
        relax.append(If(f"{d[b[e]]} + {w[e]} < {d[a[e]]}", f"{d[a[e]]} = {d[b[e]]} + {w[e]};"))
    return g.program(
        ("bellman_ford", "relax_edges", "shortest_rounds"),
        g.loop(t, "0", rounds, g.loop(e, "0", m, *relax)),
        says="Relaxes all edges, several times.",
    )


@family("graphs")
def rank_nodes(g: Grammar) -> Sketch:
    """PageRank and label propagation by pulling along in-edges."""
    n, m = g.size("nodes", 200, 1500), g.size("edges", 1500, 9000)
    rounds = g.size("steps", 2, 6) if g.chance(0.6) else ""
    ptr, src = (
        g.array("row_ptr", f"{n} + 1", type_="int", extent=True),
        g.array("col_idx", m, type_="int", extent=True),
    )
    rank, new = g.array("in", n, extent=True, inout=bool(rounds), low=0, high=1), g.array("out", n, out=True)
    weight = g.array("weights", n, extent=True, low=0.05, high=0.5)
    i, k, t, total = g.index("i"), g.index("k"), g.index("t"), g.name("sum")
    damp = g.number(g.pick(0.85, 0.9, 0.5))
    pull = g.pick(f"{rank[src[k]]} * {weight[src[k]]}", f"{rank[src[k]]}")
    share = g.pick(total, f"{g.number(0.1)} * {total}")
    sweep: Code = g.loop(
        i,
        "0",
        n,
        g.let(g.real, total, "0"),
        g.loop(k, ptr[i], ptr[f"{i} + 1"], g.add(total, pull)),
        f"{new[i]} = {g.number(0.15)} * {weight[i]} + {damp} * {share};",
    )
    if not rounds:
        return g.program(
            ("pagerank_step", "pull_ranks", "spread_scores"), sweep, says="One step of spreading scores."
        )
    back = g.loop(i, "0", n, f"{rank[i]} = {new[i]};")
    if g.chance(0.4):
        norm = g.name("sum2")
        back = g.loop(i, "0", n, f"{rank[i]} = {new[i]} / ({g.number(1)} + {norm});")
        return g.program(
            ("pagerank", "power_ranks"),
            g.loop(
                t, "0", rounds, sweep, g.let(g.real, norm, "0"), g.loop(i, "0", n, g.add(norm, new[i])), back
            ),
            says="Spreads scores and rescales them.",
        )
    return g.program(
        ("pagerank", "propagate", "diffuse_scores"),
        g.loop(t, "0", rounds, sweep, back),
        says="Spreads scores along the edges.",
    )


@family("graphs")
def breadth_first(g: Grammar) -> Sketch:
    """Levels from a source, sweep by sweep, or with a queue."""
    n, m = g.size("nodes", 100, 700), g.size("edges", 600, 3500)
    ptr, adj = (
        g.array("row_ptr", f"{n} + 1", type_="int", extent=True),
        g.array("col_idx", m, type_="int", extent=True),
    )
    level = g.array("dist", n, type_="int", extent=True, out=True)
    i, k, t, v = g.index("i"), g.index("k"), g.index("t"), g.name("where")
    clear = g.loop(i, "0", n, f"{level[i]} = -1;")
    start = If(f"{n} > 0", f"{level['0']} = 0;")
    if g.chance(0.6):
        most = g.constant("max_depth", str(g.between(6, 20)))
        visit = g.loop(k, ptr[i], ptr[f"{i} + 1"], If(f"{level[adj[k]]} < 0", f"{level[adj[k]]} = {t} + 1;"))
        code: list[Code] = [
            clear,
            start,
            g.loop(t, "0", most, g.loop(i, "0", n, If(f"{level[i]} == {t}", visit))),
        ]
        return g.program(("bfs_levels", "flood", "hop_counts"), code, says="Levels, one sweep a level.")
    queue, declared = g.local("index", f"{n} + 1", type_="int")
    head, tail = g.name("prev"), g.name("best")
    body: list[Code] = [
        g.let("int", v, queue[f"{head}++"], True),
        g.loop(
            k,
            ptr[v],
            ptr[f"{v} + 1"],
            If(
                f"{level[adj[k]]} < 0",
                [f"{level[adj[k]]} = {level[v]} + 1;", f"{queue[f'{tail}++']} = {adj[k]};"],
            ),
        ),
    ]
    code = [
        declared,
        g.let("int", head, "0"),
        g.let("int", tail, "0"),
        clear,
        If(f"{n} > 0", [f"{level['0']} = 0;", f"{queue[f'{tail}++']} = 0;"]),
        While(f"{head} < {tail}", body),
    ]
    return g.program(
        ("bfs", "bfs_queue", "reach_from_first"), code, says="Levels from the first node, with a queue."
    )


@family("graphs")
def triangles(g: Grammar) -> Sketch:
    """Triangles, common neighbours and degrees in a dense graph."""
    n = g.size("nodes", 40, 110)
    adj = g.array("matrix", n, n, type_=g.pick("int", "unsigned char"), low=0, high=1)
    i, j, k, c = g.index("i"), g.index("j"), g.index("k"), g.name("cnt")
    kind = g.between(0, 2)
    if kind == 0:
        code: list[Code] = [
            g.let("long", c, "0"),
            g.loop(
                i,
                "0",
                n,
                g.loop(
                    j,
                    f"{i} + 1",
                    n,
                    If(adj[i, j], g.loop(k, f"{j} + 1", n, If(f"{adj[j, k]} && {adj[i, k]}", f"{c}++;"))),
                ),
            ),
            f"return {c};",
        ]
        return g.program(
            ("count_triangles", "closed_triples"), code, returns="long", says="Counts triangles."
        )
    out = g.array("out", n, *([n] if kind == 1 else []), type_="int", out=True)
    if kind == 1:
        code = [
            g.loop(
                i,
                "0",
                n,
                g.loop(
                    j,
                    "0",
                    n,
                    g.let("int", c, "0"),
                    g.loop(k, "0", n, g.add(c, f"{adj[i, k]} & {adj[j, k]}")),
                    f"{out[i, j]} = {c};",
                ),
            )
        ]
    else:
        code = [
            g.loop(
                i,
                "0",
                n,
                g.let("int", c, "0"),
                g.loop(
                    j,
                    "0",
                    n,
                    If(
                        f"{adj[i, j]} && {i} != {j}",
                        g.loop(k, "0", n, If(f"{adj[i, k]} && {adj[j, k]}", f"{c}++;")),
                    ),
                ),
                f"{out[i]} = {c};",
            )
        ]
    return g.program(
        ("common_neighbours", "local_triangles", "clustering"), code, says="Neighbours in common."
    )


@family("graphs")
def edge_scores(g: Grammar) -> Sketch:
    """Something for each edge, and sums of it for each node."""
    n, m = g.size("nodes", 300, 2000), g.size("edges", 1500, 9000)
    a, b = g.array("index", m, type_="int"), g.array("col_idx", m, type_="int")
    x = g.array("in", n, extent=True)
    e = g.index("k")
    out = g.array("out", m, out=True)
    value = formula(g, [x[a[e]], x[b[e]]], [], 1)
    code: list[Code] = [g.loop(e, "0", m, f"{out[e]} = {value};")]
    if g.chance(0.6):
        node = g.array("out2", n, extent=True, inout=True)
        code.append(
            g.loop(
                e,
                "0",
                m,
                g.add(node[a[e]], out[e]),
                *([g.add(node[b[e]], out[e], "-")] if g.chance(0.5) else []),
            )
        )
    if g.chance(0.3):
        cut, t = g.name("cnt"), g.name("limit")
        code += [
            g.let("int", cut, "0"),
            g.let(g.real, t, g.number(0.2), True),
            g.loop(e, "0", m, If(f"{out[e]} > {t}", f"{cut}++;")),
            f"return {cut};",
        ]
        return g.program(
            ("edge_energy", "count_strong_edges"),
            code,
            returns="int",
            says="Scores edges and counts strong ones.",
        )
    return g.program(("edge_gradients", "edge_scores", "flux"), code, says="A score for each edge.")
