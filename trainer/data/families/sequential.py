"""Programs that are better left alone: each step needs the one before, and nothing can be done sooner."""

from __future__ import annotations

from trainer.data.grammar.code import Code, If, While
from trainer.data.grammar.grammar import Grammar, Sketch
from trainer.data.registry import family

CHAIN = "every step starts from the result of the one before"


@family("sequential")
def chaotic_map(g: Grammar) -> Sketch:
    """Nonlinear recurrences, from one start."""
    n = g.size("n", 100, 400)
    kick = g.array("in", n, low=-0.05, high=0.05)
    out = g.array("out", n, out=True)
    i, x, y = g.index("i"), g.name("prev"), g.name("tmp")
    r = g.scalar("rate", 0.3, 0.8)
    half, one = g.number(0.5), g.number(1)
    step = g.pick(
        f"{x} = {half} * {x} * ({one} - {x}) + {r} * {kick[i]};",
        f"{x} = {r} * {g.math('sin', x)} + {kick[i]};",
        f"{x} = {x} / ({one} + {r} * {x} * {x}) + {kick[i]};",
        f"{x} = {r} * {g.math('cos', x)} + {half} * {kick[i]};",
    )
    body: list[Code] = [step, f"{out[i]} = {x};"]
    if g.chance(0.4):
        body = [g.let(g.real, y, x, True), step, f"{out[i]} = {x} - {g.number(0.25)} * {y};"]
    if g.chance(0.3):
        body.insert(-1, If(f"{x} > {one}", f"{x} = {x} - {half};"))
    return g.program(
        ("iterate_map", "logistic", "recurrence", "driven_map"),
        [g.let(g.real, x, g.number(0.4)), g.loop(i, "0", n, *body)],
        says="A nonlinear recurrence.",
        keep=CHAIN,
    )


@family("sequential")
def state_machine(g: Grammar) -> Sketch:
    """A machine that reads text: its state decides what the next character means."""
    n = g.size("n", 400, 4000)
    s = g.array("text", n, type_=g.pick("unsigned char", "char"), low=32, high=64)
    out = g.array("out", n, type_="int", out=True)
    i, st, depth, c = g.index("i"), g.name("state"), g.name("cnt"), g.name("tmp")
    marks = [34, 35, 40, 41, 47, 60, 62]
    g.rng.shuffle(marks)
    quote, opening, closing = marks[:3]
    inside: Code = If(
        f"{c} == {quote}",
        f"{st} = 0;",
        If(f"{c} == {opening}", f"{depth} = ({depth} * 3 + {c}) % {g.pick(97, 61, 31)};"),
    )
    outside: Code = If(
        f"{c} == {quote}",
        f"{st} = 1;",
        If(f"{c} == {closing} && {depth} > 0", f"{depth}--;", If(f"{c} == {opening}", f"{depth} += 2;")),
    )
    body: list[Code] = [
        g.let("int", c, s[i], True),
        If(f"{st} == 1", inside, outside),
        f"{out[i]} = {st} + 2 * {depth};",
    ]
    if g.chance(0.4):
        body = [
            g.let("int", c, s[i], True),
            f"{st} = ({st} * {g.between(3, 9)} + {c}) % {g.pick(7, 11, 13)};",
            If(f"{st} == {g.between(0, 6)}", f"{depth}++;", If(f"{st} > 4 && {depth} > 0", f"{depth}--;")),
            f"{out[i]} = {g.pick(depth, f'{st} * 100 + {depth}')};",
        ]
    return g.program(
        ("scan_tokens", "run_machine", "strip_quotes", "parse_depth"),
        [g.let("int", st, "0"), g.let("int", depth, "0"), g.loop(i, "0", n, *body)],
        says="A state machine over the text.",
        keep="the state after each character decides what the next one does",
    )


@family("sequential")
def generator_chain(g: Grammar) -> Sketch:
    """A pseudo-random sequence and what it shuffles."""
    n = g.size("n", 300, 3000)
    x = g.array("in", n, type_="int", inout=True)
    i, s, j, t = g.index("i"), g.name("state"), g.name("where"), g.name("tmp")
    seed = g.integer("limit", 1, 9999)
    mult, plus = g.pick("1103515245u", "1664525u", "69069u"), g.pick("12345u", "1013904223u", "1u")
    turn = g.pick(
        [f"{s} = {s} * {mult} + {plus};"], [f"{s} ^= {s} << 13;", f"{s} ^= {s} >> 17;", f"{s} ^= {s} << 5;"]
    )
    start = g.let("unsigned int", s, f"(unsigned){seed} * 2u + 1u")
    if g.chance(0.6):
        body: list[Code] = [
            *turn,
            g.let("int", j, f"(int)({s} % (unsigned)({i} + 1))", True),
            g.let("int", t, x[i]),
            f"{x[i]} = {x[j]};",
            f"{x[j]} = {t};",
        ]
        return g.program(
            ("shuffle", "permute_in_place", "deal"),
            [start, g.loop(i, "1", n, *body, down=g.chance(0.5))],
            says="Shuffles with a generator.",
            keep="every exchange moves what later ones move again",
        )
    body = [*turn, g.add(x[i], f"(int)({s} >> {g.between(12, 20)})"), f"{s} += (unsigned){x[i]};"]
    return g.program(
        ("encrypt_stream", "whiten_chain", "feedback_noise"),
        [start, g.loop(i, "0", n, *body)],
        says="Noise that feeds on its own output.",
        keep=CHAIN,
    )


@family("sequential")
def pointer_chase(g: Grammar) -> Sketch:
    """Follows links: where to go next is known only on arrival."""
    n = g.size("n", 200, 2000)
    next_ = g.array("index", n, type_="int")
    val = g.array("in", n, type_=g.pick("int", "int", g.real))
    i, at, t = g.index("i"), g.name("where"), g.name("sum")
    out = g.array("out", n, type_=val.type, out=True)
    body: list[Code] = [
        g.pick(f"{t} = {val[at]};", g.add(t, val[at])),
        f"{out[i]} = {t};",
        f"{at} = {next_[at]};",
    ]
    if g.chance(0.5):
        flip = f"({at} + {i}) % {n}"
        body[-1] = f"{at} = {next_[at]};" if g.chance(0.5) else f"{at} = {next_[flip]};"
    return g.program(
        ("walk_list", "follow_links", "trace_chain"),
        [g.let("int", at, "0"), g.let(val.type, t, "0"), g.loop(i, "0", n, *body)],
        says="Follows the links.",
        keep="the next place is known only when the last one has been read",
    )


@family("sequential")
def stack_machine(g: Grammar) -> Sketch:
    """Byte code, brackets, undo logs: a stack that the input drives."""
    n = g.size("n", 200, 2000)
    code_ = g.array("in", n, type_="int", low=0, high=g.between(5, 9))
    arg = g.array("in2", n, type_="int", low=-9, high=9)
    out = g.array("out", n, type_="int", out=True)
    depth = g.constant("stack", str(g.pick(32, 64)))
    stack, declared = g.local("table", depth, type_="int")
    i, sp, op = g.index("i"), g.name("cnt"), g.name("tmp")
    push = If(f"{sp} < {depth}", f"{stack[f'{sp}++']} = {arg[i]};")
    a, b = stack[f"{sp} - 2"], stack[f"{sp} - 1"]
    merge = If(
        f"{sp} > 1", [f"{a} = ({a} {g.pick('+', '-', '*')} {b}) % {g.pick(1000, 997, 251)};", f"{sp}--;"]
    )
    bump = If(f"{sp} > 0", g.add(b, f"{op} * {arg[i]}"))
    return g.program(
        ("run_bytecode", "evaluate_stream", "stack_machine"),
        [
            declared,
            g.let("int", sp, "0"),
            g.loop(
                i,
                "0",
                n,
                g.let("int", op, code_[i], True),
                If(f"{op} < {g.between(2, 4)}", push, If(f"{op} < 5", merge, bump)),
                f"{out[i]} = {sp} > 0 ? {b} : {g.pick('0', '-1')};",
            ),
        ],
        says="Runs a small program on a stack.",
        keep="what each instruction does depends on the stack that earlier ones left",
    )


@family("sequential")
def adaptive_filter(g: Grammar) -> Sketch:
    """Filters whose coefficients follow their own error; recursive filters with a limiter."""
    n = g.size("n", 200, 1200)
    x = g.array("in", n, low=-1, high=1)
    d = g.array("in2", n, low=-1, high=1)
    y = g.array("out", n, out=True)
    mu = g.scalar("rate", 0.01, 0.08)
    i, w, e, k = g.index("i"), g.name("scale"), g.name("tmp"), g.index("k")
    zero, one = g.number(0), g.number(1)
    if g.chance(0.5):
        taps = g.between(3, 6)
        size = g.constant("taps", str(taps))
        coef, declared = g.local("weights", size)
        clear = g.loop(k, "0", size, f"{coef[k]} = {zero};")
        total = g.name("sum")
        body: list[Code] = [
            g.let(g.real, total, zero),
            g.loop(k, "0", size, If(f"{i} >= {k}", g.add(total, f"{coef[k]} * {x[f'{i} - {k}']}"))),
            g.let(g.real, e, f"{d[i]} - {total}", True),
            g.loop(k, "0", size, If(f"{i} >= {k}", g.add(coef[k], f"{mu} * {e} * {x[f'{i} - {k}']}"))),
            f"{y[i]} = {g.pick(e, total)};",
        ]
        return g.program(
            ("lms", "adapt", "echo_canceller"),
            [declared, clear, g.loop(i, "0", n, *body)],
            says="A filter that learns as it goes.",
            keep="the coefficients of each step come from the error of the one before",
        )
    state = g.name("prev")
    body = [
        g.let(g.real, e, f"{x[i]} - {w} * {state}", True),
        If(f"{e} > {zero}", f"{w} = {w} + {mu} * {state} * {e};", f"{w} = {w} * ({one} - {mu});"),
        f"{state} = {e} / ({one} + {e} * {e}) + {g.number(0.1)} * {d[i]};",
        f"{y[i]} = {state};",
    ]
    return g.program(
        ("limiter", "feedback_filter", "track_gain"),
        [g.let(g.real, w, g.number(0.3)), g.let(g.real, state, zero), g.loop(i, "0", n, *body)],
        says="A recursive filter with a gain of its own.",
        keep=CHAIN,
    )


@family("sequential")
def token_bucket(g: Grammar) -> Sketch:
    """Queues and budgets: each decision changes what the next one may do."""
    n = g.size("packets", 300, 3000)
    size = g.array("in", n, type_="int", low=1, high=g.pick(40, 100))
    gap = g.array("in2", n, type_="int", low=0, high=9)
    out = g.array("out", n, type_="int", out=True)
    i, level, drop = g.index("i"), g.name("state"), g.name("cnt")
    cap, rate = g.between(100, 400), g.between(3, 9)
    fill: list[Code] = [g.add(level, f"{gap[i]} * {rate}"), If(f"{level} > {cap}", f"{level} = {cap};")]
    take: Code = If(
        f"{size[i]} <= {level}",
        [g.add(level, size[i], "-"), f"{out[i]} = {g.pick('1', level)};"],
        [f"{drop}++;", f"{out[i]} = -{drop};"] if g.chance(0.5) else [f"{out[i]} = 0;", f"{drop}++;"],
    )
    code: list[Code] = [
        g.let("int", level, str(cap)),
        g.let("int", drop, "0"),
        g.loop(i, "0", n, *fill, take),
        f"return {drop};",
    ]
    return g.program(
        ("token_bucket", "police_traffic", "shape_packets"),
        code,
        returns="int",
        says="Lets through what the budget allows.",
        keep="whether a packet passes depends on all that passed before",
    )


@family("sequential")
def digit_chain(g: Grammar) -> Sketch:
    """Long arithmetic: carries that run through all digits, one operation after the other."""
    n, rounds = g.size("n", 60, 300), g.size("steps", 3, 12)
    x = g.array("in", n, type_="int", low=0, high=9, inout=True)
    i, t, carry, v = g.index("i"), g.index("t"), g.name("prev"), g.name("tmp")
    base = g.pick(10, 100, 16)
    factor = g.between(3, 97)
    body: list[Code] = [
        g.let("int", v, f"{x[i]} * {factor} + {carry}", True),
        f"{x[i]} = {v} % {base};",
        f"{carry} = {v} / {base};",
    ]
    start = g.let("int", carry, g.pick("0", t, f"{t} * {t} + 1"))
    if g.chance(0.4):
        body = [
            g.let("int", v, f"{carry} * {base} + {x[i]}", True),
            f"{x[i]} = {v} / {factor};",
            f"{carry} = {v} % {factor};",
        ]
    code = g.loop(t, "0", rounds, start, g.loop(i, "0", n, *body))
    return g.program(
        ("multiply_digits", "big_number_steps", "long_arithmetic"),
        code,
        says="Long arithmetic on an array of digits.",
        keep="each digit needs the carry of the one before",
    )


@family("sequential")
def search_root(g: Grammar) -> Sketch:
    """Newton, bisection and Euclid on single numbers, written out step by step."""
    n = g.size("steps", 10, 40)
    a = g.array("in", g.pick("4", "8"), low=0.5, high=4)
    out = g.array("out", n, out=True)
    i, x, f = g.index("i"), g.name("tmp"), g.name("tmp2")
    count = a.dims[0]
    c = a[f"{i} % {count}"]
    half = g.number(0.5)
    step: list[Code] = g.pick(
        [f"{x} = {half} * ({x} + {c} / {x});"],
        [
            g.let(g.real, f, f"{x} * {x} * {x} - {c}", True),
            f"{x} = {x} - {f} / ({g.number(3)} * {x} * {x} + {g.number(0.1)});",
        ],
        [f"{x} = {g.math('sqrt', f'{x} + {c}')};"],
    )
    code: list[Code] = [g.let(g.real, x, a["0"]), g.loop(i, "0", n, *step, f"{out[i]} = {x};")]
    if g.chance(0.4):
        lo, hi = g.name("low"), g.name("high")
        code = [
            g.let(g.real, lo, g.number(0)),
            g.let(g.real, hi, g.number(5)),
            g.let("int", i, "0"),
            While(
                f"{i} < {n}",
                [
                    g.let(g.real, x, f"{half} * ({lo} + {hi})", True),
                    If(f"{x} * {x} > {a['1']} + {g.number(0.01)} * {x}", f"{hi} = {x};", f"{lo} = {x};"),
                    f"{out[i]} = {hi} - {g.number(0.5)} * {lo};",
                    f"{i}++;",
                ],
            ),
        ]
    return g.program(
        ("newton", "find_root", "fixed_point"),
        code,
        says="Closes in on a root.",
        keep="a single number, refined step by step",
    )
