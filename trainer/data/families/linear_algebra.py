"""Matrices and vectors."""

from __future__ import annotations

from trainer.data.grammar.code import Code, If
from trainer.data.grammar.formulas import formula
from trainer.data.grammar.grammar import Grammar, Sketch
from trainer.data.registry import family


@family("linear algebra")
def matrix_product(g: Grammar) -> Sketch:
    """Products with any operand transposed, any order of loops, and what is done to the result."""
    m, n, p = g.size("rows", 30, 90), g.size("cols", 30, 90), g.size("inner", 24, 80)
    ta, tb = g.chance(0.25), g.chance(0.3)
    a = g.array("matrix", *((p, m) if ta else (m, p)))
    b = g.array("matrix2", *((n, p) if tb else (p, n)))
    scaled = g.chance(0.4)
    c = g.array("matrix3", m, n, out=not scaled, inout=scaled)
    i, j, k, total = g.index("i"), g.index("j"), g.index("k"), g.name("sum")
    left, right = (a[k, i] if ta else a[i, k]), (b[j, k] if tb else b[k, j])
    end = total
    if scaled:
        alpha, beta = g.scalar("scale"), g.scalar("shift")
        end = f"{alpha} * {total} + {beta} * {c[i, j]}"
    elif g.chance(0.4):
        bias = g.array("in3", n)
        end = formula(g, [total, bias[j]], [], 1) if g.chance(0.5) else f"{total} + {bias[j]}"
    kind = g.between(0, 3) if not scaled else 0
    if kind <= 1:
        store: list[Code] = [f"{c[i, j]} = {end};"]
        if g.chance(0.3):
            store.append(
                If(
                    f"{c[i, j]} < {g.number(0)}",
                    f"{c[i, j]} = {g.pick(g.number(0), f'{g.number(0.1)} * {c[i, j]}')};",
                )
            )
        point: list[Code] = [
            g.let(g.real, total, "0"),
            g.loop(k, "0", p, g.add(total, f"{left} * {right}")),
            *store,
        ]
        loops = [(i, m), (j, n)] if g.chance(0.7) else [(j, n), (i, m)]
        code: Code = point
        for var, bound in reversed(loops):
            code = g.loop(var, "0", bound, code)
    else:
        clear = g.loop(i, "0", m, g.loop(j, "0", n, f"{c[i, j]} = {g.number(0)};"))
        orders = ((i, m), (k, p), (j, n)), ((k, p), (i, m), (j, n)), ((j, n), (k, p), (i, m))
        code = g.add(c[i, j], f"{left} * {right}")
        for var, bound in reversed(g.pick(*orders)):
            code = g.loop(var, "0", bound, code)
        code = [clear, code]
    return g.program(("matmul", "gemm", "multiply", "dense_layer", "project"), code, says="A matrix product.")


@family("linear algebra")
def matrix_vector(g: Grammar) -> Sketch:
    """Matrix times vector, either way round, sometimes with a second step."""
    m, n = g.size("rows", 80, 260), g.size("cols", 80, 260)
    a = g.array("matrix", m, n)
    turned = g.chance(0.4)
    x = g.array("in", m if turned else n)
    y = g.array("out", n if turned else m, out=True)
    i, j, total = g.index("i"), g.index("j"), g.name("sum")
    outer, inner = (j, i) if turned else (i, j)
    bounds = {i: m, j: n}
    body: list[Code] = [
        g.let(g.real, total, g.number(0)),
        g.loop(inner, "0", bounds[inner], g.add(total, f"{a[i, j]} * {x[inner]}")),
    ]
    end = formula(g, [total], [], 1) if g.chance(0.4) else total
    if g.chance(0.3):
        bias = g.array("in2", bounds[outer])
        end += f" + {bias[outer]}"
    code: list[Code] = [g.loop(outer, "0", bounds[outer], *body, f"{y[outer]} = {end};")]
    if turned and g.chance(0.4):
        code = [
            g.loop(j, "0", n, f"{y[j]} = {g.number(0)};"),
            g.loop(i, "0", m, g.loop(j, "0", n, g.add(y[j], f"{a[i, j]} * {x[i]}"))),
        ]
    if g.chance(0.25):
        norm = g.name("sum2")
        size = bounds[outer]
        code += [
            g.let(g.real, norm, g.number(0.001)),
            g.loop(outer, "0", size, g.add(norm, f"{y[outer]} * {y[outer]}")),
            f"{norm} = {g.math('sqrt', norm)};",
            g.loop(outer, "0", size, g.add(y[outer], norm, "/")),
        ]
    return g.program(("matvec", "gemv", "apply_matrix", "power_step"), code, says="A matrix times a vector.")


@family("linear algebra")
def rank_update(g: Grammar) -> Sketch:
    """Outer products and symmetric updates, whole or one triangle."""
    n, p = g.size("cols", 40, 110), g.size("inner", 20, 60)
    a = g.array("matrix", n, p)
    c = g.array("matrix3", n, n, inout=True)
    i, j, k, total = g.index("i"), g.index("j"), g.index("k"), g.name("sum")
    alpha = g.scalar("scale")
    shape = g.between(0, 2)
    start, stop = (("0", n), ("0", f"{i} + 1"), (i, n))[shape]
    kind = g.between(0, 1)
    if kind == 0:
        body: list[Code] = [
            g.let(g.real, total, "0"),
            g.loop(k, "0", p, g.add(total, f"{a[i, k]} * {a[j, k]}")),
            g.add(c[i, j], f"{alpha} * {total}"),
        ]
        if shape and g.chance(0.5):
            body.append(If(f"{i} != {j}", f"{c[j, i]} = {c[i, j]};"))
        code: Code = g.loop(i, "0", n, g.loop(j, start, stop, *body))
    else:
        x, y = g.array("in", n), g.array("in2", n)
        value = f"{alpha} * {x[i]} * {y[j]}" + (f" + {x[j]} * {y[i]}" if g.chance(0.5) else "")
        code = g.loop(
            i, "0", n, g.loop(j, start, stop, g.add(c[i, j], f"{value} + {a[i, '0']} * {a[j, '0']}"))
        )
    return g.program(
        ("syrk", "rank_one", "gram", "covariance_update"), code, says="Adds a product to a square matrix."
    )


@family("linear algebra")
def triangular(g: Grammar) -> Sketch:
    """Triangular solves with one or many right-hand sides, forward or backward."""
    n = g.size("n", 40, 110)
    low = g.array("matrix", n, n, low=-0.1, high=0.1)
    many = g.chance(0.6)
    r = g.size("cols", 20, 70) if many else ""
    b = g.array("in2", *((n, r) if many else (n,)), inout=True)
    i, k, c, total = g.index("i"), g.index("k"), g.index("j"), g.name("sum")

    def at(row: str) -> str:
        return b[row, c] if many else b[row]

    back = g.chance(0.4)
    inner = (
        g.loop(k, f"{i} + 1", n, g.add(total, f"{low[i, k]} * {at(k)}", "-"))
        if back
        else g.loop(k, "0", i, g.add(total, f"{low[i, k]} * {at(k)}", "-"))
    )
    unit = g.chance(0.5)
    end = total if unit else f"{total} / ({g.number(2)} + {low[i, i]})"
    rows = g.loop(i, "0", n, g.let(g.real, total, at(i)), inner, f"{at(i)} = {end};", down=back)
    if not many:
        code: Code = rows
    elif g.chance(0.5):
        code = g.loop(c, "0", r, rows)
    else:
        code = g.loop(
            i, "0", n, g.loop(c, "0", r, g.let(g.real, total, at(i)), inner, f"{at(i)} = {end};"), down=back
        )
    return g.program(
        ("forward_solve", "back_substitute", "trsm", "solve_triangle"),
        code,
        says="Solves a triangular system in place.",
    )


@family("linear algebra")
def factorise(g: Grammar) -> Sketch:
    """LU, Cholesky and Gauss elimination in place, without pivoting."""
    n = g.size("n", 24, 64)
    a = g.array("matrix", n, n, inout=True, low=-0.2, high=0.2)
    i, j, k, f = g.index("i"), g.index("j"), g.index("k"), g.name("tmp")
    shift = g.loop(i, "0", n, g.add(a[i, i], g.number(g.pick(8, 12, 20))))
    kind = g.between(0, 2)
    if kind == 0:
        code: list[Code] = [
            shift,
            g.loop(
                k,
                "0",
                n,
                g.loop(
                    i,
                    f"{k} + 1",
                    n,
                    g.add(a[i, k], a[k, k], "/"),
                    g.loop(j, f"{k} + 1", n, g.add(a[i, j], f"{a[i, k]} * {a[k, j]}", "-")),
                ),
            ),
        ]
    elif kind == 1:
        code = [
            shift,
            g.loop(
                j,
                "0",
                n,
                g.loop(k, "0", j, g.add(a[j, j], f"{a[j, k]} * {a[j, k]}", "-")),
                f"{a[j, j]} = {g.math('sqrt', g.math('fabs', a[j, j]))};",
                g.loop(
                    i,
                    f"{j} + 1",
                    n,
                    g.loop(k, "0", j, g.add(a[i, j], f"{a[i, k]} * {a[j, k]}", "-")),
                    g.add(a[i, j], a[j, j], "/"),
                ),
            ),
        ]
    else:
        b = g.array("in2", n, inout=True)
        code = [
            shift,
            g.loop(
                k,
                "0",
                f"{n} - 1",
                g.loop(
                    i,
                    f"{k} + 1",
                    n,
                    g.let(g.real, f, f"{a[i, k]} / {a[k, k]}", True),
                    g.loop(j, k, n, g.add(a[i, j], f"{f} * {a[k, j]}", "-")),
                    g.add(b[i], f"{f} * {b[k]}", "-"),
                ),
            ),
        ]
        if g.chance(0.5):
            code.append(
                g.loop(
                    i,
                    "0",
                    n,
                    g.loop(j, f"{i} + 1", n, g.add(b[i], f"{a[i, j]} * {b[j]}", "-")),
                    g.add(b[i], a[i, i], "/"),
                    down=True,
                )
            )
    return g.program(
        ("lu_in_place", "cholesky", "eliminate", "gauss", "decompose"),
        code,
        says="Factorises in place; the diagonal is made heavy first.",
    )


@family("linear algebra")
def batched_small(g: Grammar) -> Sketch:
    """Thousands of tiny matrices."""
    batch, d = g.size("batch", 300, 2500), g.pick(2, 3, 4)
    size = g.constant("dim", str(d))
    area = f"{size} * {size}"
    a = g.array("matrix", batch, area, flat=True)
    out = g.array("out", batch, area, out=True, flat=True)
    b, i, j, k, total = g.index("k"), g.index("i"), g.index("j"), g.index("t"), g.name("sum")
    kind = g.between(0, 2)

    def at(x: object, row: str, col: str) -> str:
        return f"{x.name}[{b} * {area} + {row} * {size} + {col}]"  # type: ignore[attr-defined]

    if kind == 0:
        m = g.array("matrix2", batch, area, flat=True)
        inner: Code = g.loop(
            i,
            "0",
            size,
            g.loop(
                j,
                "0",
                size,
                g.let(g.real, total, "0"),
                g.loop(k, "0", size, g.add(total, f"{at(a, i, k)} * {at(m, k, j)}")),
                f"{at(out, i, j)} = {total};",
            ),
        )
    elif kind == 1:
        inner = g.loop(
            i,
            "0",
            size,
            g.loop(j, "0", size, f"{at(out, i, j)} = {formula(g, [at(a, i, j), at(a, j, i)], [], 1)};"),
        )
    else:
        inner = [
            g.let(g.real, total, g.number(0.5)),
            g.loop(i, "0", size, g.add(total, f"{at(a, i, i)} * {at(a, i, i)}")),
            g.loop(i, "0", size, g.loop(j, "0", size, f"{at(out, i, j)} = {at(a, j, i)} / {total};")),
        ]
    return g.program(
        ("batched_product", "small_matrices", "per_sample_matrix", "batch_transform"),
        g.loop(b, "0", batch, inner),
        says=f"Each of the {d} by {d} matrices on its own.",
    )


@family("linear algebra")
def banded_solver(g: Grammar) -> Sketch:
    """Many tridiagonal systems (Thomas), or one Jacobi iteration."""
    systems, n = g.size("batch", 40, 200), g.size("n", 40, 120)
    lower, diag, upper = (
        g.array(p, systems, n, low=lo, high=hi)
        for p, lo, hi in (("in", -0.4, 0.4), ("in2", 1.5, 3.0), ("in3", -0.4, 0.4))
    )
    rhs = g.array("out", systems, n, inout=True)
    s, i, f = g.index("k"), g.index("i"), g.name("tmp")
    if g.chance(0.6):
        work = g.array("grid2", systems, n, out=True)
        first: list[Code] = [
            f"{work[s, '0']} = {upper[s, '0']} / {diag[s, '0']};",
            f"{rhs[s, '0']} = {rhs[s, '0']} / {diag[s, '0']};",
        ]
        down = g.loop(
            i,
            "1",
            n,
            g.let(g.real, f, f"{g.number(1)} / ({diag[s, i]} - {lower[s, i]} * {work[s, f'{i} - 1']})", True),
            f"{work[s, i]} = {upper[s, i]} * {f};",
            f"{rhs[s, i]} = ({rhs[s, i]} - {lower[s, i]} * {rhs[s, f'{i} - 1']}) * {f};",
        )
        up = g.loop(
            i, "0", f"{n} - 1", g.add(rhs[s, i], f"{work[s, i]} * {rhs[s, f'{i} + 1']}", "-"), down=True
        )
        code: Code = g.loop(s, "0", systems, *first, down, up)
    else:
        x = g.array("grid", systems, n)
        sides = f"{lower[s, i]} * {x[s, f'{i} - 1']} - {upper[s, i]} * {x[s, f'{i} + 1']}"
        code = g.loop(
            s,
            "0",
            systems,
            g.loop(
                i,
                "1",
                f"{n} - 1",
                f"{rhs[s, i]} = ({rhs[s, i]} - {sides}) / {diag[s, i]};",
            ),
        )
    return g.program(
        ("tridiagonal", "thomas", "solve_bands", "implicit_step"), code, says="One banded system a row."
    )
