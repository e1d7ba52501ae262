"""Packets, checksums and hashes."""

from __future__ import annotations

from trainer.data.grammar.code import Code, If, While
from trainer.data.grammar.grammar import Grammar, Sketch
from trainer.data.registry import family

WORD = "unsigned int"


@family("hashing and packets")
def count_packets(g: Grammar) -> Sketch:
    """Packets and bytes for each flow, port or protocol."""
    n, k = g.size("packets", 2000, 14000), g.size("bins", 16, 200)
    flow = g.array("key", n, type_="int", low=0)
    size = g.array("in", n, type_=g.pick("int", "short"), low=40, high=1500)
    count = g.array("hist", k, type_="int", out=True, extent=True)
    i, b, f = g.index("i"), g.index("j"), g.name("where")
    kind = g.between(0, 2)
    clear: list[Code] = [f"{count[b]} = 0;"]
    body: list[Code] = [f"{count[flow[i]]}++;"]
    if kind >= 1:
        volume = g.array("out", k, type_="long", out=True, extent=True)
        clear.append(f"{volume[b]} = 0;")
        body.append(g.add(volume[flow[i]], size[i]))
    if kind == 2:
        body = [If(f"{size[i]} > {g.between(64, 900)}", body)]
    else:
        body.append(If(f"{size[i]} > {g.between(900, 1400)}", g.add(count[flow[i]], str(g.between(1, 9)))))
    code: list[Code] = [g.loop(b, "0", k, *clear), g.loop(i, "0", n, *body)]
    if g.chance(0.4):
        code += [
            g.let("int", f, "0"),
            g.loop(b, "1", k, If(f"{count[b]} > {count[f]}", f"{f} = {b};")),
            f"return {f};",
        ]
        return g.program(
            ("busiest_flow", "top_talker"),
            code,
            returns="int",
            says="Counts packets, and finds the busiest flow.",
        )
    return g.program(
        ("count_flows", "packet_counts", "traffic_by_port"), code, says="Counts packets for each flow."
    )


@family("hashing and packets")
def packet_checksums(g: Grammar) -> Sketch:
    """A checksum over every packet: Internet sum, Fletcher, CRC bit by bit."""
    n, w = g.size("packets", 150, 1200), g.size("bytes", 20, 64)
    data = g.array("text", n, w, type_="unsigned char")
    out = g.array("out", n, type_=WORD, out=True)
    i, k, s, t, b = g.index("i"), g.index("k"), g.name("hash"), g.name("sum2"), g.index("t")
    kind = g.between(0, 3)
    if kind == 0:
        body: list[Code] = [
            g.let(WORD, s, "0"),
            g.loop(
                k,
                "0",
                f"{w} - 1",
                g.add(s, f"((unsigned){data[i, k]} << 8) | {data[i, f'{k} + 1']}"),
                step="2",
            ),
            While(f"{s} >> 16", f"{s} = ({s} & 0xffffu) + ({s} >> 16);"),
            f"{out[i]} = {g.pick(s, f'~{s} & 0xffffu')};",
        ]
    elif kind == 1:
        m = g.pick(255, 65521, 251)
        body = [
            g.let(WORD, s, g.pick("0", "1")),
            g.let(WORD, t, "0"),
            g.loop(k, "0", w, f"{s} = ({s} + {data[i, k]}) % {m}u;", f"{t} = ({t} + {s}) % {m}u;"),
            f"{out[i]} = ({t} << 16) | {s};",
        ]
    elif kind == 2:
        poly = g.pick("0xedb88320u", "0x82f63b78u", "0xeb31d82eu")
        step = f"{s} = ({s} & 1u) ? ({s} >> 1) ^ {poly} : {s} >> 1;"
        body = [
            g.let(WORD, s, "0xffffffffu"),
            g.loop(k, "0", w, f"{s} ^= {data[i, k]};", g.loop(b, "0", "8", step)),
            f"{out[i]} = {g.pick(f'~{s}', s)};",
        ]
    else:
        start, prime = g.pick("2166136261u", "5381u", "0x9747b28cu"), g.pick("16777619u", "33u", "65599u")
        mix = (
            [f"{s} ^= {data[i, k]};", f"{s} *= {prime};"]
            if g.chance(0.5)
            else [f"{s} = {s} * {prime} + {data[i, k]};"]
        )
        body = [g.let(WORD, s, start), g.loop(k, "0", w, *mix), f"{out[i]} = {s};"]
    if g.chance(0.25):
        bad = g.array("mask", n, type_="int", out=True)
        body.append(f"{bad[i]} = ({out[i]} & {g.pick(3, 7, 15)}u) == 0;")
    return g.program(
        ("checksums", "crc_packets", "hash_records", "fingerprint_rows"),
        g.loop(i, "0", n, *body),
        says="One checksum for each packet.",
    )


@family("hashing and packets")
def hash_table(g: Grammar) -> Sketch:
    """Insertions with open addressing, Bloom filters, sketches."""
    n = g.size("n", 300, 2000)
    key = g.array("in", n, type_="int", low=1, high=60000)
    bits = g.pick(4096, 8192)
    size = g.constant("table_size", str(bits))
    i, h, b, c = g.index("i"), g.name("hash"), g.index("j"), g.name("cnt")
    mult = g.pick("2654435761u", "40503u", "2246822519u")
    kind = g.between(0, 2)
    place = f"((unsigned){key[i]} * {mult} >> {g.between(3, 11)}) % {size}"
    if kind == 0:
        slots = g.array("table", size, type_="int", out=True)
        clear = g.loop(b, "0", size, f"{slots[b]} = 0;")
        insert: list[Code] = [
            g.let(WORD, h, place),
            While(f"{slots[h]} != 0 && {slots[h]} != {key[i]}", f"{h} = ({h} + 1) % {size};"),
            f"{slots[h]} = {key[i]};",
        ]
        return g.program(
            ("build_table", "insert_keys", "dedupe_keys"),
            [clear, g.loop(i, "0", n, *insert)],
            says="Inserts keys with linear probing.",
        )
    rows = g.between(2, 4)
    if kind == 1:

        def spot() -> str:
            return f"((unsigned){key[i]} * {g.between(3, 99999) | 1}u >> {g.between(2, 9)}) % {size}"

        filt = g.array("table", size, type_="unsigned char", out=True)
        clear = g.loop(b, "0", size, f"{filt[b]} = 0;")
        mark = g.loop(
            i,
            "0",
            n,
            *[f"{filt[spot()]} = 1;" for _ in range(rows)],
        )
        code: list[Code] = [clear, mark]
        if g.chance(0.5):
            code += [g.let("int", c, "0"), g.loop(b, "0", size, g.add(c, filt[b])), f"return {c};"]
            return g.program(
                ("bloom_fill", "filter_load"),
                code,
                returns="int",
                says="Sets the bits of a Bloom filter and counts them.",
            )
        return g.program(("bloom_insert", "bloom_filter"), code, says="Sets the bits of a Bloom filter.")
    counts = g.array("table", str(rows), size, type_="int", out=True, flat=True)
    r, odd = g.index("k"), g.between(3, 99) | 1
    clear = g.loop(b, "0", f"{rows} * {size}", f"{counts.name}[{b}] = 0;")
    code = [
        clear,
        g.loop(
            i,
            "0",
            n,
            g.loop(
                r,
                "0",
                str(rows),
                g.let(
                    WORD,
                    h,
                    f"((unsigned){key[i]} * (2u * {r} + {odd}u) >> {g.between(1, 6)}) % {size}",
                    True,
                ),
                f"{counts.name}[{r} * {size} + {h}]++;",
            ),
        ),
    ]
    return g.program(("count_min", "sketch_update"), code, says="A count-min sketch.")


@family("hashing and packets")
def classify_packets(g: Grammar) -> Sketch:
    """The first rule that fits each packet."""
    n, r = g.size("packets", 400, 3000), g.size("patterns", 8, 40)
    addr = g.array("in", n, type_=WORD, low=0, high=4095)
    port = g.array("in2", n, type_="int", low=0, high=1023)
    net, low, high = (
        g.array("key", r, type_=WORD, low=0, high=4095),
        g.array("low", r, type_="int", low=0, high=500),
        g.array("high", r, type_="int", low=300, high=1023),
    )
    out = g.array("out", n, type_="int", out=True)
    i, k, hit = g.index("i"), g.index("k"), g.name("where")
    mask = g.pick("0xff0u", "0xf00u", "0xfc0u")
    test = (
        g.pick(f"({addr[i]} & {mask}) == ({net[k]} & {mask})", f"{addr[i]} % 16u == {net[k]} % 16u")
        + f" {g.pick('&&', '||')} ({port[i]} >= {low[k]} && {port[i]} <= {high[k]})"
    )
    kind = g.between(0, 2)
    if kind == 0:
        body: list[Code] = [
            g.let("int", hit, "-1"),
            g.loop(k, "0", r, If(test, [f"{hit} = {k};", "break;"])),
            f"{out[i]} = {hit};",
        ]
    elif kind == 1:
        body = [g.let("int", hit, "0"), g.loop(k, "0", r, If(test, f"{hit}++;")), f"{out[i]} = {hit};"]
    else:
        body = [
            g.let("int", hit, "-1"),
            g.loop(k, "0", r, If(f"{hit} < 0 && {test.replace('||', '&&')}", f"{hit} = {k};")),
            f"{out[i]} = {hit};",
        ]
    return g.program(
        ("classify", "match_rules", "firewall", "route_packets"),
        g.loop(i, "0", n, *body),
        says="Which rule fits each packet.",
    )
