"""Counting into bins."""

from __future__ import annotations

from trainer.data.grammar.code import Code, If
from trainer.data.grammar.grammar import Grammar, Sketch
from trainer.data.registry import family


@family("histograms")
def byte_histogram(g: Grammar) -> Sketch:
    """Bytes counted; perhaps equalised afterwards."""
    n = g.size("n", 4000, 40000)
    x = g.array("image", n, type_="unsigned char")
    hist = g.array("hist", "256", type_=g.pick("int", "unsigned int"), out=True)
    i, b = g.index("i"), g.index("k")
    shift = g.pick("", "", f" >> {g.between(1, 3)}", f" ^ {g.between(1, 255)}")
    place = f"{x[i]}{shift}"
    code: list[Code] = [g.loop(b, "0", "256", f"{hist[b]} = 0;"), g.loop(i, "0", n, f"{hist[place]}++;")]
    if g.chance(0.4):
        code.append(g.loop(b, "1", "256", g.add(hist[b], hist[f"{b} - 1"])))
        if g.chance(0.6):
            out = g.array("out", n, type_="unsigned char", out=True)
            code.append(g.loop(i, "0", n, f"{out[i]} = (unsigned char)((long){hist[place]} * 255 / {n});"))
    elif g.chance(0.4):
        best, at = g.name("best"), g.name("where")
        code += [
            g.let("int", best, "-1"),
            g.let("int", at, "0"),
            g.loop(b, "0", "256", If(f"(int){hist[b]} > {best}", [f"{best} = {hist[b]};", f"{at} = {b};"])),
            f"return {at};",
        ]
        return g.program(
            ("mode_of_bytes", "dominant_level"),
            code,
            returns="int",
            says="Counts bytes and finds the commonest.",
        )
    return g.program(("byte_histogram", "equalise", "level_counts"), code, says="Counts every byte value.")


@family("histograms")
def value_histogram(g: Grammar) -> Sketch:
    """Real values into equal bins, counted or weighted, clamped or left out."""
    n, bins = g.size("n", 2000, 20000), g.size("bins", 16, 128)
    x = g.array("in", n, low=-3, high=3)
    weighted = g.chance(0.5)
    w = g.array("weights", n) if weighted else None
    hist = g.array("hist", bins, type_=g.real if weighted else "int", extent=True, inout=True)
    low, width = g.pick(-2, -2.5, -1), g.pick(4, 5, 2)
    i, b, at = g.index("i"), g.index("k"), g.name("where")
    body: list[Code] = [g.let("int", at, f"(int)(({x[i]} - {_signed(g, low)}) * {bins} / {g.number(width)})")]
    gain = w[i] if w is not None else "1"
    if g.chance(0.5):
        body.append(If(f"{at} >= 0 && {at} < {bins}", g.add(hist[at], gain)))
    else:
        body += [
            If(f"{at} < 0", f"{at} = 0;"),
            If(f"{at} > {bins} - 1", f"{at} = {bins} - 1;"),
            g.add(hist[at], gain),
        ]
    code: list[Code] = [g.loop(i, "0", n, *body)]
    if g.chance(0.5):
        code.insert(0, g.loop(b, "0", bins, f"{hist[b]} = 0;"))
    return g.program(
        ("histogram", "bin_values", "weighted_histogram", "distribution"),
        code,
        says="Counts values in equal bins.",
    )


def _signed(g: Grammar, value: float) -> str:
    return f"({g.number(value)})" if value < 0 else g.number(value)


@family("histograms")
def joint_histogram(g: Grammar) -> Sketch:
    """Two keys, one table."""
    n = g.size("n", 2000, 20000)
    size = g.pick(8, 16, 32)
    edge = g.constant("edge", str(size))
    x, y = (g.array(p, n, type_=g.pick("unsigned char", "int"), low=0, high=255) for p in ("in", "in2"))
    hist = g.array("hist", edge, edge, type_="int", out=True, flat=True)
    i, a, b, k = g.index("i"), g.name("tmp"), g.name("tmp2"), g.index("k")
    scale = 256 // size
    body: list[Code] = [
        g.let("int", a, f"{x[i]} / {scale}", True),
        g.let("int", b, f"{y[i]} {g.pick(f'/ {scale}', f'% {size}')}", True),
        f"{hist.name}[{a} * {edge} + {b}]++;",
    ]
    if g.chance(0.4):
        body[-1] = If(
            f"{a} != {b}" if g.chance(0.5) else f"{x[i]} > {y[i]}", f"{hist.name}[{a} * {edge} + {b}]++;"
        )
    clear = g.loop(k, "0", f"{edge} * {edge}", f"{hist.name}[{k}] = 0;")
    return g.program(
        ("joint_histogram", "cooccurrence", "two_keys"),
        [clear, g.loop(i, "0", n, *body)],
        says="Counts pairs of levels.",
    )


@family("histograms")
def row_histograms(g: Grammar) -> Sketch:
    """A small histogram for each row."""
    rows, cols, bins = g.size("rows", 60, 400), g.size("cols", 40, 160), g.size("bins", 8, 24)
    x = g.array("in", rows, cols, type_="int", low=0, high=999)
    hist = g.array("hist", rows, bins, type_="int", out=True)
    i, j, b = g.index("i"), g.index("j"), g.index("k")
    place = f"{x[i, j]} % {bins}"
    code: Code = g.loop(
        i,
        "0",
        rows,
        g.loop(b, "0", bins, f"{hist[i, b]} = 0;"),
        g.loop(j, "0", cols, g.add(hist[i, place], g.pick("1", f"{x[i, j]} & 1", "1"))),
    )
    if g.chance(0.3):
        best = g.name("best")
        out = g.array("out2", rows, type_="int", out=True)
        code = [
            code,
            g.loop(
                i,
                "0",
                rows,
                g.let("int", best, "0"),
                g.loop(b, "1", bins, If(f"{hist[i, b]} > {hist[i, best]}", f"{best} = {b};")),
                f"{out[i]} = {best};",
            ),
        ]
    return g.program(("row_histograms", "per_row_counts", "descriptor"), code, says="Counts for every row.")
