"""Each cell from its neighbours, often many times over."""

from __future__ import annotations

from trainer.data.grammar.code import Code, If
from trainer.data.grammar.grammar import Array, Grammar, Sketch
from trainer.data.registry import family


def _off(index: str, by: int) -> str:
    return index if by == 0 else f"{index} {'+' if by > 0 else '-'} {abs(by)}"


@family("stencils")
def rod(g: Grammar) -> Sketch:
    """One dimension: diffusion, advection or waves, with or without a time loop."""
    n = g.size("n", 1000, 12000)
    timed = g.chance(0.6)
    steps = g.size("steps", 2, 8) if timed else ""
    u = g.array("grid", n, inout=timed)
    v = g.array("grid2", n, out=True)
    c = g.scalar("rate", 0.05, 0.4)
    i, t = g.index(), g.index("t")
    reach = g.between(1, 3)
    terms = [f"{u[_off(i, -k)]} + {u[_off(i, k)]}" for k in range(1, reach + 1)]
    weights = [g.number(round(g.rng.uniform(0.05, 0.3), 2)) for _ in terms]
    smooth = " + ".join(f"{w} * ({t_})" for w, t_ in zip(weights, terms, strict=True))
    value = g.pick(
        f"{u[i]} + {c} * ({terms[0]} - {g.number(2)} * {u[i]})",
        f"{c} * {u[i]} + {smooth}",
        f"{u[i]} - {c} * ({u[i]} - {u[_off(i, -1)]})",
        f"{smooth} - {c} * {u[i]} * {u[i]} * {g.number(0.01)}",
    )
    edge = str(reach)
    sweep = g.loop(i, edge, f"{n} - {edge}", f"{v[i]} = {value};")
    kind = g.between(0, 2)
    if kind == 0:
        rim: list[Code] = [g.loop(i, "0", n, f"{v[i]} = {u[i]};")]
    elif kind == 1:
        rim = [
            If(f"{n} < {2 * reach + 1}", "return;"),
            g.loop(i, "0", edge, f"{v[i]} = {u[i]};", f"{v[f'{n} - 1 - {i}']} = {u[f'{n} - 1 - {i}']};"),
        ]
    else:
        left, right = g.name("tmp"), g.name("tmp2")
        sweep = g.loop(
            i,
            "0",
            n,
            g.let("int", left, f"{i} == 0 ? {n} - 1 : {i} - 1", True),
            g.let("int", right, f"{i} == {n} - 1 ? 0 : {i} + 1", True),
            f"{v[i]} = {u[i]} + {c} * ({u[left]} - {g.number(2)} * {u[i]} + {u[right]});",
        )
        rim = []
    names = ("diffuse", "heat_rod", "relax_line", "smooth_steps", "advect")
    if not timed:
        return g.program(names, [*rim, sweep], says="One sweep along the line.")
    back: Code = g.loop(i, "0", n, f"{u[i]} = {v[i]};")
    return g.program(names, g.loop(t, "0", steps, *rim, sweep, back), says="Explicit time steps on a line.")


@family("stencils")
def plate(g: Grammar) -> Sketch:
    """Two dimensions: five or nine points, copy back or swap, one sweep or many."""
    rows, cols = g.size("rows", 40, 140), g.size("cols", 40, 140)
    timed = g.chance(0.65)
    steps = g.size("steps", 2, 6) if timed else ""
    u = g.array("grid", rows, cols, inout=timed)
    v = g.array("grid2", rows, cols, out=True)
    c = g.scalar("rate", 0.02, 0.2)
    i, j, t = g.index("i"), g.index("j"), g.index("t")

    def at(a: Array, di: int, dj: int) -> str:
        return a[_off(i, di), _off(j, dj)]

    four = f"{at(u, -1, 0)} + {at(u, 1, 0)} + {at(u, 0, -1)} + {at(u, 0, 1)}"
    corners = f"{at(u, -1, -1)} + {at(u, -1, 1)} + {at(u, 1, -1)} + {at(u, 1, 1)}"
    kind = g.between(0, 4)
    value = (
        f"{u[i, j]} + {c} * ({four} - {g.number(4)} * {u[i, j]})",
        f"{g.number(0.25)} * ({four})",
        f"{g.number(0.2)} * ({four}) + {c} * ({corners})",
        f"{u[i, j]} - {c} * ({u[i, j]} - {at(u, -1, 0)}) - {c} * ({u[i, j]} - {at(u, 0, -1)})",
        f"{g.number(0.5)} * {u[i, j]} + {g.number(0.125)} * ({four})",
    )[kind]
    source = g.array("in2", rows, cols) if g.chance(0.3) else None
    if source is not None:
        value += f" + {c} * {source[i, j]}"
    inner = g.loop(i, "1", f"{rows} - 1", g.loop(j, "1", f"{cols} - 1", f"{v[i, j]} = {value};"))
    copy = g.loop(i, "0", rows, g.loop(j, "0", cols, f"{v[i, j]} = {u[i, j]};"))
    if g.chance(0.3):
        rim = If(
            f"{i} == 0 || {j} == 0 || {i} == {rows} - 1 || {j} == {cols} - 1",
            f"{v[i, j]} = {u[i, j]};",
            f"{v[i, j]} = {value};",
        )
        sweep: list[Code] = [g.loop(i, "0", rows, g.loop(j, "0", cols, rim))]
    elif g.chance(0.4):
        sides = [
            g.loop(
                j, "0", cols, f"{v['0', j]} = {u['0', j]};", f"{v[f'{rows} - 1', j]} = {u[f'{rows} - 1', j]};"
            ),
            g.loop(
                i, "0", rows, f"{v[i, '0']} = {u[i, '0']};", f"{v[i, f'{cols} - 1']} = {u[i, f'{cols} - 1']};"
            ),
        ]
        sweep = [If(f"{rows} < 2 || {cols} < 2", "return;"), *sides, inner] if not timed else [*sides, inner]
    else:
        sweep = [copy, inner]
    names = ("jacobi", "heat_plate", "smooth_grid", "poisson_sweep", "five_point")
    if not timed:
        return g.program(names, sweep, says="One sweep over the inner cells.")
    back = g.loop(i, "0", rows, g.loop(j, "0", cols, f"{u[i, j]} = {v[i, j]};"))
    return g.program(names, g.loop(t, "0", steps, *sweep, back), says="Repeated sweeps over the grid.")


@family("stencils")
def block3d(g: Grammar) -> Sketch:
    """Three dimensions, seven points or more."""
    nz, ny, nx = g.size("layers", 8, 24), g.size("rows", 16, 36), g.size("cols", 24, 48)
    u, v = g.array("grid", nz, ny, nx), g.array("grid2", nz, ny, nx, out=True)
    k, i, j = g.index("k"), g.index("i"), g.index("j")
    c = g.scalar("rate", 0.05, 0.15)
    around = [
        u[_off(k, a), _off(i, b), _off(j, d)]
        for a, b, d in ((-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1))
    ]
    if g.chance(0.3):
        around += [u[_off(k, a), _off(i, b), j] for a in (-1, 1) for b in (-1, 1)]
    total = " + ".join(around)
    value = g.pick(
        f"{u[k, i, j]} + {c} * ({total} - {g.number(len(around))} * {u[k, i, j]})",
        f"{c} * ({total})",
        f"{g.number(0.4)} * {u[k, i, j]} + {c} * ({total})",
    )
    if g.chance(0.4):
        weight = g.array("weights", nz, ny, nx)
        value = f"{weight[k, i, j]} * ({value})"
    inner: Code = f"{v[k, i, j]} = {value};"
    rim = f"{k} == 0 || {k} == {nz} - 1 || {i} == 0 || {i} == {ny} - 1 || {j} == 0 || {j} == {nx} - 1"
    if g.chance(0.4):
        order = [(k, nz), (i, ny), (j, nx)]
        if g.chance(0.3):
            order.reverse()
        code: Code = If(rim, f"{v[k, i, j]} = {u[k, i, j]};", inner)
        for var, bound in reversed(order):
            code = g.loop(var, "0", bound, code)
    else:
        copy = g.loop(
            k,
            "0",
            nz,
            g.loop(i, "0", ny, g.loop(j, "0", nx, f"{v[k, i, j]} = {g.pick(u[k, i, j], g.number(0))};")),
        )
        code = [
            copy,
            g.loop(k, "1", f"{nz} - 1", g.loop(i, "1", f"{ny} - 1", g.loop(j, "1", f"{nx} - 1", inner))),
        ]
    return g.program(
        ("laplace3d", "seven_point", "diffuse_volume", "relax_block"),
        code,
        says="Neighbours in three dimensions.",
    )


@family("stencils")
def wave(g: Grammar) -> Sketch:
    """Three time levels."""
    rows, cols = g.size("rows", 40, 120), g.size("cols", 40, 120)
    steps = g.size("steps", 2, 6)
    p, q = g.array("grid", rows, cols, inout=True), g.array("grid2", rows, cols, inout=True)
    c = g.scalar("rate", 0.05, 0.3)
    i, j, t, lap = g.index("i"), g.index("j"), g.index("t"), g.name("tmp")
    around = " + ".join((q[f"{i} - 1", j], q[f"{i} + 1", j], q[i, f"{j} - 1"], q[i, f"{j} + 1"]))
    inside = [
        g.let(
            g.real,
            lap,
            f"{around} - {g.number(4)} * {q[i, j]}",
            True,
        ),
        f"{p[i, j]} = {g.number(2)} * {q[i, j]} - {p[i, j]} + {c} * {lap};",
    ]
    sweep = g.loop(i, "1", f"{rows} - 1", g.loop(j, "1", f"{cols} - 1", *inside))
    if g.chance(0.5):
        mid = g.name("tmp2")
        swap: Code = g.loop(
            i,
            "0",
            rows,
            g.loop(
                j,
                "0",
                cols,
                g.let(g.real, mid, p[i, j], True),
                f"{p[i, j]} = {q[i, j]};",
                f"{q[i, j]} = {mid};",
            ),
        )
        body: list[Code] = [sweep, swap]
    else:
        inside2 = [
            line.replace(p.name + "[", "\0").replace(q.name + "[", p.name + "[").replace("\0", q.name + "[")
            for line in inside
        ]
        body = [sweep, g.loop(i, "1", f"{rows} - 1", g.loop(j, "1", f"{cols} - 1", *inside2))]
    if g.chance(0.4):
        damp = g.number(0.99)
        body.append(g.loop(i, "0", rows, g.loop(j, "0", cols, g.add(q[i, j], damp, "*"))))
    return g.program(
        ("wave_steps", "membrane", "leapfrog_grid", "acoustic"),
        g.loop(t, "0", steps, *body),
        says="The wave equation on a plate.",
    )


@family("stencils")
def cells(g: Grammar) -> Sketch:
    """Cellular automata over small integers."""
    kind = g.pick("int", "unsigned char")
    rows, cols = g.size("rows", 40, 150), g.size("cols", 40, 150)
    u = g.array("grid", rows, cols, type_=kind, low=0, high=1)
    v = g.array("grid2", rows, cols, type_=kind, out=True)
    i, j, a, b, count = g.index("i"), g.index("j"), g.name("dx"), g.name("dy"), g.name("cnt")
    y, x = g.name("tmp"), g.name("tmp2")
    edge = g.chance(0.5)
    place: list[Code] = [g.let("int", y, f"{i} + {a}", True), g.let("int", x, f"{j} + {b}", True)]
    if edge:
        visit: list[Code] = [
            *place,
            If(f"{y} >= 0 && {y} < {rows} && {x} >= 0 && {x} < {cols}", g.add(count, u[y, x])),
        ]
    else:
        visit = [
            g.let("int", y, f"({i} + {a} + {rows}) % {rows}", True),
            g.let("int", x, f"({j} + {b} + {cols}) % {cols}", True),
            g.add(count, u[y, x]),
        ]
    skip = If(f"{a} == 0 && {b} == 0", "continue;")
    around = g.loop(a, "-1", "2", g.loop(b, "-1", "2", *([skip] if g.chance(0.7) else []), *visit))
    born, low = g.between(2, 4), g.between(1, 3)
    rule = g.pick(
        f"{v[i, j]} = {count} == {born} || ({u[i, j]} && {count} == {low});",
        f"{v[i, j]} = ({count} + {u[i, j]}) % 2;",
        f"{v[i, j]} = {u[i, j]} ? {count} >= {low} && {count} <= {born} : {count} == {born};",
    )
    return g.program(
        ("life_step", "automaton", "evolve_cells", "next_generation"),
        g.loop(i, "0", rows, g.loop(j, "0", cols, g.let("int", count, "0"), around, rule)),
        says="One generation.",
    )


@family("stencils")
def gauss_seidel(g: Grammar) -> Sketch:
    """In place: red and black cells in turn, or in reading order."""
    rows, cols = g.size("rows", 30, 100), g.size("cols", 30, 100)
    sweeps = g.size("steps", 2, 5)
    u = g.array("grid", rows, cols, inout=True)
    f = g.array("in2", rows, cols)
    i, j, t, colour = g.index("i"), g.index("j"), g.index("t"), g.name("k")
    around = " + ".join((u[f"{i} - 1", j], u[f"{i} + 1", j], u[i, f"{j} - 1"], u[i, f"{j} + 1"]))
    value = f"{g.number(0.25)} * ({around} - {f[i, j]})"
    if g.chance(0.3):
        w = g.scalar("scale", 1.0, 1.7)
        value = f"({g.number(1)} - {w}) * {u[i, j]} + {w} * {value}"
    store = f"{u[i, j]} = {value};"
    kind = g.between(0, 2)
    if kind == 0:
        body: Code = g.loop(i, "1", f"{rows} - 1", g.loop(j, "1", f"{cols} - 1", store))
    elif kind == 1:
        body = g.loop(
            colour,
            "0",
            "2",
            g.loop(
                i,
                "1",
                f"{rows} - 1",
                g.loop(j, "1", f"{cols} - 1", If(f"({i} + {j}) % 2 == {colour}", store)),
            ),
        )
    else:
        body = g.loop(
            colour,
            "0",
            "2",
            g.loop(
                i, "1", f"{rows} - 1", g.loop(j, f"1 + ({i} + {colour}) % 2", f"{cols} - 1", store, step="2")
            ),
        )
    return g.program(
        ("gauss_seidel", "red_black", "sor_sweeps", "relax_in_place"),
        g.loop(t, "0", sweeps, body),
        says="Relaxes the grid in place.",
    )
