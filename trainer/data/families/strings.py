"""Bytes as text."""

from __future__ import annotations

from trainer.data.grammar.code import Code, If, While
from trainer.data.grammar.grammar import Grammar, Sketch
from trainer.data.registry import family


@family("strings")
def change_case(g: Grammar) -> Sketch:
    """Each character by itself: case, ciphers, classes."""
    n = g.size("n", 3000, 30000)
    kind = g.pick("char", "unsigned char")
    s = g.array("text", n, type_=kind, low=32, high=126)
    out = g.array("out", n, type_=kind, out=True)
    i, c = g.index("i"), g.name("tmp")
    shift = g.between(1, 25)
    arms = [
        If(f"{c} >= 'a' && {c} <= 'z'", f"{c} = {c} - 'a' + 'A';"),
        If(f"{c} >= 'A' && {c} <= 'Z'", f"{c} = 'A' + ({c} - 'A' + {shift}) % 26;"),
        If(
            f"{c} >= '0' && {c} <= '9'",
            f"{c} = '0' + ({g.between(3, 9)} * ({c} - '0') + {g.between(1, 9)}) % 10;",
        ),
        If(f"{c} < 48", f"{c} = '{g.pick('_', ' ', '-', '.')}';"),
    ]
    g.rng.shuffle(arms)
    chosen = arms[: g.between(1, 4)]
    body: list[Code] = list(chosen)
    if g.chance(0.5):
        chain: Code = ()
        for arm in reversed(chosen):
            chain = If(arm.test, arm.then, chain)
        body = [chain]
    if g.chance(0.4):
        key = g.array("text2", g.constant("period", "16"), type_=kind, low=0, high=25)
        body.append(f"{c} = 32 + ({c} - 32 + {key[f'{i} % {key.dims[0]}']}) % 95;")
    return g.program(
        ("caesar", "to_upper", "encode_text", "translate_chars", "mask_text"),
        g.loop(
            i, "0", n, g.let("int", c, s[i]), *body, f"{out[i]} = {'' if kind == 'int' else f'({kind})'}{c};"
        ),
        says="Maps every character.",
    )


@family("strings")
def find_word(g: Grammar) -> Sketch:
    """Where a pattern stands: naive matching, with or without wildcards."""
    n, m = g.size("n", 2000, 12000), g.size("window", 2, 6)
    kind = g.pick("char", "unsigned char")
    letters = g.between(2, 4)
    s, p = (
        g.array("text", n, type_=kind, low=97, high=96 + letters),
        g.array("text2", m, type_=kind, low=97, high=96 + letters),
    )
    i, k, ok = g.index("i"), g.index("k"), g.name("cnt")
    flavour = g.between(0, 2)
    clear = g.chance(0.5)
    if flavour == 0:
        out = g.array("mask", n, type_="int", out=True)
        body: list[Code] = [
            g.let("int", ok, f"{i} + {m} <= {n}"),
            g.loop(k, "0", m, If(f"{ok} && {s[f'{i} + {k}']} != {p[k]}", f"{ok} = 0;")),
            f"{out[i]} = {ok};",
        ]
        if clear:
            body = [
                g.let("int", ok, "1"),
                If(
                    f"{i} + {m} > {n}",
                    f"{ok} = 0;",
                    g.loop(k, "0", m, If(f"{s[f'{i} + {k}']} != {p[k]}", [f"{ok} = 0;", "break;"])),
                ),
                f"{out[i]} = {ok};",
            ]
        return g.program(
            ("mark_matches", "match_positions", "occurrences"),
            g.loop(i, "0", n, *body),
            says="Marks every place where the pattern stands.",
        )
    if flavour == 1:
        total = g.name("sum")
        code: list[Code] = [
            g.let("int", total, "0"),
            g.loop(
                i,
                "0",
                f"{n} - {m} + 1",
                g.let("int", k, "0"),
                While(f"{k} < {m} && {s[f'{i} + {k}']} == {p[k]}", f"{k}++;"),
                If(f"{k} == {m}", f"{total}++;"),
            ),
            f"return {total};",
        ]
        return g.program(
            ("count_matches", "count_word"), code, returns="int", says="How often the pattern occurs."
        )
    out = g.array("out", n, type_="int", out=True)
    body = [
        g.let("int", ok, "0"),
        If(f"{i} + {m} <= {n}", g.loop(k, "0", m, g.add(ok, f"{s[f'{i} + {k}']} != {p[k]}"))),
        f"{out[i]} = {ok};",
    ]
    return g.program(
        ("mismatches", "hamming_profile", "fuzzy_match"),
        g.loop(i, "0", n, *body),
        says="Mismatches at every place.",
    )


@family("strings")
def letter_counts(g: Grammar) -> Sketch:
    """Counts of classes of characters, words or lines."""
    n = g.size("n", 3000, 25000)
    s = g.array("text", n, type_=g.pick("char", "unsigned char"), low=9, high=122)
    i, inside, c = g.index("i"), g.name("state"), g.name("tmp")
    counts = [g.name("cnt") for _ in range(g.between(2, 3))]
    out = g.array("out", str(len(counts)), type_=g.pick("int", "long"), out=True)
    tests = [
        f"{c} == ' '",
        f"{c} >= 'a' && {c} <= 'z'",
        f"{c} >= '0' && {c} <= '9'",
        f"{c} < 32",
        f"{c} == 'e' || {c} == 'a' || {c} == 'o'",
    ]
    g.rng.shuffle(tests)
    lines: list[Code] = [g.let("int", c, s[i], True)]
    words = g.chance(0.4)
    start: list[Code] = [g.let("int", name, "0") for name in counts]
    if words:
        start.append(g.let("int", inside, "0"))
        lines.append(If(tests[0], f"{inside} = 0;", If(f"!{inside}", [f"{inside} = 1;", f"{counts[0]}++;"])))
    else:
        lines.append(If(tests[0], f"{counts[0]}++;"))
    chain = g.chance(0.5)
    if chain and len(counts) > 2:
        lines.append(If(tests[1], f"{counts[1]}++;", If(tests[2], f"{counts[2]}++;")))
    else:
        lines += [If(test, f"{name}++;") for test, name in zip(tests[1:], counts[1:], strict=False)]
    ends = [f"{out[str(place)]} = {name};" for place, name in enumerate(counts)]
    return g.program(
        ("count_words", "letter_stats", "text_profile", "wc"),
        [*start, g.loop(i, "0", n, *lines), *ends],
        says="Counts what the text holds.",
    )


@family("strings")
def record_distance(g: Grammar) -> Sketch:
    """Fixed-length records compared with one key: Hamming distance, common prefix, order."""
    n, w = g.size("rows", 300, 2500), g.size("window", 8, 24)
    rec = g.array("text", n, w, type_=g.pick("unsigned char", "char"), low=97, high=99)
    key = g.array("text2", w, type_=rec.type, low=97, high=99)
    out = g.array("out", n, type_="int", out=True)
    i, k, v = g.index("i"), g.index("k"), g.name("cnt")
    kind = g.between(0, 3)
    if kind == 0:
        body: list[Code] = [
            g.let("int", v, "0"),
            g.loop(k, "0", w, If(f"{rec[i, k]} != {key[k]}", f"{v}++;")),
        ]
    elif kind == 1:
        body = [g.let("int", v, "0"), While(f"{v} < {w} && {rec[i, v]} == {key[v]}", f"{v}++;")]
    elif kind == 2:
        body = [
            g.let("int", v, "0"),
            g.loop(k, "0", w, If(f"{rec[i, k]} != {key[k]}", [f"{v} = {rec[i, k]} - {key[k]};", "break;"])),
        ]
    else:
        body = [
            g.let("int", v, "0"),
            g.loop(
                k,
                "0",
                f"{w} - 1",
                g.add(v, f"{rec[i, k]} == {key[k]} && {rec[i, f'{k} + 1']} == {key[f'{k} + 1']}"),
            ),
        ]
    code: list[Code] = [g.loop(i, "0", n, *body, f"{out[i]} = {v};")]
    if g.chance(0.3):
        best = g.name("best")
        code += [g.let("int", best, "-1000"), g.loop(i, "0", n, g.maximum(best, out[i])), f"return {best};"]
        return g.program(
            ("best_record", "closest_key"),
            code,
            returns="int",
            says="Compares records with a key, and finds the best.",
        )
    return g.program(
        ("compare_records", "hamming_rows", "common_prefix", "rank_names"),
        code,
        says="Compares every record with the key.",
    )


@family("strings")
def kmer_counts(g: Grammar) -> Sketch:
    """Counts of k-letter words over a small alphabet."""
    n, k = g.size("n", 3000, 15000), g.between(2, 5)
    base = g.pick(2, 3, 4)
    size = g.constant("words", str(base**k))
    letters = g.constant("kmer", str(k))
    s = g.array("text", n, type_=g.pick("unsigned char", "int"), low=0, high=base - 1)
    hist = g.array("hist", size, type_="int", out=True)
    i, j, code_ = g.index("i"), g.index("j"), g.name("hash")
    clear = g.loop(i, "0", size, f"{hist[i]} = 0;")
    if g.chance(0.6):
        count: list[Code] = [
            g.loop(
                i,
                "0",
                f"{n} - {letters} + 1",
                g.let("int", code_, "0"),
                g.loop(j, "0", letters, f"{code_} = {code_} * {base} + {s[f'{i} + {j}']};"),
                f"{hist[code_]}++;",
            )
        ]
    else:
        count = [
            g.let("int", code_, "0"),
            g.loop(
                i,
                "0",
                n,
                f"{code_} = ({code_} * {base} + {s[i]}) % {size};",
                If(f"{i} >= {letters} - 1", f"{hist[code_]}++;"),
            ),
        ]
    return g.program(
        ("count_kmers", "ngram_histogram", "word_counts"),
        [clear, *count],
        says=f"How often each word of {k} letters occurs.",
    )


@family("strings")
def palindromes(g: Grammar) -> Sketch:
    """How far mirrors reach around each centre."""
    n = g.size("n", 500, 3000)
    s = g.array("text", n, type_=g.pick("unsigned char", "char"), low=97, high=98)
    out = g.array("out", n, type_="int", out=True)
    i, r, total = g.index("i"), g.name("r2"), g.name("sum")
    even = g.chance(0.4)
    left, right = f"{i} - {r}", f"{i} + {r} + 1" if even else f"{i} + {r}"
    grow = While(f"{left} >= 0 && {right} < {n} && {s[left]} == {s[right]}", f"{r}++;")
    body: list[Code] = [
        g.let("int", r, "0" if even else "1"),
        grow,
        f"{out[i]} = {g.pick(r, f'2 * {r} - 1')};",
    ]
    code: list[Code] = [g.loop(i, "0", n, *body)]
    if g.chance(0.4):
        code = [g.let("long", total, "0"), g.loop(i, "0", n, *body, g.add(total, r)), f"return {total};"]
        return g.program(
            ("count_palindromes", "mirror_total"),
            code,
            returns="long",
            says="Palindromes around each centre.",
        )
    return g.program(
        ("palindrome_radius", "mirror_reach"), code, says="How far the text mirrors itself around each place."
    )
