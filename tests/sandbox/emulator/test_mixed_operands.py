"""Every instruction form again with each of its operands a vector, one value for the warp, or a constant.

What is the same in all lanes stays one scalar in the emulator, so a form has as many lowerings as there are
ways to mix the kinds of its operands.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from emulated import Machine, Out
from test_instructions import DTYPES, FORMS, Form, N, inputs_of, register_of

_TAKEN = 9  # which of a form's values becomes the scalar or the constant: the first behind the corner cases


@dataclass(frozen=True)
class Mixed:
    form: Form
    kinds: str  # for each operand: "v" a vector, "u" the same in the whole warp, "i" written out

    @property
    def entry(self) -> str:
        return f"{self.form.entry}_{self.kinds}"

    @property
    def values(self) -> list[np.ndarray]:
        return [
            values if kind == "v" else np.repeat(values[_TAKEN : _TAKEN + 1], N)
            for values, kind in zip(inputs_of(self.form), self.kinds, strict=True)
        ]

    def arguments(self) -> list[np.ndarray | np.generic]:
        pairs = zip(self.values, self.kinds, strict=True)
        return [values if kind == "v" else values[0] for values, kind in pairs if kind != "i"]

    def ptx(self) -> str:
        result, *types = self.form.types
        parameters, body, operands = [".param .u64 pd"], [], {"d": "%d"}
        for name, kind, source, values in zip("abc", types, self.kinds, self.values, strict=False):
            width = int(kind[1:])
            typed = f"{'b' if kind[0] == 'f' else kind[0]}{width}"
            operands[name] = _constant(values[0]) if source == "i" else f"%{name}"
            body += [f".reg {register_of(kind)} %{name}; .reg .b64 %p{name}, %q{name};"]
            if source == "v":
                parameters += [f".param .u64 p{name}"]
                body += [f"ld.param.u64 %p{name}, [p{name}];"]
                body += [f"mad.lo.u64 %q{name}, %i, {width // 8}, %p{name};"]
                body += [f"ld.global.{typed} %{name}, [%q{name}];"]
            elif source == "u":
                parameters += [f".param .{typed} p{name}"]
                body += [f"ld.param.{typed} %{name}, [p{name}];"]
        return "\n".join(
            [
                f".visible .entry {self.entry}({', '.join(parameters)}) {{",
                ".reg .pred %p<4>; .reg .b32 %t<4>, %x; .reg .b64 %i, %y; .reg .b16 %h<4>;",
                f".reg {register_of(result)} %d; .reg .b64 %pd, %qd;",
                "mov.u32 %t0, %tid.x; cvt.u64.u32 %i, %t0; ld.param.u64 %pd, [pd];",
                f"mad.lo.u64 %qd, %i, {int(result[1:]) // 8}, %pd;",
                *body,
                self.form.text.format(**operands) + ";",
                f"st.global.b{result[1:]} [%qd], %d;",
                "ret;",
                "}",
            ]
        )


def _constant(value: np.generic) -> str:
    if value.dtype == np.float32:
        return f"0f{value.view('uint32'):08X}"
    if value.dtype == np.float64:
        return f"0d{value.view('uint64'):016X}"
    return str(value.view(f"int{8 * value.itemsize}"))


def _mixtures(form: Form) -> list[Mixed]:
    """One operand that is no vector, one that is, and none. 16-bit floats have no constants."""
    choices = ["vu" if kind == "f16" else "vui" for kind in form.types[1:]]
    mixed = ["".join(kinds) for kinds in itertools.product(*choices)]
    alone = (1, len(choices) - 1, 0)
    return [Mixed(form, kinds) for kinds in mixed if kinds.count("v") in alone and len({*kinds} - {"v"}) == 1]


@pytest.fixture(scope="module")
def results(jail: None) -> dict[str, np.ndarray]:
    """Entry -> what it stored. All in one module and one process."""
    mixtures = {mixed.entry: mixed for form in FORMS for mixed in _mixtures(form)}
    machine = Machine(
        ".version 8.0\n.target sm_90\n.address_size 64\n" + "\n".join(m.ptx() for m in mixtures.values())
    )
    prepared = [
        machine.prepare(entry, 1, N, Out(N, DTYPES[mixed.form.types[0]]), *mixed.arguments(), count=False)
        for entry, mixed in mixtures.items()
    ]
    runs = machine.run_all(prepared)
    assert len(runs) == len(mixtures), (list(mixtures)[len(runs) - 1], runs[-1].result)
    return {entry: run.arrays["a0"] for entry, run in zip(mixtures, runs, strict=True)}


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.text}|{' '.join(form.types)}")
def test_operands_of_every_kind_mix(results: dict[str, np.ndarray], form: Form) -> None:
    for mixed in _mixtures(form):
        got = results[mixed.entry]
        with np.errstate(all="ignore"):
            expected = form.meaning(*mixed.values).astype(got.dtype)
        tolerance = 0.0 if form.exact else 1e-6 if got.dtype == np.float32 else 1e-14
        np.testing.assert_allclose(
            got.astype("f8") if tolerance else got,
            expected.astype("f8") if tolerance else expected,
            rtol=tolerance,
            atol=1e-38 if tolerance else 0.0,
            err_msg=mixed.kinds,
        )
