"""C as it is also written: pointers that walk, recursion, switches, jumps, bits of floats, local structs."""

from __future__ import annotations

from trainer.data.grammar.code import Code, If, While
from trainer.data.grammar.formulas import formula
from trainer.data.grammar.grammar import Grammar, Sketch
from trainer.data.registry import family


@family("pointers and control")
def pointer_walk(g: Grammar) -> Sketch:
    """Pointers moved along arrays instead of subscripts."""
    n = g.size("n", 2000, 16000)
    x, y = g.array("in", n), g.array("in2", n)
    out = g.array("out", n, out=True)
    p, q, end, i, total = g.name("tmp"), g.name("tmp2"), g.name("prev"), g.index("i"), g.name("sum")
    const = "const " if g.style.const else ""
    kind = g.between(0, 2)
    if kind == 0:
        start: list[Code] = [f"{const}{g.real} *{p} = {x.name};", f"{const}{g.real} *{q} = {y.name};"]
        value = formula(g, [f"*{p}", f"*{q}"], [], 1)
        code: list[Code] = [*start, g.loop(i, "0", n, f"{out.name}[{i}] = {value};", f"{p}++;", f"{q}++;")]
    elif kind == 1:
        value = formula(g, [f"*{p}", f"{y.name}[{p} - {x.name}]"], [], 1)
        code = [
            f"{const}{g.real} *{p} = {x.name};",
            f"{const}{g.real} *{end} = {x.name} + {n};",
            While(f"{p} < {end}", [f"{out.name}[{p} - {x.name}] = {value};", f"{p}++;"]),
        ]
    else:
        code = [
            f"{const}{g.real} *{p} = {x.name};",
            f"{g.real} *{q} = {out.name};",
            g.let(g.real, total, "0"),
            g.loop(i, "0", n, g.add(total, f"*{p}++ * {y[i]}"), f"*{q}++ = {total};"),
        ]
    return g.program(
        ("walk", "stream_through", "copy_scaled", "advance"), code, says="Walks along the arrays."
    )


@family("pointers and control")
def adaptive_integral(g: Grammar) -> Sketch:
    """A recursive function for each element; how deep it goes is data."""
    n = g.size("n", 200, 1500)
    a, b = g.array("in", n, low=0, high=1), g.array("in2", n, low=1, high=3)
    levels = g.array("index", n, type_="int", low=0, high=g.between(3, 6))
    out = g.array("out", n, out=True)
    i = g.index("i")
    half = g.number(0.5)
    f = g.helper("curve", g.real, f"{g.real} v", f"return {formula(g, ['v'], [], 4)};")
    rule = g.pick(
        f"return (hi - lo) * {f}(mid);",
        f"return {half} * (hi - lo) * ({f}(lo) + {f}(hi));",
        f"return (hi - lo) * ({f}(lo) + {g.number(4)} * {f}(mid) + {f}(hi)) / {g.number(6)};",
    )
    uneven = g.chance(0.3)

    def body(own: str) -> list[Code]:
        other = "depth - 2" if uneven else "depth - 1"
        return [
            f"{g.real} mid = {half} * (lo + hi);",
            If("depth <= 0", rule),
            f"return {own}(lo, mid, depth - 1) + {own}(mid, hi, {other});",
        ]

    refine = g.helper("refine", g.real, f"{g.real} lo, {g.real} hi, int depth", body)
    code = g.loop(i, "0", n, f"{out[i]} = {refine}({a[i]}, {b[i]}, {levels[i]});")
    return g.program(
        ("integrate_ranges", "quadrature", "areas"), code, says="Refines every interval by itself."
    )


@family("pointers and control")
def recursive_counts(g: Grammar) -> Sketch:
    """Integer recursions of data-dependent depth."""
    n = g.size("n", 200, 1500)
    x = g.array("in", n, type_="int", low=1, high=g.between(12, 18))
    y = g.array("in2", n, type_="int", low=1, high=8)
    out = g.array("out", n, type_="int", out=True)
    i = g.index("i")

    def body(own: str) -> list[Code]:
        last = g.pick(
            f"{own}(a - 1, b) + {own}(a - b, b - 1)",
            f"{own}(a - 1, b) + {own}(a - 2, b) % 97",
            f"1 + {own}(a / 2, b) + {own}(a / 3, b)",
        )
        return [
            If(f"a <= {g.pick(0, 1)} || b <= 0", f"return {g.pick('1', 'a + b', 'b')};"),
            f"return {last};",
        ]

    ways = g.helper("ways", "int", "int a, int b", body)
    code = g.loop(i, "0", n, f"{out[i]} = {ways}({x[i]}, {y[i]});")
    return g.program(("partitions", "count_recursively", "tree_sizes"), code, says="Counts by recursion.")


@family("pointers and control")
def operation_codes(g: Grammar) -> Sketch:
    """A switch over an operation for each element."""
    n = g.size("n", 2000, 14000)
    op = g.array("key", n, type_=g.pick("int", "unsigned char"), low=0, high=6)
    x, y = g.array("in", n), g.array("in2", n)
    out = g.array("out", n, out=True)
    i, v = g.index("i"), g.name("tmp")
    count = g.between(3, 5)
    inner = g.style.indent
    lines = [f"switch ({op[i]}) {{"]
    for case in range(count):
        lines.append(f"case {case}:")
        lines.append(f"{inner}{v} = {formula(g, [x[i], y[i]], [], 1)};")
        if case < count - 1 or g.chance(0.5):
            lines.append(f"{inner}break;")
    lines += [
        "default:",
        f"{inner}{v} = {g.pick(x[i], f'-{y[i]}', formula(g, [x[i]], [], 1))};",
        f"{inner}break;",
        "}",
    ]
    code = g.loop(i, "0", n, g.let(g.real, v, g.number(0)), "\n".join(lines), f"{out[i]} = {v};")
    return g.program(
        ("apply_ops", "run_ops", "evaluate_codes"), code, says="Each element has its own operation."
    )


@family("pointers and control")
def jump_out(g: Grammar) -> Sketch:
    """Leaving nested loops with goto."""
    n, m = g.size("rows", 100, 600), g.size("cols", 20, 80)
    x = g.array("in", n, m, type_="int", low=0, high=g.pick(30, 60))
    out = g.array("out", n, type_="int", out=True)
    i, j, k, hit = g.index("i"), g.index("j"), g.index("k"), g.name("where")
    limit = g.between(1, 4)
    test = g.pick(
        f"{x[i, j]} == {x[i, k]}",
        f"{x[i, j]} + {x[i, k]} == {g.between(20, 60)}",
        f"{x[i, j]} - {x[i, k]} > {g.between(20, 28)}",
    )
    code = g.loop(
        i,
        "0",
        n,
        g.let("int", hit, "-1"),
        g.loop(
            j, "0", m, g.loop(k, f"{j} + {limit}", m, If(test, [f"{hit} = {j} * {m} + {k};", "goto done;"]))
        ),
        "done:",
        f"{out[i]} = {hit};",
    )
    return g.program(
        ("first_pair", "find_repeat", "earliest_match"), code, says="The first pair of each row that fits."
    )


@family("pointers and control")
def float_bits(g: Grammar) -> Sketch:
    """The bits of floating-point numbers: exponents, sort keys, fast approximations."""
    n = g.size("n", 2000, 16000)
    x = g.array("in", n, type_="float", low=-100, high=100, extent=True)
    out = g.array("out", n, type_="unsigned int", out=True)
    i, w = g.index("i"), g.name("word")
    read: list[Code] = [f"unsigned int {w};", f"memcpy(&{w}, &{x[i]}, sizeof {w});"]
    if g.chance(0.5):
        g.header("string.h")
    else:
        u = g.name("state")
        read = [
            f"union {{ float f; unsigned int b; }} {u};",
            f"{u}.f = {x[i]};",
            g.let("unsigned int", w, f"{u}.b"),
        ]
    value = g.pick(
        f"({w} >> 23) & 0xffu",
        f"{w} & 0x80000000u ? ~{w} : {w} | 0x80000000u",
        f"0x5f3759dfu - (({w} & 0x7fffffffu) >> 1)",
        f"({w} & 0x7fffffu) >> {g.between(8, 18)}",
    )
    if g.chance(0.4):
        value = f"({value}) ^ {hex(g.between(1, 0xFFFFFF))}u"
    return g.program(
        ("sort_keys", "exponents", "float_words"),
        g.loop(i, "0", n, *read, f"{out[i]} = {value};"),
        says="Looks at the bits of every number.",
    )


@family("pointers and control")
def local_records(g: Grammar) -> Sketch:
    """A small table of structs for each row, filled and searched."""
    n, m = g.size("rows", 100, 500), g.size("cols", 20, 80)
    x = g.array("in", n, m)
    out = g.array("out", n, out=True)
    i, j, k, best, t = g.index("i"), g.index("j"), g.index("k"), g.name("best"), g.name("table")
    size = g.pick(4, 6, 8)
    names = g.pick(("value", "count"), ("total", "hits"), ("level", "uses"))
    a, b = names
    clear = g.loop(k, "0", str(size), f"{t}[{k}].{a} = {g.number(0)};", f"{t}[{k}].{b} = 0;")
    fill = g.loop(
        j,
        "0",
        m,
        f"{t}[{j} % {size}].{a} += {formula(g, [x[i, j]], [], 1)};",
        If(f"{x[i, j]} > {g.number(0)}", f"{t}[{j} % {size}].{b}++;"),
    )
    search = g.loop(k, "1", str(size), If(f"{t}[{k}].{a} > {t}[{best}].{a}", f"{best} = {k};"))
    code = g.loop(
        i,
        "0",
        n,
        f"struct {{ {g.real} {a}; int {b}; }} {t}[{size}];",
        g.let("int", best, "0"),
        clear,
        fill,
        search,
        f"{out[i]} = {t}[{best}].{a} + {t}[{best}].{b};",
    )
    return g.program(
        ("best_slot", "row_records", "summarise"),
        code,
        says="A few records for each row, and the best of them.",
    )


@family("pointers and control")
def merge_runs(g: Grammar) -> Sketch:
    """Two rows made ascending and merged, for each pair of rows."""
    rows, m = g.size("rows", 60, 300), g.size("cols", 12, 40)
    kind = g.pick("int", g.real)
    x, y = (
        g.array("in", rows, m, type_=kind, low=0, high=9),
        g.array("in2", rows, m, type_=kind, low=0, high=9),
    )
    out = g.array("out", rows, f"2 * {m}", type_=kind, out=True)
    a, declared_a = g.local("table", m, type_=kind)
    b, declared_b = g.local("dist", m, type_=kind)
    i, j, p, q, k = g.index("i"), g.index("j"), g.name("low"), g.name("high"), g.name("cnt")
    rise = [
        g.loop(j, "1", m, f"{a[j]} = {a[f'{j} - 1']} + {x[i, j]};"),
        g.loop(j, "1", m, f"{b[j]} = {b[f'{j} - 1']} + {y[i, j]};"),
    ]
    take = If(
        f"{q} >= {m} || ({p} < {m} && {a[p]} <= {b[q]})",
        f"{out[i, k]} = {a[f'{p}++']};",
        f"{out[i, k]} = {b[f'{q}++']};",
    )
    code = g.loop(
        i,
        "0",
        rows,
        declared_a,
        declared_b,
        f"{a['0']} = {x[i, '0']};",
        f"{b['0']} = {y[i, '0']};",
        *rise,
        g.let("int", p, "0"),
        g.let("int", q, "0"),
        g.loop(k, "0", f"2 * {m}", take),
    )
    return g.program(
        ("merge_rows", "merge_runs", "interleave_sorted"),
        code,
        says="Merges two ascending lists for each row.",
    )
