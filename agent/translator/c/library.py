"""The C library as kernels may use it: signatures of math functions and names of constants."""

from __future__ import annotations

from agent.translator.c.syntax import Num
from agent.translator.c.types import DOUBLE, FLOAT, INT, LONG, SIZE, UINT, Scalar

_ONE = [
    "sqrt",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "fabs",
    "floor",
    "ceil",
    "round",
    "trunc",
    "rint",
    "nearbyint",
    "cbrt",
    "erf",
    "erfc",
    "tgamma",
    "lgamma",
    "logb",
]
_TWO = ["pow", "fmod", "atan2", "hypot", "fmin", "fmax", "fdim", "copysign", "remainder", "nextafter"]

#: name: (parameter types, result type)
FUNCTIONS: dict[str, tuple[tuple[Scalar, ...], Scalar]] = {
    "abs": ((INT,), INT),
    "labs": ((LONG,), LONG),
    "llabs": ((Scalar("long long"),), Scalar("long long")),
}
for _suffix, _kind in (("", DOUBLE), ("f", FLOAT)):
    FUNCTIONS |= {name + _suffix: ((_kind,), _kind) for name in _ONE}
    FUNCTIONS |= {name + _suffix: ((_kind, _kind), _kind) for name in _TWO}
    FUNCTIONS |= {
        "fma" + _suffix: ((_kind, _kind, _kind), _kind),
        "ldexp" + _suffix: ((_kind, INT), _kind),
        "scalbn" + _suffix: ((_kind, INT), _kind),
        "ilogb" + _suffix: ((_kind,), INT),
        "lround" + _suffix: ((_kind,), LONG),
        "lrint" + _suffix: ((_kind,), LONG),
        "llround" + _suffix: ((_kind,), Scalar("long long")),
        "llrint" + _suffix: ((_kind,), Scalar("long long")),
    }

#: Macros that take either precision and give an int.
CLASSIFIERS = {"isnan", "isinf", "isfinite", "signbit", "isnormal"}

CONSTANTS: dict[str, Num] = {
    **{
        name: Num(name, FLOAT)
        for name in ("INFINITY", "NAN", "HUGE_VALF", "FLT_MAX", "FLT_MIN", "FLT_EPSILON")
    },
    **{name: Num(name, DOUBLE) for name in ("HUGE_VAL", "DBL_MAX", "DBL_MIN", "DBL_EPSILON")},
    **{
        "M_" + name: Num("M_" + name, DOUBLE)
        for name in [
            "E",
            "LOG2E",
            "LOG10E",
            "LN2",
            "LN10",
            "PI",
            "PI_2",
            "PI_4",
            "1_PI",
            "2_PI",
            "2_SQRTPI",
            "SQRT2",
            "SQRT1_2",
        ]
    },
    **{
        name: Num(name, INT)
        for name in [
            "INT_MAX",
            "INT_MIN",
            "SHRT_MAX",
            "SHRT_MIN",
            "CHAR_MAX",
            "SCHAR_MAX",
            "SCHAR_MIN",
            "UCHAR_MAX",
            "CHAR_BIT",
            "INT8_MAX",
            "INT8_MIN",
            "UINT8_MAX",
            "INT16_MAX",
            "INT16_MIN",
            "UINT16_MAX",
            "INT32_MAX",
            "INT32_MIN",
            "FLT_DIG",
            "DBL_DIG",
            "FLT_MANT_DIG",
            "DBL_MANT_DIG",
            "FLT_MIN_EXP",
            "FLT_MAX_EXP",
            "RAND_MAX",
        ]
    },
    **{name: Num(name, UINT) for name in ("UINT_MAX", "UINT32_MAX")},
    **{name: Num(name, LONG) for name in ("LONG_MAX", "LONG_MIN", "INT64_MAX", "INT64_MIN", "LLONG_MAX")},
    **{name: Num(name, SIZE) for name in ("ULONG_MAX", "SIZE_MAX", "UINT64_MAX")},
    "NULL": Num("0", INT),
    "true": Num("1", INT),
    "false": Num("0", INT),
}

#: gcc's spellings of constants, which its headers' macros expand to.
BUILTIN_CONSTANTS: dict[str, Num] = {
    "inff": Num("INFINITY", FLOAT),
    "inf": Num("HUGE_VAL", DOUBLE),
    "huge_valf": Num("INFINITY", FLOAT),
    "huge_val": Num("HUGE_VAL", DOUBLE),
    "nanf": Num("NAN", FLOAT),
    "nan": Num("NAN", DOUBLE),
}
