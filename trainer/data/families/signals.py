"""Images and sampled signals."""

from __future__ import annotations

from trainer.data.grammar.code import Code, If, While
from trainer.data.grammar.formulas import formula
from trainer.data.grammar.grammar import Grammar, Sketch
from trainer.data.registry import family


@family("image and signal filters")
def convolve_image(g: Grammar) -> Sketch:
    """A small kernel over an image: inside only, zero padded, or clamped at the rim."""
    h, w = g.size("rows", 40, 130), g.size("cols", 40, 130)
    k = g.pick(3, 5, 7)
    size = g.constant("ksize", str(k))
    img, ker = g.array("image", h, w), g.array("weights", size, size, flat=True)
    i, j, a, b, total = g.index("i"), g.index("j"), g.name("dy"), g.name("dx"), g.name("sum")
    y, x = g.name("tmp"), g.name("tmp2")
    r = k // 2
    tap = f"{ker.name}[{a} * {size} + {b}]"
    kind = g.between(0, 2)
    if kind == 0:
        out = g.array("out", f"{h} - {k - 1}", f"{w} - {k - 1}", out=True)
        code: Code = g.loop(
            i,
            "0",
            f"{h} - {k - 1}",
            g.loop(
                j,
                "0",
                f"{w} - {k - 1}",
                g.let(g.real, total, "0"),
                g.loop(
                    a,
                    "0",
                    size,
                    g.loop(b, "0", size, g.add(total, f"{img[f'{i} + {a}', f'{j} + {b}']} * {tap}")),
                ),
                f"{out[i, j]} = {total};",
            ),
        )
    else:
        out = g.array("out", h, w, out=True)
        place: list[Code] = [g.let("int", y, f"{i} + {a} - {r}"), g.let("int", x, f"{j} + {b} - {r}")]
        if kind == 1:
            place.append(
                If(f"{y} >= 0 && {y} < {h} && {x} >= 0 && {x} < {w}", g.add(total, f"{img[y, x]} * {tap}"))
            )
        else:
            place += [
                If(f"{y} < 0", f"{y} = 0;"),
                If(f"{y} >= {h}", f"{y} = {h} - 1;"),
                If(f"{x} < 0", f"{x} = 0;"),
                If(f"{x} >= {w}", f"{x} = {w} - 1;"),
                g.add(total, f"{img[y, x]} * {tap}"),
            ]
        code = g.loop(
            i,
            "0",
            h,
            g.loop(
                j,
                "0",
                w,
                g.let(g.real, total, g.number(g.pick(0, 0.5))),
                g.loop(a, "0", size, g.loop(b, "0", size, *place)),
                f"{out[i, j]} = {formula(g, [total], [], 1)};",
            ),
        )
    return g.program(
        ("convolve", "filter2d", "apply_kernel", "conv_image"), code, says=f"A {k} by {k} filter."
    )


@family("image and signal filters")
def separable_blur(g: Grammar) -> Sketch:
    """Rows first, then columns; box or weighted."""
    h, w, r = g.size("rows", 40, 120), g.size("cols", 40, 120), g.between(1, 4)
    img, mid, out = g.array("image", h, w), g.array("grid2", h, w, out=True), g.array("out", h, w, out=True)
    i, j, k, total, at = g.index("i"), g.index("j"), g.index("k"), g.name("sum"), g.name("where")
    reach = g.constant("radius", str(r))
    weight = g.array("weights", f"{2 * r + 1}") if g.chance(0.5) else None

    def line(source: object, target: str, along: str, bound: str, row: bool) -> Code:
        element = source[i, at] if row else source[at, j]  # type: ignore[index]
        tap = f"{weight[f'{k} + {reach}']} * {element}" if weight is not None else element
        inner: list[Code] = [
            g.let("int", at, f"{along} + {k}"),
            If(f"{at} < 0", f"{at} = 0;"),
            If(f"{at} > {bound} - 1", f"{at} = {bound} - 1;"),
            g.add(total, tap),
        ]
        end = f"{target} = {total};" if weight is not None else f"{target} = {total} / {g.number(2 * r + 1)};"
        return g.loop(
            i,
            "0",
            h,
            g.loop(j, "0", w, g.let(g.real, total, "0"), g.loop(k, f"-{reach}", f"{reach} + 1", *inner), end),
        )

    code: list[Code] = [line(img, mid[i, j], j, w, True), line(mid, out[i, j], i, h, False)]
    if g.chance(0.4):
        code.append(
            g.loop(
                i, "0", h, g.loop(j, "0", w, f"{out[i, j]} = {formula(g, [img[i, j], out[i, j]], [], 1)};")
            )
        )
    return g.program(
        ("box_blur", "gaussian_blur", "smooth_image", "unsharp"), code, says="Rows first, then columns."
    )


@family("image and signal filters")
def edges_of_image(g: Grammar) -> Sketch:
    """Sobel and its relatives over integers or reals."""
    h, w = g.size("rows", 50, 160), g.size("cols", 50, 160)
    whole = g.chance(0.5)
    kind = "unsigned char" if whole else g.real
    img, out = g.array("image", h, w, type_=kind), g.array("out", h, w, type_=kind, out=True)
    i, j, gx, gy, v = g.index("i"), g.index("j"), g.name("dx"), g.name("dy"), g.name("tmp")
    m = g.pick(1, 2, 3)
    number = (lambda value: str(value)) if whole else g.number

    def at(a: int, b: int) -> str:
        return img[f"{i} {'+' if a > 0 else '-'} 1" if a else i, f"{j} {'+' if b > 0 else '-'} 1" if b else j]

    mid = number(m)
    across = (
        f"{at(-1, 1)} + {mid} * {at(0, 1)} + {at(1, 1)} - {at(-1, -1)} - {mid} * {at(0, -1)} - {at(1, -1)}"
    )
    down = f"{at(1, -1)} + {mid} * {at(1, 0)} + {at(1, 1)} - {at(-1, -1)} - {mid} * {at(-1, 0)} - {at(-1, 1)}"
    type_ = "int" if whole else g.real
    body: list[Code] = [g.let(type_, gx, across), g.let(type_, gy, down)]
    if whole:
        body += [
            g.let("int", v, f"({gx} < 0 ? -{gx} : {gx}) + ({gy} < 0 ? -{gy} : {gy})"),
            If(f"{v} > 255", f"{v} = 255;"),
            f"{out[i, j]} = (unsigned char){v};",
        ]
        if g.chance(0.4):
            body[-1] = f"{out[i, j]} = {v} > {g.between(60, 200)} ? 255 : 0;"
    else:
        norm = g.math("sqrt", f"{gx} * {gx} + {gy} * {gy}")
        body.append(f"{out[i, j]} = {g.pick(norm, g.math('fabs', gx) + ' + ' + g.math('fabs', gy))};")
    inner = g.loop(i, "1", f"{h} - 1", g.loop(j, "1", f"{w} - 1", *body))
    if g.chance(0.5):
        code: list[Code] = [g.loop(i, "0", h, g.loop(j, "0", w, f"{out[i, j]} = 0;")), inner]
    else:
        code = [
            g.loop(
                i,
                "0",
                h,
                g.loop(
                    j,
                    "0",
                    w,
                    If(
                        f"{i} == 0 || {j} == 0 || {i} == {h} - 1 || {j} == {w} - 1",
                        [f"{out[i, j]} = 0;", "continue;"],
                    ),
                    *body,
                ),
            )
        ]
    return g.program(
        ("sobel", "edge_strength", "gradient_image", "detect_edges"), code, says="How strong the edges are."
    )


@family("image and signal filters")
def rank_filter(g: Grammar) -> Sketch:
    """Medians, minima and maxima of a neighbourhood."""
    h, w = g.size("rows", 30, 90), g.size("cols", 30, 90)
    img, out = g.array("image", h, w, type_=g.pick("unsigned char", g.real)), None
    out = g.array("out", h, w, type_=img.type, out=True)
    i, j, a, b, best = g.index("i"), g.index("j"), g.name("dy"), g.name("dx"), g.name("best")
    kind = g.between(0, 2)
    r = 1 if kind == 0 else g.between(1, 2)
    if kind == 0:
        win, declared = g.local("in2", "9", type_=img.type)
        c, p, q, t = g.name("cnt"), g.index("k"), g.index("t"), g.name("tmp")
        fill = g.loop(
            a, "-1", "2", g.loop(b, "-1", "2", f"{win[f'{c}++']} = {img[f'{i} + {a}', f'{j} + {b}']};")
        )
        sort = g.loop(
            p,
            "1",
            "9",
            g.let(img.type, t, win[p]),
            g.let("int", q, f"{p} - 1"),
            While(f"{q} >= 0 && {win[q]} > {t}", [f"{win[f'{q} + 1']} = {win[q]};", f"{q}--;"]),
            f"{win[f'{q} + 1']} = {t};",
        )
        if g.chance(0.5):
            sort = g.loop(
                p,
                "0",
                g.pick("5", "9"),
                g.loop(
                    q,
                    f"{p} + 1",
                    "9",
                    If(
                        f"{win[q]} < {win[p]}",
                        [g.let(img.type, t, win[p]), f"{win[p]} = {win[q]};", f"{win[q]} = {t};"],
                    ),
                ),
            )
        body: list[Code] = [declared, g.let("int", c, "0"), fill, sort, f"{out[i, j]} = {win['4']};"]
    else:
        body = [
            g.let(img.type, best, img[i, j]),
            g.loop(
                a,
                f"-{r}",
                f"{r} + 1",
                g.loop(b, f"-{r}", f"{r} + 1", g.maximum(best, img[f"{i} + {a}", f"{j} + {b}"], kind == 1)),
            ),
            f"{out[i, j]} = {best};",
        ]
    inner = g.loop(i, str(r), f"{h} - {r}", g.loop(j, str(r), f"{w} - {r}", *body))
    return g.program(
        ("median3", "erode", "dilate", "rank_filter"),
        [g.loop(i, "0", h, g.loop(j, "0", w, f"{out[i, j]} = {g.pick(img[i, j], '0')};")), inner],
        says="An order statistic of each neighbourhood.",
    )


@family("image and signal filters")
def fir_filter(g: Grammar) -> Sketch:
    """Taps over a signal, for one channel or several, with or without decimation."""
    channels = g.size("rows", 4, 24) if g.chance(0.4) else ""
    n, taps = g.size("n", 400, 1500) if channels else g.size("n", 2000, 12000), g.size("window", 5, 24)
    h = g.array("weights", taps)
    x = g.array("in", *([channels] if channels else []), n)
    y = g.array("out", *([channels] if channels else []), n, out=True)
    c, i, k, total = g.index("j"), g.index("i"), g.index("k"), g.name("sum")

    def at(a: object, index: str) -> str:
        return a[c, index] if channels else a[index]  # type: ignore[index,no-any-return]

    kind = g.between(0, 2)
    if kind == 0:
        inner: Code = g.loop(
            k, "0", taps, If(f"{i} - {k} >= 0", g.add(total, f"{h[k]} * {at(x, f'{i} - {k}')}"))
        )
    elif kind == 1:
        last = g.name("tmp")
        inner = [
            g.let("int", last, f"{i} + 1 < {taps} ? {i} + 1 : {taps}", True),
            g.loop(k, "0", last, g.add(total, f"{h[k]} * {at(x, f'{i} - {k}')}")),
        ]
    else:
        inner = g.loop(k, "0", taps, g.add(total, f"{h[k]} * {at(x, f'({i} + {k}) % {n}')}"))
    end = total if g.chance(0.6) else formula(g, [total, at(x, i)], [], 1)
    code: Code = g.loop(i, "0", n, g.let(g.real, total, "0"), inner, f"{at(y, i)} = {end};")
    return g.program(
        ("fir", "filter_signal", "convolve_signal", "matched_filter"),
        g.loop(c, "0", channels, code) if channels else code,
        says="A finite impulse response.",
    )


@family("image and signal filters")
def transforms(g: Grammar) -> Sketch:
    """Fourier, cosine and Haar transforms by the definition."""
    n = g.size("n", 100, 420, multiple=2)
    x = g.array("in", n)
    k, t, re, im, w = g.index("i"), g.index("j"), g.name("sum"), g.name("sum2"), g.name("tmp")
    kind = g.between(0, 2)
    pi, pi2 = g.number(3.141593), g.number(6.283185)
    if kind == 0:
        power = g.chance(0.5)
        out = g.array("out", n, out=True)
        out2 = None if power else g.array("out2", n, out=True)
        angle = g.let(g.real, w, f"{pi2} * ({g.real})({k} * {t} % {n}) / ({g.real}){n}", True)
        body: list[Code] = [
            g.let(g.real, re, "0"),
            g.let(g.real, im, "0"),
            g.loop(
                t,
                "0",
                n,
                angle,
                g.add(re, f"{x[t]} * {g.math('cos', w)}"),
                g.add(im, f"{x[t]} * {g.math('sin', w)}", "-"),
            ),
        ]
        body += (
            [f"{out[k]} = {re} * {re} + {im} * {im};"]
            if out2 is None
            else [f"{out[k]} = {re};", f"{out2[k]} = {im};"]
        )
        code: Code = g.loop(k, "0", n, *body)
    elif kind == 1:
        out = g.array("out", n, out=True)
        code = g.loop(
            k,
            "0",
            n,
            g.let(g.real, re, "0"),
            g.loop(
                t,
                "0",
                n,
                g.add(
                    re,
                    f"{x[t]} * {g.math('cos', f'{pi} * ({t} + {g.number(0.5)}) * {k} / {n}')}",
                ),
            ),
            f"{out[k]} = {re};",
        )
    else:
        out = g.array("out", n, out=True)
        half = f"{n} / 2"
        code = g.loop(
            t,
            "0",
            half,
            f"{out[t]} = ({x[f'2 * {t}']} + {x[f'2 * {t} + 1']}) * {g.number(0.7071)};",
            f"{out[f'{half} + {t}']} = ({x[f'2 * {t}']} - {x[f'2 * {t} + 1']}) * {g.number(0.7071)};",
        )
    return g.program(
        ("dft", "power_spectrum", "dct", "haar_step", "spectrum"),
        code,
        says="A transform, straight from its definition.",
    )


@family("image and signal filters")
def windows(g: Grammar) -> Sketch:
    """Moving averages, variances, maxima; autocorrelation."""
    n, k = g.size("n", 1500, 9000), g.size("window", 4, 20)
    x = g.array("in", n)
    i, j, total, other = g.index("i"), g.index("j"), g.name("sum"), g.name("sum2")
    kind = g.between(0, 3)
    if kind == 3:
        out = g.array("out", k, out=True)
        code: Code = g.loop(
            j,
            "0",
            k,
            g.let(g.real, total, "0"),
            g.loop(i, "0", f"{n} - {j}", g.add(total, f"{x[i]} * {x[f'{i} + {j}']}")),
            f"{out[j]} = {total};",
        )
        return g.program(
            ("autocorrelation", "lag_products"), code, says="How the signal resembles itself, shifted."
        )
    out = g.array("out", f"{n} - {k} + 1", out=True)
    bound = f"{n} - {k} + 1"
    at = x[f"{i} + {j}"]
    if kind == 0:
        body: list[Code] = [
            g.let(g.real, total, "0"),
            g.loop(j, "0", k, g.add(total, at)),
            f"{out[i]} = {total} / {k};",
        ]
    elif kind == 1:
        body = [
            g.let(g.real, total, "0"),
            g.let(g.real, other, "0"),
            g.loop(j, "0", k, g.add(total, at), g.add(other, f"{at} * {at}")),
            f"{out[i]} = {other} / {k} + {g.number(0.1)} * {total};",
        ]
    else:
        body = [
            g.let(g.real, total, x[i]),
            g.loop(j, "1", k, g.maximum(total, at, g.chance(0.5))),
            f"{out[i]} = {g.pick(total, f'{total} - {x[i]}')};",
        ]
    return g.program(
        ("moving_average", "rolling_stats", "sliding_max", "window_scan"),
        g.loop(i, "0", bound, *body),
        says="A window slides over the signal.",
    )


@family("image and signal filters")
def resample(g: Grammar) -> Sketch:
    """Resizing an image: nearest, bilinear, pooling."""
    h, w = g.size("rows", 24, 70), g.size("cols", 24, 70)
    f = g.between(2, 3)
    i, j, a, b, total = g.index("i"), g.index("j"), g.index("k"), g.index("t"), g.name("sum")
    kind = g.between(0, 2)
    if kind == 0:
        img, out = (
            g.array("image", f"{h} * {f}", f"{w} * {f}", flat=True),
            g.array("out", h, w, out=True, flat=True),
        )
        largest = g.chance(0.5)
        at = img[f"{i} * {f} + {a}", f"{j} * {f} + {b}"]
        step = g.maximum(total, at) if largest else g.add(total, at)
        code: Code = g.loop(
            i,
            "0",
            h,
            g.loop(
                j,
                "0",
                w,
                g.let(g.real, total, f"-{g.number(1e30)}" if largest else "0"),
                g.loop(a, "0", str(f), g.loop(b, "0", str(f), step)),
                f"{out[i, j]} = {total if largest else f'{total} * {g.number(1 / (f * f))}'};",
            ),
        )
    elif kind == 1:
        img, out = (
            g.array("image", h, w, flat=True),
            g.array("out", f"{h} * {f}", f"{w} * {f}", out=True, flat=True),
        )
        code = g.loop(
            i,
            "0",
            f"{h} * {f}",
            g.loop(
                j, "0", f"{w} * {f}", f"{out[i, j]} = {formula(g, [img[f'{i} / {f}', f'{j} / {f}']], [], 2)};"
            ),
        )
    else:
        img, out = g.array("image", h, w), g.array("out", f"{h} - 1", f"{w} - 1", out=True)
        u, v = g.scalar("scale", 0.1, 0.9), g.scalar("shift", 0.1, 0.9)
        one = g.number(1)
        above = f"({one} - {v}) * {img[i, j]} + {v} * {img[i, f'{j} + 1']}"
        below = f"({one} - {v}) * {img[f'{i} + 1', j]} + {v} * {img[f'{i} + 1', f'{j} + 1']}"
        code = g.loop(
            i,
            "0",
            f"{h} - 1",
            g.loop(
                j,
                "0",
                f"{w} - 1",
                f"{out[i, j]} = ({one} - {u}) * ({above}) + {u} * ({below});",
            ),
        )
    return g.program(
        ("downsample", "pool", "enlarge", "resample", "shift_image"), code, says="The image at another size."
    )
