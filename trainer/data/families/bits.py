"""Integers and their bits."""

from __future__ import annotations

from trainer.data.grammar.code import Code, If, While
from trainer.data.grammar.formulas import integer_formula
from trainer.data.grammar.grammar import Grammar, Sketch
from trainer.data.registry import family

WORD = "unsigned int"


@family("integers and bits")
def mix_words(g: Grammar) -> Sketch:
    """Shifts, masks and multiplications, some rounds of them."""
    n = g.size("n", 2000, 20000)
    x = g.array("in", n, type_=WORD)
    out = g.array("out", n, type_=WORD, out=True)
    i, h, r = g.index("i"), g.name("hash"), g.index("t")
    values = [h]
    if g.chance(0.5):
        values.append(g.array("in2", n, type_=WORD)[i])
    rounds = g.between(1, 5)
    step = f"{h} = {integer_formula(g, values, 3)};"
    body: list[Code] = [g.let(WORD, h, x[i])]
    if rounds > 1:
        body.append(g.loop(r, "0", g.constant("rounds", str(rounds)), step))
    else:
        body.append(step)
    if g.chance(0.5):
        body.append(If(f"{h} & {hex(1 << g.between(0, 15))}u", f"{h} = {integer_formula(g, [h], 2)};"))
    return g.program(
        ("mix", "scramble", "hash_words", "whiten"),
        g.loop(i, "0", n, *body, f"{out[i]} = {h};"),
        says="Mixes the bits of every word.",
    )


@family("integers and bits")
def count_bits(g: Grammar) -> Sketch:
    """Population counts, parities, highest bits, reversals."""
    n = g.size("n", 2000, 20000)
    x = g.array("in", n, type_=WORD)
    i, v, c, b = g.index("i"), g.name("word"), g.name("cnt"), g.index("k")
    kind = g.between(0, 4)
    loops: list[Code]
    if kind == 0:
        loops = [While(f"{v} != 0", [f"{v} &= {v} - 1;", f"{c}++;"])]
    elif kind == 1:
        loops = [g.loop(b, "0", "32", g.add(c, f"({v} >> {b}) & 1u"))]
    elif kind == 2:
        loops = [While(f"{v} > {g.pick('0', '1')}", [f"{v} >>= 1;", f"{c}++;"])]
    elif kind == 3:
        loops = [g.loop(b, "0", "32", f"{c} = ({c} << 1) | ({v} & 1u);", f"{v} >>= 1;")]
    else:
        loops = [
            While(
                f"{v} != 0", [If(f"({v} & 3u) == {g.between(1, 3)}u", f"{c}++;"), f"{v} >>= {g.pick(1, 2)};"]
            )
        ]
    whole = [g.let(WORD, v, g.pick(x[i], f"{x[i]} ^ ({x[i]} >> 1)")), g.let(WORD, c, "0"), *loops]
    if kind != 3 and g.chance(0.3):
        total = g.name("sum")
        return g.program(
            ("total_bits", "bit_sum"),
            [g.let("long", total, "0"), g.loop(i, "0", n, *whole, g.add(total, c)), f"return {total};"],
            returns="long",
            says="Bits of all words together.",
        )
    out = g.array("out", n, type_=WORD, out=True)
    return g.program(
        ("popcounts", "bit_lengths", "reverse_words", "count_ones"),
        g.loop(i, "0", n, *whole, f"{out[i]} = {c};"),
        says="Looks at the bits of every word.",
    )


@family("integers and bits")
def number_theory(g: Grammar) -> Sketch:
    """Greatest common divisors, modular powers, primality: loops whose length the data decide."""
    n = g.size("n", 800, 6000)
    kind = g.between(0, 3)
    a = g.array("in", n, type_="int", low=1, high=g.pick(999, 5000, 30000))
    out = g.array("out", n, type_="int", out=True)
    i, x, y, t = g.index("i"), g.name("tmp"), g.name("tmp2"), g.name("tmp3")
    body: list[Code]
    if kind == 0:
        b = g.array("in2", n, type_="int", low=1, high=9999)
        body = [
            g.let("int", x, a[i]),
            g.let("int", y, b[i]),
            While(f"{y} != 0", [g.let("int", t, f"{x} % {y}", True), f"{x} = {y};", f"{y} = {t};"]),
            f"{out[i]} = {g.pick(x, f'{x} > 1 ? {x} : -1')};",
        ]
    elif kind == 1:
        m, e = g.pick(10007, 30011, 997), g.between(5, 200)
        body = [
            g.let("long", x, f"{a[i]} % {m}"),
            g.let("long", y, "1"),
            g.let("int", t, str(e) if g.chance(0.5) else f"{i} % {e} + 1"),
            While(
                f"{t} > 0",
                [If(f"{t} & 1", f"{y} = {y} * {x} % {m};"), f"{x} = {x} * {x} % {m};", f"{t} >>= 1;"],
            ),
            f"{out[i]} = (int){y};",
        ]
    elif kind == 2:
        body = [
            g.let("int", x, f"{a[i]} >= 2"),
            g.let("int", y, "2"),
            While(f"{x} && {y} * {y} <= {a[i]}", [If(f"{a[i]} % {y} == 0", f"{x} = 0;"), f"{y}++;"]),
            f"{out[i]} = {g.pick(x, f'{x} ? {a[i]} : {y}')};",
        ]
    else:
        body = [
            g.let("int", x, a[i]),
            g.let("int", y, "0"),
            While(f"{x} > 0", [g.add(y, f"{x} % {g.pick(10, 7, 16)}"), f"{x} /= {g.pick(10, 7, 16)};"]),
            f"{out[i]} = {y};",
        ]
    return g.program(
        ("gcd_pairs", "mod_powers", "test_primes", "digit_sums", "per_number"),
        g.loop(i, "0", n, *body),
        says="Arithmetic on every number.",
    )


@family("integers and bits")
def collatz(g: Grammar) -> Sketch:
    """Lengths of chains: very uneven work."""
    n = g.size("n", 500, 4000)
    x = g.array("in", n, type_="int", low=1, high=g.pick(500, 3000, 9000))
    out = g.array("out", n, type_="int", out=True)
    i, v, c, top = g.index("i"), g.name("tmp"), g.name("cnt"), g.name("best")
    cap = g.pick(100, 200, 400)
    odd = g.pick(f"{v} = 3 * {v} + 1;", f"{v} = (3 * {v} + 1) / 2;")
    step: list[Code] = [If(f"{v} % 2 == 0", f"{v} /= 2;", odd), f"{c}++;"]
    body: list[Code] = [
        g.let("long", v, x[i]),
        g.let("int", c, "0"),
        While(f"{v} != 1 && {c} < {cap}" if g.chance(0.6) else f"{v} > 1", step),
    ]
    if g.chance(0.4):
        body = [
            g.let("long", v, x[i]),
            g.let("int", c, "0"),
            g.let("long", top, v),
            While(f"{v} != 1", [*step, g.maximum(top, v)]),
            g.add(c, f"(int)({top} % {g.pick(97, 13)})"),
        ]
    return g.program(
        ("collatz_lengths", "chain_steps", "hailstone"),
        g.loop(i, "0", n, *body, f"{out[i]} = {c};"),
        says="How long each chain is.",
    )


@family("integers and bits")
def sieve(g: Grammar) -> Sketch:
    """Multiples crossed out, divisors counted."""
    n = g.size("n", 2000, 12000)
    add = g.array("in", n, type_="int", low=0, high=9)
    out = g.array("out", n, type_="int", out=True)
    i, j = g.index("i"), g.index("j")
    if g.chance(0.5):
        code: list[Code] = [
            g.loop(i, "0", n, f"{out[i]} = {i} > 1 ? 1 + {add[i]} : 0;"),
            g.loop(
                i,
                "2",
                n,
                If(
                    f"(long){i} * {i} < {n} && {out[i]} > 0",
                    g.loop(j, f"{i} * {i}", n, f"{out[j]} = 0;", step=i),
                ),
            ),
        ]
    else:
        code = [
            g.loop(i, "0", n, f"{out[i]} = {add[i]};"),
            g.loop(i, "1", n, g.loop(j, i, n, g.add(out[j], g.pick("1", i, f"{i} & 1")), step=i)),
        ]
    return g.program(("sieve", "mark_multiples", "divisor_table"), code, says="Walks over multiples.")


@family("integers and bits")
def interleave(g: Grammar) -> Sketch:
    """Morton codes, packed fields, Gray codes."""
    n = g.size("n", 2000, 16000)
    x, y = g.array("in", n, type_=WORD), g.array("in2", n, type_=WORD)
    out = g.array("out", n, type_=WORD, out=True)
    i, a, k = g.index("i"), g.name("word"), g.index("k")
    kind = g.between(0, 2)
    if kind == 0:
        bits = g.between(8, 16)
        inner: list[Code] = [
            g.let(WORD, a, "0"),
            g.loop(
                k,
                "0",
                str(bits),
                g.add(a, f"(({x[i]} >> {k}) & 1u) << (2 * {k})", "|"),
                g.add(a, f"(({y[i]} >> {k}) & 1u) << (2 * {k} + 1)", "|"),
            ),
        ]
    elif kind == 1:
        spread = g.helper(
            "spread_bits",
            WORD,
            f"{WORD} v",
            [
                "v &= 0xffffu;",
                "v = (v | (v << 8)) & 0x00ff00ffu;",
                "v = (v | (v << 4)) & 0x0f0f0f0fu;",
                "v = (v | (v << 2)) & 0x33333333u;",
                "v = (v | (v << 1)) & 0x55555555u;",
                "return v;",
            ],
        )
        inner = [g.let(WORD, a, f"{spread}({x[i]}) | ({spread}({y[i]}) << 1)")]
    else:
        cut = g.between(4, 20)
        inner = [
            g.let(WORD, a, f"({x[i]} & {hex((1 << cut) - 1)}u) | ({y[i]} << {cut})"),
            f"{a} ^= {a} >> {g.between(1, 9)};",
        ]
    if g.chance(0.4):
        inner.append(f"{a} = {integer_formula(g, [a], 1)};")
    return g.program(
        ("morton", "pack_fields", "interleave_bits", "gray_code"),
        g.loop(i, "0", n, *inner, f"{out[i]} = {a};"),
        says="Packs two words into one.",
    )
