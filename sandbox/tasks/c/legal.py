"""Which distributions a program with conversions from floating point to integers is defined for.

Where a value does not fit, C leaves the result open, and a CPU and a GPU differ: such inputs would prove
nothing. The program is built to die there, and run with each distribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from sandbox.cancellation import Cancellation
from sandbox.limits import REFERENCE
from sandbox.tasks import draws
from sandbox.tasks.base import Distribution, Inputs
from sandbox.tasks.c.build import Executable
from sandbox.tasks.c.fill import fill
from sandbox.tasks.c.formals import Formal
from sandbox.tasks.c.infer import Inferred
from sandbox.tasks.c.probe import SECONDS
from sandbox.tasks.c.runner import call_reference
from sandbox.tasks.c.sizing import Sized

_SEEDS = 2
ALL: tuple[Distribution, ...] = tuple(d for d in get_args(Distribution) if d != "given")


def legal_distributions(
    checked: Executable,
    formals: Sequence[Formal],
    inferred: Inferred,
    inputs: Inputs,
    representative: Sized,
    cancel: Cancellation,
) -> tuple[Distribution, ...]:
    """Those with which every conversion is defined.

    Where ordinary values are not among them, `inferred.unit_range` is set and tried; where not even that
    helps, all are returned: the program is then judged as it behaves on this machine.
    """
    for unit_range in (False, True):
        inferred.unit_range = unit_range
        kinds = ALL if not unit_range else tuple(d for d in ALL if d != "special")
        calls = [
            fill(formals, inferred, inputs, representative.sizes, kind, draws.generator(b"legal", kind, seed))
            for kind in kinds
            for seed in range(_SEEDS)
        ]
        outcomes = call_reference(
            checked,
            formals,
            calls,
            at_end=True,
            poison=0,
            seconds=SECONDS,
            limits=REFERENCE,
            cancel=cancel,
        )
        fine = [
            kind
            for number, kind in enumerate(kinds)
            if all(o.status == "ok" for o in outcomes[number * _SEEDS : (number + 1) * _SEEDS])
        ]
        if "normal" in fine:
            return tuple(fine)
    inferred.unit_range = False
    return ALL
