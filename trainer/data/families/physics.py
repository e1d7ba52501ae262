"""Bodies, particles and fields."""

from __future__ import annotations

from trainer.data.grammar.code import Code, If, While
from trainer.data.grammar.formulas import formula
from trainer.data.grammar.grammar import Grammar, Sketch
from trainer.data.registry import family


@family("physics")
def all_pairs(g: Grammar) -> Sketch:
    """Forces between all bodies, in two or three dimensions, with or without a cutoff."""
    n = g.size("bodies", 120, 420)
    d = g.pick(2, 3)
    pos = [g.array(p, n) for p in ("pos", "pos2", "pos3")[:d]]
    mass = g.array("mass", n, low=0.5, high=2.0)
    acc = [g.array(p, n, out=True) for p in ("force", "force2", "out")[:d]]
    soft = g.scalar("eps", 0.05, 0.5)
    i, j, r2, inv = g.index("i"), g.index("j"), g.name("r2"), g.name("inv")
    sums = [g.name("sum") for _ in range(d)]
    deltas = [g.name(p) for p in ("dx", "dy", "dz")[:d]]
    square = " + ".join(f"{x} * {x}" for x in deltas)
    law = g.pick(
        f"{mass[j]} / ({r2} * {g.math('sqrt', r2)})",
        f"{mass[j]} / {r2}",
        f"{mass[i]} * {mass[j]} * {g.math('exp', f'-{r2}')}",
    )
    act: list[Code] = [
        g.let(g.real, inv, law, True),
        *(g.add(s, f"{inv} * {x}") for s, x in zip(sums, deltas, strict=True)),
    ]
    first: list[Code] = [
        *(g.let(g.real, x, f"{p[j]} - {p[i]}", True) for x, p in zip(deltas, pos, strict=True)),
        g.let(g.real, r2, f"{square} + {soft}", True),
    ]
    kind = g.between(0, 2)
    if kind == 1:
        act = [If(f"{r2} < {g.number(g.pick(1.5, 4, 9))}", act)]
    elif kind == 2:
        first = [If(f"{i} == {j}", "continue;"), *first]
    code = g.loop(
        i,
        "0",
        n,
        *(g.let(g.real, s, "0") for s in sums),
        g.loop(j, "0", n, *first, *act),
        *(f"{a[i]} = {s};" for a, s in zip(acc, sums, strict=True)),
    )
    return g.program(
        ("gravity", "pair_forces", "accelerations", "coulomb", "nbody_step"),
        code,
        says="Every body feels every other.",
    )


@family("physics")
def potential_energy(g: Grammar) -> Sketch:
    """One energy over all pairs, each once."""
    n = g.size("bodies", 120, 420)
    x, y = g.array("pos", n), g.array("pos2", n)
    i, j, r2, e, s6 = g.index("i"), g.index("j"), g.name("r2"), g.name("sum"), g.name("tmp")
    dx, dy = g.name("dx"), g.name("dy")
    kind = g.between(0, 2)
    pair: list[Code] = [
        g.let(g.real, dx, f"{x[i]} - {x[j]}", True),
        g.let(g.real, dy, f"{y[i]} - {y[j]}", True),
        g.let(g.real, r2, f"{dx} * {dx} + {dy} * {dy} + {g.number(g.pick(0.5, 0.8, 1.2))}", True),
    ]
    if kind == 0:
        pair += [
            g.let(g.real, s6, f"{g.number(1)} / ({r2} * {r2} * {r2})", True),
            g.add(e, f"{g.number(4)} * ({s6} * {s6} - {s6})"),
        ]
    elif kind == 1:
        pair.append(g.add(e, f"{g.number(1)} / {g.math('sqrt', r2)}"))
    else:
        pair.append(If(f"{r2} < {g.number(4)}", g.add(e, f"({g.number(4)} - {r2}) * ({g.number(4)} - {r2})")))
    start = f"{i} + 1" if g.chance(0.7) else "0"
    if g.chance(0.3):
        out = g.array("out", n, out=True)
        return g.program(
            ("site_energy", "local_energies"),
            g.loop(i, "0", n, g.let(g.real, e, "0"), g.loop(j, start, n, *pair), f"{out[i]} = {e};"),
            says="Energy of each body.",
        )
    return g.program(
        ("total_energy", "lennard_jones", "pair_potential"),
        [
            g.let(g.real if g.chance(0.6) else "double", e, "0"),
            g.loop(i, "0", n, g.loop(j, start, n, *pair)),
            f"return {e};",
        ],
        returns=g.real,
        says="Energy of all pairs.",
    )


@family("physics")
def independent_motion(g: Grammar) -> Sketch:
    """Many systems that do not feel each other, each integrated over time."""
    n, steps = g.size("bodies", 400, 3000), g.size("steps", 4, 24)
    x, v = g.array("pos", n, inout=True), g.array("vel", n, inout=True)
    dt, w = g.scalar("rate", 0.005, 0.05), g.scalar("scale", 0.5, 2.0)
    i, t, p, q, a = g.index("i"), g.index("t"), g.name("tmp"), g.name("tmp2"), g.name("tmp3")
    force = g.pick(
        f"-{w} * {g.math('sin', p)}",
        f"-{w} * {p} - {g.number(0.1)} * {q}",
        f"{w} * ({g.number(1)} - {p} * {p}) * {q} * {g.number(0.01)} - {p}",
        f"-{p} / ({g.number(1)} + {p} * {p})",
    )
    body: list[Code] = [g.let(g.real, a, force, True), g.add(q, f"{dt} * {a}"), g.add(p, f"{dt} * {q}")]
    if g.chance(0.4):
        body.append(If(f"{p} > {g.number(3)}", [f"{p} = {g.number(6)} - {p};", f"{q} = -{q};"]))
    if g.chance(0.6):
        code: Code = g.loop(
            i,
            "0",
            n,
            g.let(g.real, p, x[i]),
            g.let(g.real, q, v[i]),
            g.loop(t, "0", steps, *body),
            f"{x[i]} = {p};",
            f"{v[i]} = {q};",
        )
    else:
        code = g.loop(
            t,
            "0",
            steps,
            g.loop(
                i,
                "0",
                n,
                g.let(g.real, p, x[i]),
                g.let(g.real, q, v[i]),
                *body,
                f"{x[i]} = {p};",
                f"{v[i]} = {q};",
            ),
        )
    return g.program(
        ("pendulums", "integrate_all", "oscillators", "leapfrog"),
        code,
        says="Steps every system through time.",
    )


@family("physics")
def spring_chain(g: Grammar) -> Sketch:
    """Neighbours coupled on a line."""
    n, steps = g.size("bodies", 300, 3000), g.size("steps", 2, 10)
    x, v, f = g.array("pos", n, inout=True), g.array("vel", n, inout=True), g.array("force", n, out=True)
    k, dt = g.scalar("scale", 0.2, 1.5), g.scalar("rate", 0.01, 0.1)
    i, t, lt, r = g.index("i"), g.index("t"), g.name("tmp"), g.name("tmp2")
    ring = g.chance(0.3)
    left, right = (
        (f"{x[f'({i} + {n} - 1) % {n}']}", f"{x[f'({i} + 1) % {n}']}")
        if ring
        else (
            f"{i} > 0 ? {x[f'{i} - 1']} : {g.number(0)}",
            f"{i} < {n} - 1 ? {x[f'{i} + 1']} : {g.number(0)}",
        )
    )
    push = f"{k} * ({lt} - {g.number(2)} * {x[i]} + {r})"
    if g.chance(0.5):
        push += f" - {g.number(0.1)} * {x[i]} * {g.math('fabs', x[i])}"
    forces = g.loop(
        i, "0", n, g.let(g.real, lt, left, True), g.let(g.real, r, right, True), f"{f[i]} = {push};"
    )
    move: list[Code] = [g.loop(i, "0", n, g.add(v[i], f"{dt} * {f[i]}"), g.add(x[i], f"{dt} * {v[i]}"))]
    if g.chance(0.3):
        move = [
            g.loop(i, "0", n, g.add(v[i], f"{dt} * {f[i]}")),
            g.loop(i, "0", n, g.add(x[i], f"{dt} * {v[i]}")),
        ]
    return g.program(
        ("springs", "chain_dynamics", "lattice_steps", "vibrate"),
        g.loop(t, "0", steps, forces, *move),
        says="A chain of springs through time.",
    )


@family("physics")
def deposit(g: Grammar) -> Sketch:
    """Particles add their charge to the cells they lie in."""
    n, cells = g.size("bodies", 1000, 8000), g.size("bins", 32, 200)
    x = g.array("pos", n, low=0, high=1)
    q = g.array("mass", n)
    grid = g.array("grid", cells, extent=True, inout=True)
    i, c, w, p = g.index("i"), g.name("where"), g.name("tmp"), g.name("tmp2")
    linear = g.chance(0.5)
    last = f"{cells} - 2" if linear else f"{cells} - 1"
    body: list[Code] = [
        g.let(g.real, p, f"{x[i]} * ({g.real}){'(' + cells + ' - 1)' if linear else cells}", True),
        g.let("int", c, f"(int){p}"),
        If(f"{c} < 0", f"{c} = 0;"),
        If(f"{c} > {last}", f"{c} = {last};"),
    ]
    if linear:
        body += [
            g.let(g.real, w, f"{p} - {c}", True),
            g.add(grid[c], f"({g.number(1)} - {w}) * {q[i]}"),
            g.add(grid[f"{c} + 1"], f"{w} * {q[i]}"),
        ]
    else:
        body.append(g.add(grid[c], formula(g, [q[i]], [], 1)))
    code: list[Code] = [g.loop(i, "0", n, *body)]
    if g.chance(0.5):
        j = g.index("j")
        code.insert(
            0, g.loop(j, "0", cells, f"{grid[j]} = {g.pick(g.number(0), f'{g.number(0.5)} * {grid[j]}')};")
        )
    return g.program(
        ("deposit_charge", "cloud_in_cell", "bin_mass", "scatter_particles"),
        code,
        says="Adds particles to the cells they lie in.",
    )


@family("physics")
def escape_time(g: Grammar) -> Sketch:
    """Iterations until a point escapes: uneven work."""
    rows, cols = g.size("rows", 30, 90), g.size("cols", 30, 90)
    a = g.array("in", cols, low=-2, high=0.6)
    b = g.array("in2", rows, low=-1.2, high=1.2)
    out = g.array("out", rows, cols, type_="int", out=True)
    i, j, k, x, y, t = (
        g.index("i"),
        g.index("j"),
        g.name("cnt"),
        g.name("tmp"),
        g.name("tmp2"),
        g.name("tmp3"),
    )
    most = g.constant("max_iter", str(g.between(30, 120)))
    update = g.pick(
        f"{x} * {x} - {y} * {y} + {a[j]}",
        f"{x} * {x} - {y} * {y} + {a[j]} * {g.number(0.9)}",
        f"{x} * {x} * {x} - {g.number(3)} * {x} * {y} * {y} + {a[j]}",
    )
    other = (
        f"{g.number(2)} * {x} * {y} + {b[i]}"
        if not update.startswith(f"{x} * {x} * {x}")
        else f"{g.number(3)} * {x} * {x} * {y} - {y} * {y} * {y} + {b[i]}"
    )
    if g.chance(0.3):
        other = g.math("fabs", other)
    step: list[Code] = [g.let(g.real, t, update, True), f"{y} = {other};", f"{x} = {t};", f"{k}++;"]
    start = [g.let(g.real, x, g.number(0)), g.let(g.real, y, g.number(0)), g.let("int", k, "0")]
    inner: Code = While(f"{k} < {most} && {x} * {x} + {y} * {y} < {g.number(4)}", step)
    if g.chance(0.3):
        inner = While("1", [If(f"{k} >= {most} || {x} * {x} + {y} * {y} > {g.number(4)}", "break;"), *step])
    return g.program(
        ("mandelbrot", "escape_counts", "fractal"),
        g.loop(i, "0", rows, g.loop(j, "0", cols, *start, inner, f"{out[i, j]} = {k};")),
        says="How long each point stays close.",
    )


@family("physics")
def monte_carlo(g: Grammar) -> Sketch:
    """Random walks with a counter-based generator, one for each walker."""
    n, steps = g.size("n", 400, 2500), g.size("steps", 8, 40)
    seed = g.array("in", n, type_="unsigned int")
    out = g.array("out", n, out=True)
    i, t, s, x, u = g.index("i"), g.index("t"), g.name("state"), g.name("tmp"), g.name("tmp2")
    a, c = g.pick(1664525, 1103515245, 22695477), g.pick(1013904223, 12345, 1)
    drift = g.scalar("shift", 0.01, 0.2)
    unit = f"({g.real})({s} >> 8) * {g.number(1 / 16777216)}"
    move = g.pick(
        f"{x} = {x} + {u} - {g.number(0.5)} + {drift} * {g.number(0.1)};",
        f"{x} = {x} * ({g.number(1)} + {drift} * ({u} - {g.number(0.5)}));",
        f"{x} = {u} < {drift} ? {x} + {g.number(1)} : {x} - {g.number(0.25)};",
    )
    body: list[Code] = [f"{s} = {s} * {a}u + {c}u;", g.let(g.real, u, unit, True), move]
    if g.chance(0.3):
        body.append(If(f"{x} < {g.number(-2)}", "break;"))
    code = g.loop(
        i,
        "0",
        n,
        g.let("unsigned int", s, f"{seed[i]} + {g.between(1, 99)}u"),
        g.let(g.real, x, g.number(1)),
        g.loop(t, "0", steps, *body),
        f"{out[i]} = {x};",
    )
    return g.program(("random_walks", "simulate_paths", "walkers"), code, says="A random walk for each seed.")
