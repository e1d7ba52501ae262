"""Kernels of the tests' own on a real card, `launch(n, x, y)`: compiled, recorded, run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sandbox import client, toolchain
from sandbox.cancellation import Cancellation
from sandbox.emulator.client import Buffer, Replay
from sandbox.gpu.client import Session, usable
from sandbox.gpu.wire import Side
from sandbox.plan import DEVICE_BASE, GUARD_BYTES
from sandbox.ptx import parameter_layout
from sandbox.recorder.client import record
from sandbox.targets import TARGETS
from sandbox.tasks.base import Parameter

Floats = npt.NDArray[np.float32]
TARGET = client.default_target("gpu")
_PARAMETERS = [
    Parameter(name="n", kind="scalar", dtype="int32", c_type="int"),
    Parameter(name="x", kind="array", dtype="float32", c_type="const float *"),
    Parameter(name="y", kind="array", dtype="float32", c_type="float *"),
]


def session() -> Session:
    return Session(usable(TARGET), Cancellation())


def side(source: str, card: Session, inputs: Sequence[Floats], outputs: int | None = None) -> Side:
    """One contestant; `outputs`: elements of y, where not as many as x has."""
    compiled = toolchain.compile_candidate(source, target=TARGET, cancel=Cancellation())
    assert compiled.ok, compiled.compilation.log
    assert compiled.cubin is not None
    n = inputs[0].size
    count = n if outputs is None else outputs
    x_at = DEVICE_BASE + GUARD_BYTES
    y_at = x_at + -(-8 * n // GUARD_BYTES) * GUARD_BYTES + GUARD_BYTES
    [plan] = record(
        compiled,
        _PARAMETERS,
        [{"n": n, "x": x_at, "y": y_at}],
        layout=parameter_layout(compiled.ptx[0]),
        target=TARGETS[TARGET],
        cancel=Cancellation(),
        base=card.base,
    )
    return Side(
        compiled.cubin.read_bytes(),
        [
            Replay(
                plan,
                [
                    Buffer("x", x_at, x.tobytes(), 4 * n, False, True, 0xFF),
                    Buffer("y", y_at, None, 4 * count, True, False, 0xFF),
                ],
                count=False,
            )
            for x in inputs
        ],
    )


def run(source: str, card: Session, x: Floats, *, seconds: float = 20.0) -> tuple[str, Floats | None]:
    """How it ended ("ok", or the kind of fault), and y."""
    one = side(source, card, [x])
    [(result, arrays)] = card.replay(one.cubin, one.replays, seconds=seconds)
    if result.status != "ok":
        return (result.fault.kind if result.fault else result.status), None
    return "ok", np.frombuffer(arrays["y"], np.float32)


def numbers(n: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).standard_normal(n, dtype=np.float32)
