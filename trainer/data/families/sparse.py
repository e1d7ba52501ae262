"""Sparse matrices in their usual forms."""

from __future__ import annotations

from trainer.data.grammar.code import Code, If
from trainer.data.grammar.formulas import formula
from trainer.data.grammar.grammar import Grammar, Sketch
from trainer.data.registry import family


@family("sparse")
def csr_product(g: Grammar) -> Sketch:
    """Rows of a compressed matrix times a vector, or something else for each row."""
    n, cols, nnz = g.size("rows", 300, 2000), g.size("cols", 200, 1500), g.size("nnz", 3000, 16000)
    ptr = g.array("row_ptr", f"{n} + 1", type_="int", extent=True)
    col = g.array("col_idx", nnz, type_="int", extent=True)
    val = g.array("vals", nnz, extent=True)
    x = g.array("in", cols, extent=True)
    y = g.array("out", n, out=True)
    i, k, total = g.index("i"), g.index("k"), g.name("sum")
    entry = f"{val[k]} * {x[col[k]]}"
    kind = g.between(0, 3)
    if kind == 0:
        body: list[Code] = [
            g.let(g.real, total, "0"),
            g.loop(k, ptr[i], ptr[f"{i} + 1"], g.add(total, entry)),
        ]
        end = g.pick(total, formula(g, [total], [], 1))
    elif kind == 1:
        body = [
            g.let(g.real, total, g.number(-1000)),
            g.loop(k, ptr[i], ptr[f"{i} + 1"], g.maximum(total, entry, g.chance(0.3))),
        ]
        end = f"{total} > {g.number(-999)} ? {total} : {g.number(0)}"
    elif kind == 2:
        t = g.name("tmp")
        body = [
            g.let(g.real, total, "0"),
            g.loop(
                k,
                ptr[i],
                ptr[f"{i} + 1"],
                g.let(g.real, t, f"{val[k]} - {x[col[k]]}", True),
                g.add(total, f"{t} * {t}"),
            ),
        ]
        end = g.math("sqrt", total)
    else:
        body = [
            g.let(g.real, total, "0"),
            g.loop(k, ptr[i], ptr[f"{i} + 1"], If(f"{val[k]} > {g.number(0)}", g.add(total, entry))),
        ]
        end = total
    return g.program(
        ("spmv", "csr_rows", "sparse_rows", "apply_sparse"),
        g.loop(i, "0", n, *body, f"{y[i]} = {end};"),
        says="One value for every row of the sparse matrix.",
    )


@family("sparse")
def ell_product(g: Grammar) -> Sketch:
    """A fixed number of entries in each row, stored by rows or by columns."""
    n, width = g.size("rows", 400, 2500), g.size("window", 4, 12)
    by_column = g.chance(0.5)
    shape = (width, n) if by_column else (n, width)
    val, col = (
        g.array("vals", *shape),
        g.array("col_idx", *shape, type_="int", low=-1 if g.chance(0.4) else 0),
    )
    x = g.array("in", n, extent=True)
    y = g.array("out", n, out=True)
    i, k, total, c = g.index("i"), g.index("k"), g.name("sum"), g.name("where")
    v, at = (val[k, i], col[k, i]) if by_column else (val[i, k], col[i, k])
    if col.low == -1:
        body: list[Code] = [
            g.let("int", c, at, True),
            If(f"{c} >= 0 && {c} < {n}", g.add(total, f"{v} * {x[c]}")),
        ]
    else:
        body = [g.add(total, f"{v} * {x[at]}")]
    return g.program(
        ("ell_spmv", "padded_rows", "stencil_matrix"),
        g.loop(
            i,
            "0",
            n,
            g.let(g.real, total, "0"),
            g.loop(k, "0", width, *body),
            f"{y[i]} = {g.pick(total, formula(g, [total], [], 1))};",
        ),
        says="A sparse matrix with equally long rows.",
    )


@family("sparse")
def coo_scatter(g: Grammar) -> Sketch:
    """Triplets added where their row says."""
    nnz, n = g.size("nnz", 2000, 12000), g.size("rows", 200, 1500)
    row, col = g.array("index", nnz, type_="int"), g.array("col_idx", nnz, type_="int")
    val = g.array("vals", nnz)
    x = g.array("in", n, extent=True)
    y = g.array("out", n, extent=True, inout=True)
    k, i = g.index("k"), g.index("i")
    term = g.pick(f"{val[k]} * {x[col[k]]}", formula(g, [val[k], x[col[k]]], [], 1))
    code: list[Code] = [g.loop(k, "0", nnz, g.add(y[row[k]], term))]
    if g.chance(0.5):
        code.insert(0, g.loop(i, "0", n, f"{y[i]} = {g.pick(g.number(0), f'{g.number(0.5)} * {y[i]}')};"))
    if g.chance(0.3):
        code = [
            *code[:-1],
            g.loop(
                k,
                "0",
                nnz,
                g.add(y[row[k]], term),
                If(f"{row[k]} != {col[k]}", g.add(y[col[k]], f"{val[k]} * {x[row[k]]}")),
            ),
        ]
    return g.program(
        ("coo_spmv", "assemble", "scatter_triplets", "add_entries"),
        code,
        says="Adds every triplet to its row.",
    )


@family("sparse")
def sparse_dense(g: Grammar) -> Sketch:
    """A compressed matrix times several columns."""
    n, r, nnz = g.size("rows", 120, 600), g.size("cols", 8, 40), g.size("nnz", 1500, 7000)
    ptr, col, val = (
        g.array("row_ptr", f"{n} + 1", type_="int", extent=True),
        g.array("col_idx", nnz, type_="int", extent=True),
        g.array("vals", nnz, extent=True),
    )
    x, y = g.array("matrix2", n, r, extent=True, flat=True), g.array("out", n, r, out=True, flat=True)
    i, j, k, total = g.index("i"), g.index("j"), g.index("k"), g.name("sum")
    entry = f"{val[k]} * {x.name}[{col[k]} * {r} + {j}]"
    if g.chance(0.5):
        code: list[Code] = [
            g.loop(
                i,
                "0",
                n,
                g.loop(
                    j,
                    "0",
                    r,
                    g.let(g.real, total, "0"),
                    g.loop(k, ptr[i], ptr[f"{i} + 1"], g.add(total, entry)),
                    f"{y[i, j]} = {formula(g, [total], [], 1)};",
                ),
            )
        ]
    else:
        code = [
            g.loop(
                i,
                "0",
                n,
                g.loop(j, "0", r, f"{y[i, j]} = 0;"),
                g.loop(k, ptr[i], ptr[f"{i} + 1"], g.loop(j, "0", r, g.add(y[i, j], entry))),
            )
        ]
    return g.program(
        ("spmm", "sparse_times_dense", "aggregate_rows", "message_pass"),
        code,
        says="A sparse matrix times a dense one.",
    )


@family("sparse")
def diagonal_storage(g: Grammar) -> Sketch:
    """Diagonals stored one behind the other."""
    n, d = g.size("n", 500, 3000), g.pick(3, 5)
    offsets = [-2, -1, 0, 1, 2] if d == 5 else g.pick([-1, 0, 1], [-3, 0, 3])
    count = g.constant("ndiag", str(d))
    val = g.array("vals", count, n, flat=True)
    x, y = g.array("in", n), g.array("out", n, out=True)
    i, k, c, total = g.index("i"), g.index("k"), g.name("where"), g.name("sum")
    table = g.name("table")
    declared = f"static const int {table}[{d}] = {{{', '.join(map(str, offsets))}}};"
    body: list[Code] = [
        g.let("int", c, f"{i} + {table}[{k}]", True),
        If(f"{c} >= 0 && {c} < {n}", g.add(total, f"{val[k, i]} * {x[c]}")),
    ]
    return g.program(
        ("dia_spmv", "banded_product", "apply_diagonals"),
        [
            declared,
            g.loop(
                i,
                "0",
                n,
                g.let(g.real, total, "0"),
                g.loop(k, "0", count, *body),
                f"{y[i]} = {g.pick(total, formula(g, [total], [], 1))};",
            ),
        ],
        says="A matrix of a few diagonals times a vector.",
    )
