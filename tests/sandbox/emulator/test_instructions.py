"""Every instruction against what numpy says it means, on hand-written PTX: one entry an instruction form."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from emulated import Machine, Out

Function = Callable[..., np.ndarray]
N = 64
DTYPES = {
    **{f"s{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"b{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    "f32": "float32",
    "f64": "float64",
    "f16": "float16",
}


@dataclass(frozen=True)
class Form:
    """`{d}`, `{a}`, `{b}`, `{c}` in the text are registers; `types` are those of d, a, b, c."""

    text: str
    types: tuple[str, ...]
    meaning: Function
    exact: bool = True
    values: Callable[[np.random.Generator, str], np.ndarray] | None = None

    @property
    def entry(self) -> str:
        return f"k{zlib.crc32(repr((self.text, self.types)).encode()):08x}"


def register_of(kind: str) -> str:
    return {"8": ".b16", "16": ".b16", "32": ".b32", "64": ".b64"}[kind[1:]]


def _entry(form: Form) -> str:
    names = "dabc"[: len(form.types)]
    lines = [f".visible .entry {form.entry}(", ",".join(f".param .u64 p{name}" for name in names), ") {"]
    lines += [".reg .pred %p<4>; .reg .b32 %t<4>; .reg .b64 %i; .reg .b32 %x; .reg .b64 %y; .reg .b16 %h<4>;"]
    for name, kind in zip(names, form.types, strict=True):
        lines += [f".reg {register_of(kind)} %{name}; .reg .b64 %p{name}, %q{name};"]
        lines += [f"ld.param.u64 %p{name}, [p{name}];"]
    lines += ["mov.u32 %t0, %tid.x; cvt.u64.u32 %i, %t0;"]
    for name, kind in zip(names, form.types, strict=True):
        lines += [f"mad.lo.u64 %q{name}, %i, {int(kind[1:]) // 8}, %p{name};"]
        if name != "d":
            lines += [f"ld.global.{'b' if kind[0] == 'f' else kind[0]}{kind[1:]} %{name}, [%q{name}];"]
    registers = {name: f"%{name}" for name in names}
    lines += [form.text.format(**registers) + ";"]
    stored = f"b{form.types[0][1:]}"
    lines += [f"st.global.{stored} [%qd], %d;", "ret;", "}"]
    return "\n".join(lines)


def _special(generator: np.random.Generator, kind: str) -> np.ndarray:
    """Random values, with the corners of the type among them."""
    dtype = np.dtype(DTYPES[kind])
    if dtype.kind == "f":
        tiny = np.finfo(dtype).smallest_subnormal
        corners = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            math.inf,
            -math.inf,
            math.nan,
            float(np.finfo(dtype).max),
            float(tiny),
        ]
        values = generator.standard_normal(N) * 10.0 ** generator.integers(-3, 4, N)
        values[: len(corners)] = corners
        return values.astype(dtype)
    info = np.iinfo(dtype)
    values = generator.integers(info.min, info.max, N, dtype=dtype, endpoint=True)
    corners = np.array([0, 1, 2, 3, 31, 33, info.max, info.min], dtype=dtype)
    values[: len(corners)] = corners
    return values


def _finite(generator: np.random.Generator, kind: str) -> np.ndarray:
    return (generator.standard_normal(N) * 4).astype(DTYPES[kind])


def _positive(generator: np.random.Generator, kind: str) -> np.ndarray:
    return np.exp(generator.standard_normal(N) * 3).astype(DTYPES[kind])


def _lane(generator: np.random.Generator, kind: str) -> np.ndarray:
    return generator.integers(0, 40, N).astype(DTYPES[kind])


def _wrap(value: object, dtype: str) -> np.ndarray:
    bits = np.dtype(dtype).itemsize * 8
    raw = np.array(
        [int(item) & ((1 << bits) - 1) for item in np.asarray(value, dtype=object)], dtype=f"uint{bits}"
    )
    return raw.view(dtype)


def _objects(function: Callable[..., int], dtype: str) -> Function:
    """Arithmetic in Python's unbounded integers, then wrapped: what PTX means, without numpy's own rules."""

    def apply(*arrays: np.ndarray) -> np.ndarray:
        columns = [[int(item) for item in array] for array in arrays]
        return _wrap([function(*row) for row in zip(*columns, strict=True)], dtype)

    return apply


def _saturate(dtype: str) -> Function:
    """NaN gives 0, but the lowest bit pattern where either side has 64 bits."""

    def apply(values: np.ndarray) -> np.ndarray:
        info = np.iinfo(dtype)
        nan = (info.min or info.max // 2 + 1) if values.dtype == np.float64 or info.bits == 64 else 0
        wide = [
            nan if math.isnan(v) else max(info.min, min(info.max, v if math.isinf(v) else int(v)))
            for v in values
        ]
        return np.array([int(v) for v in wide], dtype=dtype)

    return apply


def _truncated(a: int, b: int) -> int:
    return -1 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _rest(a: int, b: int) -> int:
    return a if b == 0 else int(math.copysign(abs(a) % abs(b), a)) if a else 0


def _exact_rest(a: int, b: int) -> int:
    return a if b == 0 else (abs(a) % abs(b)) * (1 if a >= 0 else -1)


def _shift(kind: str, left: bool) -> Callable[[int, int], int]:
    bits = int(kind[1:])

    def apply(value: int, count: int) -> int:
        count &= 0xFFFFFFFF
        if left:
            return 0 if count >= bits else value << count
        return value >> min(count, 200)

    return apply


def _bfe(kind: str) -> Callable[[int, int, int], int]:
    bits, signed = int(kind[1:]), kind[0] == "s"

    def apply(value: int, position: int, length: int) -> int:
        position, length = position & 0xFF, length & 0xFF
        if length == 0:
            return 0
        raw = value & ((1 << bits) - 1)
        top = min(position + length - 1, bits - 1)
        fill = (raw >> top & 1) if signed else 0
        result = 0
        for index in range(bits):
            inside = index < length and position + index < bits
            result |= ((raw >> (position + index) & 1) if inside else fill) << index
        return result

    return apply


def _bfi(kind: str) -> Callable[[int, int, int, int], int]:
    bits = int(kind[1:])

    def apply(a: int, b: int, position: int, length: int) -> int:
        for index in range(length & 0xFF):
            if (position & 0xFF) + index < bits:
                place = (position & 0xFF) + index
                b = b & ~(1 << place) | (a >> index & 1) << place
        return b

    return apply


def _prmt(a: int, b: int, selector: int) -> int:
    data = (a | b << 32).to_bytes(8, "little")
    result = 0
    for index in range(4):
        nibble = selector >> 4 * index & 15
        byte = data[nibble & 7]
        result |= ((0xFF if byte & 0x80 else 0) if nibble & 8 else byte) << 8 * index
    return result


def _bfind(bits: int, signed: bool) -> Callable[[int], int]:
    def apply(value: int) -> int:
        if signed and value < 0:
            value = ~value
        return value.bit_length() - 1 if value else 0xFFFFFFFF

    return apply


FORMS: list[Form] = []


def form(text: str, types: str, meaning: Function, **more: object) -> None:
    FORMS.append(Form(text, tuple(types.split()), meaning, **more))  # type: ignore[arg-type]


for kind in ("s16", "u16", "s32", "u32", "s64", "u64"):
    dtype, bits = DTYPES[kind], int(kind[1:])
    for name, function in (
        ("add", lambda a, b: a + b),
        ("sub", lambda a, b: a - b),
        ("mul.lo", lambda a, b: a * b),
        ("div", _truncated),
        ("rem", _exact_rest),
        ("min", min),
        ("max", max),
    ):
        form(f"{name}.{kind} {{d}}, {{a}}, {{b}}", f"{kind} {kind} {kind}", _objects(function, dtype))
    form(
        f"mul.hi.{kind} {{d}}, {{a}}, {{b}}",
        f"{kind} {kind} {kind}",
        _objects(lambda a, b, n=bits: a * b >> n, dtype),
    )
    form(
        f"mad.lo.{kind} {{d}}, {{a}}, {{b}}, {{c}}",
        " ".join([kind] * 4),
        _objects(lambda a, b, c: a * b + c, dtype),
    )
    if bits < 64:
        wide = f"{kind[0]}{2 * bits}"
        form(
            f"mul.wide.{kind} {{d}}, {{a}}, {{b}}",
            f"{wide} {kind} {kind}",
            _objects(lambda a, b: a * b, DTYPES[wide]),
        )
        form(
            f"mad.wide.{kind} {{d}}, {{a}}, {{b}}, {{c}}",
            f"{wide} {kind} {kind} {wide}",
            _objects(lambda a, b, c: a * b + c, DTYPES[wide]),
        )
    form(
        f"shr.{kind} {{d}}, {{a}}, {{b}}",
        f"{kind} {kind} u32",
        _objects(_shift(kind, False), dtype),
        values=None,
    )
    form(f"shr.{kind} {{d}}, {{a}}, 5", f"{kind} {kind}", _objects(lambda a: a >> 5, dtype))
    if kind[0] == "s":
        form(f"neg.{kind} {{d}}, {{a}}", f"{kind} {kind}", _objects(lambda a: -a, dtype))
        form(f"abs.{kind} {{d}}, {{a}}", f"{kind} {kind}", _objects(abs, dtype))
    for cmp, function in (("lt", np.less), ("ge", np.greater_equal), ("eq", np.equal), ("ne", np.not_equal)):
        form(
            f"setp.{cmp}.{kind} %p1, {{a}}, {{b}}; selp.u32 {{d}}, 1, 0, %p1",
            f"u32 {kind} {kind}",
            lambda a, b, f=function: f(a, b).astype("uint32"),
        )
for kind in ("b16", "b32", "b64"):
    dtype, bits = DTYPES[kind], int(kind[1:])
    form(f"and.{kind} {{d}}, {{a}}, {{b}}", f"{kind} {kind} {kind}", np.bitwise_and)
    form(f"or.{kind} {{d}}, {{a}}, {{b}}", f"{kind} {kind} {kind}", np.bitwise_or)
    form(f"xor.{kind} {{d}}, {{a}}, {{b}}", f"{kind} {kind} {kind}", np.bitwise_xor)
    form(f"not.{kind} {{d}}, {{a}}", f"{kind} {kind}", np.invert)
    form(f"cnot.{kind} {{d}}, {{a}}", f"{kind} {kind}", lambda a: (a == 0).astype(a.dtype))
    form(f"shl.{kind} {{d}}, {{a}}, {{b}}", f"{kind} {kind} u32", _objects(_shift(kind, True), dtype))
for bits in (32, 64):
    kind, dtype = f"b{bits}", f"uint{bits}"
    form(f"popc.b{bits} {{d}}, {{a}}", f"u32 {kind}", _objects(lambda a: a.bit_count(), "uint32"))
    form(f"clz.b{bits} {{d}}, {{a}}", f"u32 {kind}", _objects(lambda a, n=bits: n - a.bit_length(), "uint32"))
    form(
        f"brev.b{bits} {{d}}, {{a}}",
        f"{kind} {kind}",
        _objects(lambda a, n=bits: int(f"{a:0{n}b}"[::-1], 2), dtype),
    )
    for sign in "su":
        typed = f"{sign}{bits}"
        form(
            f"bfe.{typed} {{d}}, {{a}}, {{b}}, {{c}}",
            f"{typed} {typed} u32 u32",
            _objects(_bfe(typed), DTYPES[typed]),
            values=lambda g, k, t=typed: _special(g, k) if k == t else _lane(g, k),
        )
        form(f"bfind.{typed} {{d}}, {{a}}", f"u32 {typed}", _objects(_bfind(bits, sign == "s"), "uint32"))
form(
    "bfi.b32 {d}, {a}, {b}, {c}, 7",
    "b32 b32 b32 u32",
    _objects(lambda a, b, c: _bfi("b32")(a, b, c, 7), "uint32"),
)
form(
    "bfi.b64 {d}, {a}, {b}, 32, 32", "b64 b64 b64", _objects(lambda a, b: _bfi("b64")(a, b, 32, 32), "uint64")
)
form("prmt.b32 {d}, {a}, {b}, {c}", "b32 b32 b32 u32", _objects(_prmt, "uint32"))
form(
    "lop3.b32 {d}, {a}, {b}, {c}, 0x96",
    "b32 b32 b32 b32",
    lambda a, b, c: a ^ b ^ c,
)
form("lop3.b32 {d}, {a}, {b}, {c}, 0xea", "b32 b32 b32 b32", lambda a, b, c: (a & b) | c)
form(
    "shf.l.wrap.b32 {d}, {a}, {b}, {c}",
    "b32 b32 b32 u32",
    _objects(lambda a, b, c: (b << 32 | a) << (c & 31) >> 32, "uint32"),
)
form(
    "shf.r.clamp.b32 {d}, {a}, {b}, {c}",
    "b32 b32 b32 u32",
    _objects(lambda a, b, c: (b << 32 | a) >> min(c, 32), "uint32"),
)
form("sad.u32 {d}, {a}, {b}, {c}", "u32 u32 u32 u32", _objects(lambda a, b, c: abs(a - b) + c, "uint32"))
form("sad.s32 {d}, {a}, {b}, {c}", "u32 s32 s32 u32", _objects(lambda a, b, c: abs(a - b) + c, "uint32"))
form(
    "add.cc.u32 %x, {a}, {b}; addc.u32 {d}, {c}, 0",
    "u32 u32 u32 u32",
    _objects(lambda a, b, c: c + (a + b >> 32), "uint32"),
)
form(
    "sub.cc.u32 %x, {a}, {b}; subc.u32 {d}, {c}, 0",
    "u32 u32 u32 u32",
    _objects(lambda a, b, c: c - (a < b), "uint32"),
)
form(
    "sub.cc.u32 %x, {a}, {b}; addc.u32 {d}, {c}, 0",  # the flag is set where nothing was borrowed
    "u32 u32 u32 u32",
    _objects(lambda a, b, c: c + (a >= b), "uint32"),
)
form(
    "mad.lo.cc.u32 %x, {a}, {b}, {c}; madc.hi.u32 {d}, {a}, {b}, 0",
    "u32 u32 u32 u32",
    _objects(lambda a, b, c: a * b + c >> 32, "uint32"),
)
form(
    "add.sat.s32 {d}, {a}, {b}",
    "s32 s32 s32",
    _objects(lambda a, b: max(-(2**31), min(2**31 - 1, a + b)), "int32"),
)
form(
    "mov.b64 {{%t1, %t2}}, {a}; add.u32 {d}, %t1, %t2", "u32 u64", _objects(lambda a: a + (a >> 32), "uint32")
)
form("mov.b64 {d}, {{{a}, {b}}}", "u64 u32 u32", _objects(lambda a, b: b << 32 | a, "uint64"))
form("slct.s32.s32 {d}, {a}, {b}, {c}", "s32 s32 s32 s32", lambda a, b, c: np.where(c >= 0, a, b))
form(
    "set.lt.u32.s32 {d}, {a}, {b}",
    "u32 s32 s32",
    lambda a, b: np.where(a < b, 0xFFFFFFFF, 0).astype("uint32"),
)
form(
    "setp.lt.s32 %p1, {a}, 0; setp.gt.and.s32 %p2|%p3, {b}, 5, %p1; selp.u32 %t1, 1, 0, %p2; "
    "selp.u32 %t2, 2, 0, %p3; add.u32 {d}, %t1, %t2",
    "u32 s32 s32",
    lambda a, b: np.where(a < 0, np.where(b > 5, 1, 2), 0).astype("uint32"),
)
form(
    "setp.lt.s32 %p1, {a}, {b}; @%p1 mov.u32 {d}, 7; @!%p1 mov.u32 {d}, 9",
    "u32 s32 s32",
    lambda a, b: np.where(a < b, 7, 9).astype("uint32"),
)
form(
    "mov.u32 {d}, {a}; setp.lt.s32 %p1, {b}, 0; @%p1 add.u32 {d}, {d}, 5",
    "u32 u32 s32",
    lambda a, b: a + np.where(b < 0, 5, 0).astype("uint32"),
)

# Conversions between integers.
for source in ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"):
    for target in ("s16", "u16", "s32", "u32", "s64", "u64"):
        if source != target:
            form(
                f"cvt.{target}.{source} {{d}}, {{a}}",
                f"{target} {source}",
                lambda a, t=target: a.astype(DTYPES[t]),
            )
form("cvt.sat.s16.s32 {d}, {a}", "s16 s32", _objects(lambda a: max(-(2**15), min(2**15 - 1, a)), "int16"))
form("cvt.sat.u32.s32 {d}, {a}", "u32 s32", _objects(lambda a: max(0, a), "uint32"))
form("cvt.s32.s8 {d}, {a}", "s32 s32", lambda a: a.astype("int8").astype("int32"))

# Floating point.
for kind in ("f32", "f64"):
    dtype = DTYPES[kind]
    form(f"add.{kind} {{d}}, {{a}}, {{b}}", f"{kind} {kind} {kind}", np.add)
    form(f"sub.{kind} {{d}}, {{a}}, {{b}}", f"{kind} {kind} {kind}", np.subtract)
    form(f"mul.rn.{kind} {{d}}, {{a}}, {{b}}", f"{kind} {kind} {kind}", np.multiply)
    form(f"div.rn.{kind} {{d}}, {{a}}, {{b}}", f"{kind} {kind} {kind}", np.divide)
    form(f"sqrt.rn.{kind} {{d}}, {{a}}", f"{kind} {kind}", np.sqrt)
    form(f"rcp.rn.{kind} {{d}}, {{a}}", f"{kind} {kind}", lambda a: a.dtype.type(1) / a)
    form(f"neg.{kind} {{d}}, {{a}}", f"{kind} {kind}", np.negative)
    form(f"abs.{kind} {{d}}, {{a}}", f"{kind} {kind}", np.abs)
    form(f"min.{kind} {{d}}, {{a}}, {{b}}", f"{kind} {kind} {kind}", np.fmin)
    form(f"max.{kind} {{d}}, {{a}}, {{b}}", f"{kind} {kind} {kind}", np.fmax)
    form(f"copysign.{kind} {{d}}, {{a}}, {{b}}", f"{kind} {kind} {kind}", lambda a, b: np.copysign(b, a))
    for name, function in (("rni", np.rint), ("rzi", np.trunc), ("rmi", np.floor), ("rpi", np.ceil)):
        form(f"cvt.{name}.{kind}.{kind} {{d}}, {{a}}", f"{kind} {kind}", function)
        form(
            f"cvt.{name}.s32.{kind} {{d}}, {{a}}",
            f"s32 {kind}",
            lambda a, f=function: _saturate("int32")(f(a)),
        )
    form(f"cvt.rzi.u32.{kind} {{d}}, {{a}}", f"u32 {kind}", _saturate("uint32"))
    form(f"cvt.rzi.s64.{kind} {{d}}, {{a}}", f"s64 {kind}", _saturate("int64"), values=_finite)
    form(f"cvt.rzi.u64.{kind} {{d}}, {{a}}", f"u64 {kind}", _saturate("uint64"), values=_finite)
    for source in ("s16", "u16", "s32", "u32", "s64", "u64"):
        form(f"cvt.rn.{kind}.{source} {{d}}, {{a}}", f"{kind} {source}", lambda a, t=dtype: a.astype(t))
    for cmp, function in (
        ("eq", np.equal),
        ("lt", np.less),
        ("ge", np.greater_equal),
        ("ne", lambda a, b: (a < b) | (a > b)),
        ("neu", np.not_equal),
        ("ltu", lambda a, b: ~(a >= b)),
        ("geu", lambda a, b: ~(a < b)),
        ("nan", lambda a, b: np.isnan(a) | np.isnan(b)),
        ("num", lambda a, b: ~(np.isnan(a) | np.isnan(b))),
    ):
        form(
            f"setp.{cmp}.{kind} %p1, {{a}}, {{b}}; selp.u32 {{d}}, 1, 0, %p1",
            f"u32 {kind} {kind}",
            lambda a, b, f=function: f(a, b).astype("uint32"),
        )
form("cvt.f64.f32 {d}, {a}", "f64 f32", lambda a: a.astype("float64"))
form("cvt.rn.f32.f64 {d}, {a}", "f32 f64", lambda a: a.astype("float32"))
form("cvt.f32.f16 {d}, {a}", "f32 f16", lambda a: a.astype("float32"))
form("cvt.rn.f16.f32 {d}, {a}", "f16 f32", lambda a: a.astype("float16"))
form(
    "cvt.rn.relu.f16.f32 {d}, {a}", "f16 f32", lambda a: np.where(a <= 0, np.float32(0), a).astype("float16")
)
form("add.f16 {d}, {a}, {b}", "f16 f16 f16", np.add)
form("mul.f16 {d}, {a}, {b}", "f16 f16 f16", np.multiply)
form("cvt.sat.f32.f32 {d}, {a}", "f32 f32", lambda a: np.nan_to_num(np.clip(a, 0, 1), nan=0.0))
form("min.f16 {d}, {a}, {b}", "f16 f16 f16", np.fmin)
form(
    "setp.lt.f16 %p1, {a}, {b}; selp.u32 {d}, 1, 0, %p1", "u32 f16 f16", lambda a, b: (a < b).astype("uint32")
)
form(
    "cvt.rn.f16x2.f32 {d}, {a}, {b}",
    "u32 f32 f32",
    lambda a, b: a.astype("f2").view("u2").astype("u4") << 16 | b.astype("f2").view("u2"),
    values=_finite,
)
form(
    "dp4a.s32.u32 {d}, {a}, {b}, {c}",
    "u32 u32 u32 u32",
    lambda a, b, c: (
        c + (a.view("i1").reshape(-1, 4).astype("i4") * b.view("u1").reshape(-1, 4)).sum(1).astype("u4")
    ),
)
form(
    "bmsk.clamp.b32 {d}, {a}, {b}",
    "u32 u32 u32",
    _objects(lambda a, b: sum(1 << k for k in range(32) if a <= k < a + b), "uint32"),
    values=_lane,
)
form(
    "szext.clamp.s32 {d}, {a}, {b}",
    "s32 s32 u32",
    _objects(
        lambda a, b: a if b >= 32 else (a & (1 << b) - 1) - ((a >> (b - 1) & 1) << b if b else 0), "int32"
    ),
    values=lambda g, k: _special(g, k) if k == "s32" else _lane(g, k),
)
form(
    "add.ftz.f32 {d}, {a}, 0f00000000",
    "f32 f32",
    lambda a: np.where(np.abs(a) < 2.0**-126, np.copysign(0, a), a) + np.float32(0),
)


def _directed(a: np.ndarray, down: bool) -> np.ndarray:
    """float64 to float32 towards minus or plus infinity."""
    near = a.astype("float32")
    wrong = near.astype("float64") > a if down else near.astype("float64") < a
    return np.where(wrong, np.nextafter(near, np.float32(-np.inf if down else np.inf)), near).astype(
        "float32"
    )


form("cvt.rm.f32.f64 {d}, {a}", "f32 f64", lambda a: _directed(a, True), values=_finite)
form("cvt.rp.f32.f64 {d}, {a}", "f32 f64", lambda a: _directed(a, False), values=_finite)
form(
    "mul.rm.f32 {d}, {a}, {b}",
    "f32 f32 f32",
    lambda a, b: _directed(a.astype("f8") * b, True),
    values=_finite,
)
form(
    "mul.rp.f32 {d}, {a}, {b}",
    "f32 f32 f32",
    lambda a, b: _directed(a.astype("f8") * b, False),
    values=_finite,
)


def _fused(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Exact product and sum in rationals, rounded once."""
    from fractions import Fraction

    exact = [
        Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)) for x, y, z in zip(a, b, c, strict=True)
    ]
    if a.dtype == np.float64:
        return np.array([value.numerator / value.denominator for value in exact])
    return np.array([_round_to_float32(value) for value in exact], "float32")


def _round_to_float32(value: object) -> np.float32:
    from fractions import Fraction

    assert isinstance(value, Fraction)
    near = np.float32(value.numerator / value.denominator)  # rounded twice: look at the neighbours too
    candidates = [near, np.nextafter(near, np.float32(-np.inf)), np.nextafter(near, np.float32(np.inf))]
    even = lambda x: int(np.float32(x).view("uint32")) & 1  # noqa: E731
    return min(candidates, key=lambda x: (abs(Fraction(float(x)) - value), even(x)))


form("fma.rn.f32 {d}, {a}, {b}, {c}", "f32 f32 f32 f32", _fused, values=_finite)
form("fma.rn.f64 {d}, {a}, {b}, {c}", "f64 f64 f64 f64", _fused, values=_finite)
form("ex2.approx.f32 {d}, {a}", "f32 f32", lambda a: np.exp2(a.astype("f8")), exact=False, values=_finite)
form("ex2.approx.ftz.f32 {d}, {a}", "f32 f32", lambda a: np.exp2(a.astype("f8")), exact=False)
form("lg2.approx.f32 {d}, {a}", "f32 f32", lambda a: np.log2(a.astype("f8")), exact=False, values=_positive)
form("sin.approx.f32 {d}, {a}", "f32 f32", lambda a: np.sin(a.astype("f8")), exact=False, values=_finite)
form("cos.approx.f32 {d}, {a}", "f32 f32", lambda a: np.cos(a.astype("f8")), exact=False, values=_finite)
form("tanh.approx.f32 {d}, {a}", "f32 f32", lambda a: np.tanh(a.astype("f8")), exact=False, values=_finite)
form(
    "rsqrt.approx.f32 {d}, {a}",
    "f32 f32",
    lambda a: 1 / np.sqrt(a.astype("f8")),
    exact=False,
    values=_positive,
)
form("rcp.approx.ftz.f32 {d}, {a}", "f32 f32", lambda a: 1 / a.astype("f8"), exact=False, values=_positive)
form("sqrt.approx.f32 {d}, {a}", "f32 f32", lambda a: np.sqrt(a.astype("f8")), exact=False, values=_positive)
form(
    "div.approx.f32 {d}, {a}, {b}",
    "f32 f32 f32",
    lambda a, b: a.astype("f8") / b,
    exact=False,
    values=_positive,
)
form(
    "div.full.f32 {d}, {a}, {b}",
    "f32 f32 f32",
    lambda a, b: a.astype("f8") / b,
    exact=False,
    values=_positive,
)
form("rcp.approx.ftz.f64 {d}, {a}", "f64 f64", lambda a: 1 / a, exact=False, values=_positive)
form("rsqrt.approx.ftz.f64 {d}, {a}", "f64 f64", lambda a: 1 / np.sqrt(a), exact=False, values=_positive)


def inputs_of(form: Form) -> list[np.ndarray]:
    generator = np.random.default_rng(zlib.crc32(form.text.encode()))
    return [(form.values or _special)(generator, kind) for kind in form.types[1:]]


@pytest.fixture(scope="module")
def results(jail: None) -> dict[str, np.ndarray]:
    """Entry -> what it stored. All forms in one module and one process."""
    forms = {form.entry: form for form in FORMS}
    machine = Machine(
        ".version 8.0\n.target sm_90\n.address_size 64\n" + "\n".join(map(_entry, forms.values()))
    )
    prepared = [
        machine.prepare(entry, 1, N, Out(N, DTYPES[form.types[0]]), *inputs_of(form), count=False)
        for entry, form in forms.items()
    ]
    runs = machine.run_all(prepared)
    assert len(runs) == len(forms), runs[-1].result
    return {entry: run.arrays["a0"] for entry, run in zip(forms, runs, strict=True)}


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.text}|{' '.join(form.types)}")
def test_instruction_does_what_it_means(results: dict[str, np.ndarray], form: Form) -> None:
    sources, got = inputs_of(form), results[form.entry]
    with np.errstate(all="ignore"):
        expected = form.meaning(*sources).astype(got.dtype)
    if form.exact:
        same = (got == expected) | ((got != got) & (expected != expected))
        assert same.all(), [
            (*(s[i] for s in sources), got[i], expected[i]) for i in np.flatnonzero(~same)[:5]
        ]
    else:
        tolerance = 1e-6 if got.dtype == np.float32 else 1e-14
        np.testing.assert_allclose(got.astype("f8"), expected.astype("f8"), rtol=tolerance, atol=1e-38)
