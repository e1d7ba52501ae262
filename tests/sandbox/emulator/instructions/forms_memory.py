"""Loads, stores, atomics and reductions on memory of the thread's own: what was there, what is there then."""

from __future__ import annotations

from collections.abc import Callable

from exact_floats import FORMATS, add, arithmetic, extreme
from forms_integer import signed
from instruction_forms import Table, halves, width

TABLE = Table("memory")
SPACES = {"global": "[%global]", "shared": "[%shared]", "shared::cta": "[%shared]", "": "[%generic]"}
SUM: dict[str, Callable[[int, int], int]] = {
    kind: arithmetic(FORMATS[kind], add) for kind in ("f16", "bf16", "f32", "f64")
}


def form(text: str, types: str, meaning: Callable[..., object], **more: object) -> None:
    TABLE.add(text, types, meaning, any_nan=True, **more)  # type: ignore[arg-type]


def spelled(*parts: str) -> str:
    return ".".join(part for part in parts if part)


def around(space: str, kind: str, middle: str, result: str = "{e}") -> str:
    """`{a}` stored, something done to it at PLACE, and what is there then."""
    place = SPACES[space]
    before, after = spelled("st", space, kind), spelled("ld", space, kind)
    return f"{before} {place}, {{a}}; {middle.replace('PLACE', place)}; {after} {result}, {place}"


# Atomics: old value and new one.
def operations(kind: str) -> dict[str, Callable[[int, int], int]]:
    found: dict[str, Callable[[int, int], int]] = {}
    if kind[0] in "us":
        found = {"add": lambda a, b: a + b, "min": min, "max": max}
        if kind == "u32":
            found["inc"] = lambda a, b: 0 if a >= b else a + 1
            found["dec"] = lambda a, b: b if a == 0 or a > b else a - 1
        if kind == "s64":
            del found["add"]
    elif kind[0] == "b":
        found = {"and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b}
        found["exch"] = lambda a, b: b
    return found


ORDERS = ("", "relaxed.cta", "relaxed.gpu", "acquire.sys", "release.gpu", "acq_rel.cluster")
for kind in ("u32", "s32", "u64", "s64", "b32", "b64"):
    bits = int(kind[1:])
    for turn, (name, function) in enumerate(operations(kind).items()):
        for index, space in enumerate(SPACES):
            order = ORDERS[(turn + index) % len(ORDERS)]
            opcode = spelled("atom", order, space, name, kind)
            form(
                around(space, f"b{bits}", f"{opcode} {{d}}, PLACE, {{b}}"),
                f"{kind} {kind} : {kind} {kind}",
                lambda a, b, f=function: (a, f(a, b)),
            )
            if name != "exch":
                opcode = spelled("red", "" if "acq" in order else order, space, name, kind)
                form(
                    around(space, f"b{bits}", f"{opcode} PLACE, {{b}}", "{d}"),
                    f"{kind} : {kind} {kind}",
                    lambda a, b, f=function: f(a, b),
                )
for space in SPACES:
    for bits in (16, 32, 64):
        kind = f"b{bits}"
        for expected in ("{a}", "{c}"):  # there, and hardly ever there
            form(
                around(space, kind, f"{spelled('atom', space, 'cas', kind)} {{d}}, PLACE, {expected}, {{b}}"),
                f"{kind} {kind} : {kind} {kind} {kind}",
                lambda a, b, c, e=expected: (a, b if e == "{a}" or a == c else a),
                constants="",
            )
    for kind in ("f32", "f64", "f16", "bf16"):
        opcode = spelled("atom", space, "add", "noftz" if "16" in kind else "", kind)
        form(
            around(space, f"b{width(kind)}", f"{opcode} {{d}}, PLACE, {{b}}"),
            f"{kind} {kind} : {kind} {kind}",
            lambda a, b, f=SUM[kind]: (a, f(a, b)),
        )
    for kind in ("f16", "bf16"):
        opcode = spelled("red", space, "add.noftz", f"{kind}x2")
        form(
            around(space, "b32", f"{opcode} PLACE, {{b}}", "{d}"),
            f"{kind}x2 : {kind}x2 {kind}x2",
            halves(SUM[kind]),
        )
for kind in ("f16", "bf16"):
    one = FORMATS[kind]
    for name, function in (
        ("add", SUM[kind]),
        ("min", lambda a, b, one=one: extreme(one, False, a, b, False)),
        ("max", lambda a, b, one=one: extreme(one, True, a, b, False)),
    ):
        form(
            "st.global.v2.b16 [%global], {{{a}, {b}}}; "
            f"atom.global.{name}.noftz.v2.{kind} {{{{%h1, %h2}}}}, [%global], {{{{{{c}}, {{f}}}}}}; "
            "ld.global.v2.b16 {{{d}, {e}}}, [%global]",
            f"{kind} {kind} : {kind} {kind} {kind} {kind}",
            lambda a, b, c, f, g=function: (g(a, c), g(b, f)),
        )
form(
    "st.global.v2.b32 [%global], {{{a}, {b}}}; red.global.add.v2.f32 [%global], {{{c}, {f}}}; "
    "ld.global.v2.b32 {{{d}, {e}}}, [%global]",
    "f32 f32 : f32 f32 f32 f32",
    lambda a, b, c, f: (SUM["f32"](a, c), SUM["f32"](b, f)),
)

# Loads and stores, with all that may be said about them.
for store, load in (
    ("st", "ld"),
    ("st.weak", "ld.weak"),
    ("st.volatile", "ld.volatile"),
    ("st.relaxed.cta", "ld.relaxed.gpu"),
    ("st.release.sys", "ld.acquire.cluster"),
    ("st.mmio.relaxed.sys.global", "ld.mmio.relaxed.sys.global"),
    ("st.wb", "ld.ca"),
    ("st.cg", "ld.cg"),
    ("st.cs", "ld.cs"),
    ("st.wt", "ld.cv"),
    ("st.global.L1::evict_last", "ld.global.L1::evict_first"),
    ("st.global.L1::no_allocate", "ld.global.L1::no_allocate.L2::256B"),
    ("st.global.L2::cache_hint", "ld.global.L1::evict_unchanged.L2::cache_hint.L2::64B"),
):
    for space in ("global", "shared", "local", ""):
        if "global" in store and space != "global":
            continue
        if space == "local" and any(word in store for word in ("volatile", "relaxed", "release")):
            continue
        place = {**SPACES, "local": "[%local]"}[space]
        space = "" if "global" in store else space
        policy = ", %policy" if "cache_hint" in store else ""
        for kind in ("b16", "b32", "f64") if space != "global" else ("b16", "u32", "s64", "f32"):
            before, after = spelled(store, space, kind), spelled(load, space, kind)
            form(
                f"{before} {place}, {{a}}{policy}; {after} {{d}}, {place}{policy}",
                f"{kind} : {kind}",
                lambda a: a,
            )
for space, place in (*SPACES.items(), ("local", "[%local]")):
    for narrow in ("u8", "s8"):
        form(
            f"{spelled('st', space, narrow)} {place}, {{a}}; {spelled('ld', space, narrow)} {{d}}, {place}",
            f"{narrow[0]}32 : b32",
            lambda a, n=narrow: signed(a, 8) if n == "s8" else a & 0xFF,
        )
    form(
        f"{spelled('st', space, 'v4.b16')} {place}, {{{{{{a}}, {{b}}, {{c}}, {{f}}}}}}; "
        f"{spelled('ld', space, 'v2.b32')} {{{{{{d}}, {{e}}}}}}, {place}",
        "b32 b32 : b16 b16 b16 b16",
        lambda a, b, c, f: (a | b << 16, c | f << 16),
    )
    form(
        f"{spelled('st', space, 'v2.b64')} {place}, {{{{{{a}}, {{b}}}}}}; "
        f"{spelled('ld', space, 'v4.u32')} {{{{%w1, {{d}}, {{e}}, %w2}}}}, {place}",
        "b32 b32 : b64 b64",
        lambda a, b: (a >> 32, b & 0xFFFFFFFF),
    )

# Addresses and spaces.
for space in ("shared", "local"):
    form(
        f"cvt.u64.u32 %x, %{space}; cvta.{space}.u64 %x, %x; cvta.to.{space}.u64 %x, %x; "
        f"cvt.u32.u64 %w1, %x; sub.u32 {{d}}, %w1, %{space}",
        "u32 :",
        lambda: 0,
    )
    form(
        f"cvt.u64.u32 %x, %{space}; cvta.{space}.u64 %x, %x; "
        "isspacep.shared {d}, %x; isspacep.local {e}, %x",
        "pred pred :",
        lambda s=space: (int(s == "shared"), int(s == "local")),
    )
form("isspacep.global {d}, %global; isspacep.shared::cta {e}, %global", "pred pred :", lambda: (1, 0))
form("isspacep.global {d}, %generic; isspacep.shared::cta {e}, %generic", "pred pred :", lambda: (0, 1))

# What leaves everything as it is.
for hint in (
    "prefetch.global.L1 [%global]",
    "prefetch.global.L2::evict_last [%global]",
    "prefetch.L2 [%generic]",
    "prefetchu.L1 [%global]",
    "applypriority.global.L2::evict_normal [%x], 128",
    "pmevent 3",
    "griddepcontrol.launch_dependents",
    "griddepcontrol.wait",
    "membar.gl",
    "membar.cta",
    "fence.acq_rel.gpu",
    "fence.sc.sys",
    "createpolicy.fractional.L2::evict_first.L2::evict_unchanged.b64 %x, 0f3F000000",
):
    form(f"mov.u64 %x, global_cells; {hint}; mov.b32 {{d}}, {{a}}", "b32 : b32", lambda a: a)
form("ld.global.nc.L1::no_allocate.L2::128B.b32 {d}, [global_cells]; and.b32 {d}, {d}, 0", "b32 :", lambda: 0)
form("ldu.global.b32 {d}, [global_cells]; and.b32 {d}, {d}, 0", "b32 :", lambda: 0)
