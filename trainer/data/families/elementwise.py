"""One output element from the same places of the inputs."""

from __future__ import annotations

from trainer.data.grammar.code import Code, If
from trainer.data.grammar.formulas import factor, formula
from trainer.data.grammar.grammar import Grammar, Sketch
from trainer.data.registry import family


@family("element-wise")
def map_arrays(g: Grammar) -> Sketch:
    """One to three outputs from one to three inputs, in one loop or several."""
    n = g.size("n", 3000, 40000)
    inputs = [g.array(pool, n) for pool in ("in", "in2", "in3")[: g.between(1, 3)]]
    scalars = [g.scalar("scale")] + ([g.scalar("shift")] if g.chance(0.5) else [])
    outputs = [g.array(pool, n, out=True) for pool in ("out", "out2")[: g.between(1, 2)]]
    i = g.index()
    stores: list[Code] = []
    for place, out in enumerate(outputs):
        used = inputs if place == 0 else inputs[: g.between(1, len(inputs))]
        value = formula(g, [a[i] for a in used], scalars)
        if g.chance(0.4):
            v = g.name("tmp" if place == 0 else "tmp2")
            stores.append([g.let(g.real, v, value, const=True), f"{out[i]} = {formula(g, [v], scalars, 3)};"])
        else:
            stores.append(f"{out[i]} = {value};")
    if len(stores) > 1 and g.chance(0.4):
        body: list[Code] = [g.loop(i, "0", n, store) for store in stores]
    else:
        body = [g.loop(i, "0", n, *stores)]
    if g.chance(0.25):
        again = formula(g, [outputs[0][i]], scalars, 2)
        body.append(g.loop(i, "0", n, f"{outputs[0][i]} = {again};"))
    return g.program(
        ("combine", "apply_gain", "mix_signals", "transform", "update_values", "blend"),
        body,
        says="Combines the inputs element by element.",
    )


@family("element-wise")
def piecewise_map(g: Grammar) -> Sketch:
    """Branches decide which formula holds."""
    n = g.size("n", 3000, 30000)
    x, y = g.array("in", n), g.array("in2", n)
    limit = g.scalar("limit", 0.2, 1.0)
    out = g.array("out", n, out=True)
    i, v = g.index(), g.name("tmp")
    arms = [f"{out[i]} = {formula(g, [v], [limit], 3)};" for _ in range(g.between(2, 4))]
    tests = [f"{v} > {limit}", f"{v} < -{limit}", f"{y[i]} > {v}"]
    g.rng.shuffle(tests)
    branch: Code = arms[-1]
    for test, arm in zip(tests, arms[:-1], strict=False):
        branch = If(test, arm, branch)
    first = g.let(g.real, v, formula(g, [x[i], y[i]], [], 1), const=True)
    body: list[Code] = [first]
    if g.chance(0.3):
        body += [
            If(f"{y[i]} < {g.number(-1.5)}", [f"{out[i]} = {g.number(0.5)} * {v};", "continue;"]),
            branch,
        ]
    else:
        body.append(branch)
    return g.program(
        ("soft_clip", "piecewise", "shrink", "activate", "respond"),
        g.loop(i, "0", n, *body),
        says="A different formula on each side of the threshold.",
    )


@family("element-wise")
def in_place_update(g: Grammar) -> Sketch:
    """An optimiser's step or a leaky integration: state that is read and written."""
    n = g.size("n", 2000, 20000)
    w = g.array("in", n, inout=True)
    grad = g.array("in2", n)
    rate, decay = g.scalar("rate", 0.01, 0.2), g.scalar("scale", 0.5, 0.95)
    i = g.index()
    one, v = g.number(1), g.name("tmp")
    kind = g.between(0, 3)
    body: list[Code]
    if kind == 0:
        m = g.array("in3", n, inout=True)
        body = [
            f"{m[i]} = {decay} * {m[i]} + ({one} - {decay}) * {grad[i]};",
            g.add(w[i], f"{rate} * {formula(g, [m[i]], [decay], 1)}", "-"),
        ]
    elif kind == 1:
        m = g.array("in3", n, inout=True, low=0.1, high=2.0)
        body = [
            g.let(g.real, v, grad[i], const=True),
            g.add(m[i], f"{v} * {v}"),
            g.add(w[i], f"{rate} * {v} / ({g.math('sqrt', m[i])} + {g.number(0.001)})", "-"),
        ]
    elif kind == 2:
        body = [
            g.let(g.real, v, f"{w[i]} - {rate} * {grad[i]}"),
            If(
                f"{v} > {decay}",
                g.add(v, decay, "-"),
                If(f"{v} < -{decay}", g.add(v, decay), f"{v} = {g.number(0)};"),
            ),
            f"{w[i]} = {v} + {g.number(0.1)} * {grad[i]};",
        ]
    else:
        body = [f"{w[i]} = {decay} * {w[i]} + {rate} * {factor(formula(g, [grad[i]], [decay]))};"]
    code: list[Code] = [g.loop(i, "0", n, *body)]
    if g.chance(0.3):
        code.append(g.loop(i, "0", n, g.add(w[i], formula(g, [grad[i]], [rate], 1))))
    return g.program(
        ("sgd_step", "update_weights", "relax_state", "apply_gradient"),
        code,
        says="One step of the update, in place.",
    )


@family("element-wise")
def strided_pairs(g: Grammar) -> Sketch:
    """Interleaved components: complex numbers, points, stereo samples."""
    n = g.size("n", 1500, 15000)
    parts = g.pick(2, 2, 3, 4)
    stride = str(parts)
    x = g.array("in", f"{parts} * {n}", flat=True)
    out = g.array("out", f"{parts} * {n}", out=True, flat=True)
    scalars = [g.scalar("scale")]
    i = g.index()
    loads, names = [], []
    for place in range(parts):
        name = g.name("tmp" if place == 0 else "tmp2")
        names.append(name)
        loads.append(
            g.let(g.real, name, x[f"{stride} * {i} + {place}" if place else f"{stride} * {i}"], const=True)
        )
    stores = []
    for place in range(parts):
        a, b = names[place], names[(place + 1) % parts]
        value = g.pick(
            f"{a} * {a} - {b} * {b}" if place % 2 == 0 else f"{g.number(2)} * {a} * {b}",
            formula(g, [a, b], scalars, 1),
            f"{a} * {scalars[0]} + {b}",
        )
        stores.append(f"{out[f'{stride} * {i} + {place}' if place else f'{stride} * {i}']} = {value};")
    return g.program(
        ("square_complex", "rotate_points", "mix_stereo", "twist"),
        g.loop(i, "0", n, *loads, *stores),
        says=f"Works on {parts} interleaved components.",
    )


@family("element-wise")
def gather_map(g: Grammar) -> Sketch:
    """Reads or writes go through an index array."""
    n, m = g.size("n", 2000, 20000), g.size("rows", 1000, 9000)
    table = g.array("in", m, extent=True)
    index = g.array("index", n, type_="int")
    out = g.array("out", n, out=True)
    a = g.scalar("scale")
    i, at = g.index(), g.name("where")
    body: list[Code] = [g.let("int", at, index[i], const=True)]
    value = table[at]
    kind = g.between(0, 2)
    if kind == 1:
        other = g.array("in2", n)
        value = formula(g, [value, other[i]], [a])
    elif kind == 2:
        v = g.name("tmp")
        body.append(g.let(g.real, v, value))
        body.append(If(f"{v} < {g.number(0)}", f"{v} = {a} * {v};"))
        value = formula(g, [v], [a], 2)
    else:
        value = formula(g, [value], [a], 3)
    body.append(f"{out[i]} = {value};")
    return g.program(
        ("lookup", "gather_scaled", "permute_values", "pick_entries"),
        g.loop(i, "0", n, *body),
        says="Takes entries of the table in the order of the indices.",
    )


@family("element-wise")
def convert_samples(g: Grammar) -> Sketch:
    """Between integer and floating-point samples, with scaling and clamping."""
    n = g.size("n", 4000, 40000)
    kind = g.pick("unsigned char", "short", "int")
    most = None if kind == "unsigned char" else 2000
    x = g.array("in", n, type_=kind, low=None if most is None else -most, high=most)
    i, v = g.index(), g.name("tmp")
    a = g.scalar("scale", 0.01, 0.5)
    if g.chance(0.5):
        out = g.array("out", n, out=True)
        body: list[Code] = [f"{out[i]} = {formula(g, [f'({g.real}){x[i]}'], [a], 2)};"]
        if g.chance(0.4):
            mean = g.array("in2", n)
            body = [g.let(g.real, v, f"{a} * {x[i]}"), f"{out[i]} = {formula(g, [v, mean[i]], [a], 1)};"]
    else:
        out = g.array("out", n, out=True, type_=g.pick("int", "short", "unsigned char"))
        shift, low, high = g.between(1, 4), g.between(0, 5), g.between(90, 250)
        body = [
            g.let("int", v, f"({x[i]} * {g.between(3, 29)} + {g.between(1, 99)}) >> {shift}"),
            If(f"{v} < {low}", f"{v} = {low};"),
            If(f"{v} > {high}", f"{v} = {high};"),
            f"{out[i]} = {'' if out.type == 'int' else f'({out.type})'}{v};",
        ]
    return g.program(
        ("convert", "to_samples", "rescale", "normalise_pcm"),
        g.loop(i, "0", n, *body),
        says="Converts every sample.",
    )
