"""Learning, statistics and finance."""

from __future__ import annotations

from trainer.data.grammar.code import Code, If
from trainer.data.grammar.formulas import formula
from trainer.data.grammar.grammar import Grammar, Sketch
from trainer.data.registry import family


@family("models and finance")
def option_prices(g: Grammar) -> Sketch:
    """Closed formulas with transcendental functions, one option each."""
    n = g.size("n", 800, 6000)
    s, k, t = (
        g.array("in", n, low=20, high=150),
        g.array("in2", n, low=20, high=150),
        g.array("in3", n, low=0.2, high=2),
    )
    out = g.array("out", n, out=True)
    r, vol = g.scalar("rate", 0.01, 0.05), g.scalar("scale", 0.1, 0.5)
    i, d1, d2, root = g.index("i"), g.name("tmp"), g.name("tmp2"), g.name("tmp3")
    one, half = g.number(1), g.number(0.5)
    cdf = g.helper(
        "norm_cdf",
        g.real,
        f"{g.real} v",
        f"return {half} * {g.math('erfc', f'-v * {g.number(0.70710678)}')};",
    )
    if g.chance(0.3):
        cdf = g.helper(
            "logistic_cdf",
            g.real,
            f"{g.real} v",
            f"return {one} / ({one} + {g.math('exp', f'-{g.number(1.702)} * v')});",
        )
    body: list[Code] = [
        g.let(g.real, root, f"{vol} * {g.math('sqrt', t[i])}", True),
        g.let(
            g.real,
            d1,
            f"({g.math('log', f'{s[i]} / {k[i]}')} + ({r} + {half} * {vol} * {vol}) * {t[i]}) / {root}",
            True,
        ),
        g.let(g.real, d2, f"{d1} - {root}", True),
    ]
    call = f"{s[i]} * {cdf}({d1}) - {k[i]} * {g.math('exp', f'-{r} * {t[i]}')} * {cdf}({d2})"
    put = f"{k[i]} * {g.math('exp', f'-{r} * {t[i]}')} * {cdf}(-{d2}) - {s[i]} * {cdf}(-{d1})"
    kind = g.between(0, 2)
    if kind == 2:
        out2 = g.array("out2", n, out=True)
        body += [f"{out[i]} = {call};", f"{out2[i]} = {put};"]
    else:
        body.append(f"{out[i]} = {call if kind == 0 else put};")
    return g.program(
        ("price_options", "black_scholes", "value_calls"),
        g.loop(i, "0", n, *body),
        says="Closed-form option values.",
    )


@family("models and finance")
def binomial_tree(g: Grammar) -> Sketch:
    """Backward through a tree, one option each."""
    n, steps = g.size("n", 60, 400), g.between(12, 32)
    depth = g.constant("depth", str(steps))
    s, k = g.array("in", n, low=50, high=150), g.array("in2", n, low=50, high=150)
    out = g.array("out", n, out=True)
    v, declared = g.local("table", f"{depth} + 1")
    i, j, t, price, stay = g.index("i"), g.index("j"), g.index("t"), g.name("tmp"), g.name("tmp2")
    up = g.number(g.pick(1.02, 1.05, 1.03))
    p, q = g.number(0.52), g.number(0.47)
    american = g.chance(0.5)
    payoff = (
        f"{price} > {k[i]} ? {price} - {k[i]} : {g.number(0)}"
        if not american
        else f"{k[i]} > {price} ? {k[i]} - {price} : {g.number(0)}"
    )
    leaf: list[Code] = [
        g.let(g.real, price, f"{s[i]} * {g.math('pow', up, f'({g.real})(2 * {j} - {depth})')}", True),
        f"{v[j]} = {payoff};",
    ]
    roll: list[Code] = [f"{v[j]} = {p} * {v[f'{j} + 1']} + {q} * {v[j]};"]
    if american:
        roll = [
            g.let(g.real, stay, f"{p} * {v[f'{j} + 1']} + {q} * {v[j]}", True),
            g.let(
                g.real, price, f"{k[i]} - {s[i]} * {g.math('pow', up, f'({g.real})(2 * {j} - {t})')}", True
            ),
            f"{v[j]} = {stay} > {price} ? {stay} : {price};",
        ]
    back = g.loop(t, "0", depth, g.loop(j, "0", f"{t} + 1", *roll), down=True)
    return g.program(
        ("binomial", "lattice_prices", "tree_values"),
        g.loop(i, "0", n, declared, g.loop(j, "0", f"{depth} + 1", *leaf), back, f"{out[i]} = {v['0']};"),
        says="Backward through a binomial tree.",
    )


@family("models and finance")
def gradient_step(g: Grammar) -> Sketch:
    """Gradients of linear and logistic models over a batch."""
    n, d = g.size("rows", 100, 500), g.size("dims", 16, 60)
    x, y, w = g.array("in", n, d), g.array("in2", n, low=0, high=1), g.array("weights", d, low=-0.3, high=0.3)
    err, grad = g.array("out2", n, out=True), g.array("out", d, out=True)
    i, j, z = g.index("i"), g.index("j"), g.name("sum")
    kind = g.between(0, 2)
    link = (z, f"{g.number(1)} / ({g.number(1)} + {g.math('exp', f'-{z}')})", g.math("tanh", z))[kind]
    forward = g.loop(
        i,
        "0",
        n,
        g.let(g.real, z, "0"),
        g.loop(j, "0", d, g.add(z, f"{x[i, j]} * {w[j]}")),
        f"{err[i]} = {link} - {y[i]};",
    )
    if g.chance(0.5):
        back: list[Code] = [
            g.loop(
                j,
                "0",
                d,
                g.let(g.real, z, "0"),
                g.loop(i, "0", n, g.add(z, f"{err[i]} * {x[i, j]}")),
                f"{grad[j]} = {z} / {n};",
            )
        ]
    else:
        back = [
            g.loop(j, "0", d, f"{grad[j]} = 0;"),
            g.loop(i, "0", n, g.loop(j, "0", d, g.add(grad[j], f"{err[i]} * {x[i, j]}"))),
        ]
    if g.chance(0.4):
        back.append(g.loop(j, "0", d, g.add(grad[j], f"{g.number(0.01)} * {w[j]}")))
    return g.program(
        ("logistic_gradient", "fit_step", "linear_gradient", "perceptron"),
        [forward, *back],
        says="Errors of a batch, and their gradient.",
    )


@family("models and finance")
def small_network(g: Grammar) -> Sketch:
    """A hidden layer in registers for each sample."""
    n, hidden, d = g.size("batch", 200, 1200), g.between(4, 12), g.between(3, 8)
    hs, ds = g.constant("hidden", str(hidden)), g.constant("features", str(d))
    x, w1, w2 = g.array("in", n, ds, flat=True), g.array("weights", hs, ds, flat=True), g.array("in3", hs)
    out = g.array("out", n, out=True)
    i, a, b, z, total = g.index("i"), g.index("j"), g.index("k"), g.name("tmp"), g.name("sum")
    act = g.pick(
        f"{z} > 0 ? {z} : {g.number(0.1)} * {z}",
        g.math("tanh", z),
        f"{z} / ({g.number(1)} + {g.math('fabs', z)})",
        f"{z} > 0 ? {z} : 0",
    )
    dot = g.loop(b, "0", ds, g.add(z, f"{x.name}[{i} * {ds} + {b}] * {w1.name}[{a} * {ds} + {b}]"))
    if g.chance(0.5):
        body: list[Code] = [
            g.let(g.real, total, "0"),
            g.loop(a, "0", hs, g.let(g.real, z, "0"), dot, f"{z} = {act};", g.add(total, f"{z} * {w2[a]}")),
            f"{out[i]} = {total};",
        ]
    else:
        h, declared = g.local("table", hs)
        body = [
            declared,
            g.loop(a, "0", hs, g.let(g.real, z, "0"), dot, f"{h[a]} = {act};"),
            g.let(g.real, total, "0"),
            g.loop(a, "0", hs, g.add(total, f"{h[a]} * {w2[a]}")),
            f"{out[i]} = {formula(g, [total], [], 1)};",
        ]
    return g.program(
        ("mlp_forward", "score_samples", "tiny_network"),
        g.loop(i, "0", n, *body),
        says="A small network for each sample.",
    )


@family("models and finance")
def attention_row(g: Grammar) -> Sketch:
    """Scores, softmax and the weighted sum of values."""
    n, m, d = g.size("rows", 24, 64), g.size("cols", 24, 64), g.size("dims", 8, 24)
    q, k, v = g.array("in", n, d), g.array("in2", m, d), g.array("in3", m, d)
    s, out = g.array("grid2", n, m, out=True), g.array("out", n, d, out=True)
    i, j, c, total, best = g.index("i"), g.index("j"), g.index("k"), g.name("sum"), g.name("best")
    causal = g.chance(0.4)
    scale = g.number(g.pick(0.25, 0.3, 0.2))
    nearer = f" - {g.number(0.1)} * ({i} - {j}) * ({i} - {j})" if causal else ""
    rows: list[Code] = [
        g.loop(
            j,
            "0",
            m,
            g.let(g.real, total, "0"),
            g.loop(c, "0", d, g.add(total, f"{q[i, c]} * {k[j, c]}")),
            f"{s[i, j]} = {scale} * {total}{nearer};",
        ),
        g.let(g.real, best, s[i, "0"]),
        g.loop(j, "1", m, g.maximum(best, s[i, j])),
        g.let(g.real, total, "0"),
        g.loop(j, "0", m, f"{s[i, j]} = {g.math('exp', f'{s[i, j]} - {best}')};", g.add(total, s[i, j])),
        g.loop(j, "0", m, g.add(s[i, j], total, "/")),
    ]
    acc = g.name("tmp2")
    weighted: list[Code] = [
        g.loop(
            c,
            "0",
            d,
            g.let(g.real, acc, "0"),
            g.loop(j, "0", m, g.add(acc, f"{s[i, j]} * {v[j, c]}")),
            f"{out[i, c]} = {acc};",
        )
    ]
    code: list[Code] = (
        [g.loop(i, "0", n, *rows, *weighted)]
        if g.chance(0.5)
        else [g.loop(i, "0", n, *rows), g.loop(i, "0", n, *weighted)]
    )
    if g.chance(0.3):
        code.append(
            g.loop(
                i,
                "0",
                n,
                g.loop(c, "0", d, If(f"{out[i, c]} < {g.number(0)}", g.add(out[i, c], g.number(0.5), "*"))),
            )
        )
    return g.program(
        ("attention", "attend", "soft_lookup"), code, says="Attention of every query over all keys."
    )
