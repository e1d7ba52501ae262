"""A PyTorch module as a task: what the judge sees of it. The user's file runs only in `worker`, in the
jail.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np

from sandbox.cancellation import Cancellation
from sandbox.limits import TORCH, Limits
from sandbox.tasks.base import Array, Baseline, Distribution, Draw, Expected, Inputs, Parameter, TaskSpec
from sandbox.tasks.pytorch.graph import DTYPES, TensorType, reduction_length
from sandbox.tasks.pytorch.messages import (
    FILE,
    Computed,
    DrawLayout,
    ExpectedRequest,
    Loaded,
    LoadRequest,
    Target,
    Values,
)
from sandbox.tasks.pytorch.process import ModuleProcess, broken
from sandbox.tasks.pytorch.values import draw, parameter

#: What one run of the module may cost in the emulator. A draw is replayed twice, and there are five.
MAX_ELEMENTS = 1 << 20
MAX_FLOP = 1 << 24

_C_TYPES = {"float32": "float", "float64": "double", "int32": "int", "int64": "long long", "uint8": "bool"}
_DISTRIBUTIONS: tuple[Distribution, ...] = ("normal", "uniform", "heavy_tail", "large_offset", "cancellation")
_RULE = (
    "float32 results are compared with the module run in float64: at most twice the error of the module "
    "itself in float32, with a floor that grows with the square root of the reduction length; integers and "
    "booleans exact"
)


@dataclass(frozen=True)
class PyTorchTask:
    """Made by `load`. Implements `sandbox.tasks.base.Task`."""

    spec: TaskSpec
    _loaded: Loaded
    _fixed: Mapping[str, Array]  # values of buffers and constants, which are the module's own in every draw
    _process: ModuleProcess

    def draws(self, seed: bytes) -> Sequence[Draw]:
        """One draw per distribution. The sizes are the module's; parameters get their own values every
        time.
        """
        streams = np.random.SeedSequence(int.from_bytes(seed, "little")).spawn(len(_DISTRIBUTIONS))
        outputs = {o.name: o.type.numel for o in self._loaded.graph.outputs}
        tensors = {v.name: v.type.numel for v in self._loaded.values}
        return [
            Draw(
                sizes=self._loaded.sizes,
                scalars={s.name: s.value for s in self._loaded.scalars},
                arrays=self._arrays(distribution, np.random.default_rng(stream)),
                extents={**tensors, **outputs},
                distribution=distribution,
                representative=distribution == "normal",
            )
            for distribution, stream in zip(_DISTRIBUTIONS, streams, strict=True)
        ]

    def baselines(self, draws: Sequence[Draw], cancel: Cancellation) -> Sequence[Baseline]:
        """None yet: torch on the card, eager and compiled, needs a jail of its own with the card in it."""
        return []

    def expected(self, draws: Sequence[Draw], cancel: Cancellation) -> Sequence[Expected]:
        """The module in its own precision and in float64, from one jailed process for all draws."""
        outputs = self._loaded.graph.outputs
        targets = [
            Target(name=p.name, kind=p.kind, target=p.target, type=p.type)
            for p in self._loaded.graph.placeholders
        ]
        raw, layouts = bytearray(), []
        for one in draws:
            offsets = []
            for target in targets:
                offsets.append(len(raw))
                raw += np.ascontiguousarray(one.arrays[target.name]).tobytes()
            layouts.append(DrawLayout(offsets=offsets))
        request = ExpectedRequest(
            sizes=self._loaded.sizes, targets=targets, draws=layouts, outputs=[o.type for o in outputs]
        )
        reply, arrays = self._process.ask(request, bytes(raw), cancel)
        computed = reply.computed
        if computed is None or len(computed.native) != len(draws) or len(computed.truth) != len(draws):
            raise broken("its answer is incomplete")
        return [self._expected(arrays, computed, i) for i in range(len(draws))]

    def _expected(self, raw: bytes, computed: Computed, index: int) -> Expected:
        outputs = self._loaded.graph.outputs
        native, truth, rows = {}, {}, {}
        for output, at, wide_at in zip(outputs, computed.native[index], computed.truth[index], strict=True):
            dtype = DTYPES[output.type.dtype]
            native[output.name] = _array(raw, at, output.type, dtype)
            truth[output.name] = _array(
                raw, wide_at, output.type, "float64" if dtype.startswith("float") else dtype
            )
            rows[output.name] = output.type.shape[-1] if output.type.shape else 1
        return Expected(
            truth=truth, native=native, reduction_length=reduction_length(self._loaded.graph), rows=rows
        )

    def _arrays(self, distribution: Distribution, generator: np.random.Generator) -> dict[str, Array]:
        kinds = {p.name: p.kind for p in self._loaded.graph.placeholders}

        def value(v: Values) -> Array:
            if v.domain == "fixed":
                return self._fixed[v.name]
            if kinds[v.name] == "input":
                return draw(v, distribution, self._loaded.offset, generator)
            return parameter(v, generator)

        return {v.name: value(v) for v in self._loaded.values}


def load(
    source: str,
    inputs: Inputs,
    cancel: Cancellation,
    *,
    filename: str = FILE,
    shrink: bool = True,
    limits: Limits = TORCH,
) -> PyTorchTask:
    """Trace the file's `Model` in the jail. `shrink`: lower module-level integers to what the emulator
    can afford.

    Raises TaskProblem (what is wrong with the file, and its line), JailUnavailable, Cancelled.
    """
    request = LoadRequest(
        sizes=inputs.sizes,
        max_elements=MAX_ELEMENTS if shrink else None,
        max_flop=MAX_FLOP if shrink else None,
    )
    process = ModuleProcess(source, limits, PurePath(filename).name)
    reply, raw = process.ask(request, b"", cancel)
    loaded = reply.loaded
    if loaded is None:
        raise broken("its answer is incomplete")
    fixed = {
        v.name: _array(raw, v.offset, v.type, DTYPES[v.type.dtype])
        for v in loaded.values
        if v.domain == "fixed" and v.offset is not None
    }
    return PyTorchTask(_spec(source, inputs, loaded), loaded, fixed, process)


def _spec(source: str, inputs: Inputs, loaded: Loaded) -> TaskSpec:
    parameters = []
    tensors = {p.name: p for p in loaded.graph.placeholders}
    scalars = {s.name: s for s in loaded.scalars}
    notes = list(loaded.notes)
    for name in loaded.order:
        if name in scalars:
            scalar = scalars[name]
            parameters.append(
                Parameter(
                    name=name,
                    kind="scalar",
                    dtype={"int": "int32", "float": "float32", "bool": "uint8"}[scalar.c_type],
                    c_type=scalar.c_type,
                    role="value",
                )
            )
            notes.append(f"{name}: always {scalar.value}, as get_inputs() gives it")
        else:
            p = tensors[name]
            parameters.append(_array_parameter(name, p.type, written=False))
            what = "" if p.kind == "input" else f" ({p.kind} {p.target})"
            notes.append(f"{name}: {p.type.dtype}{p.type.shape}{what}")
    for output in loaded.graph.outputs:
        parameters.append(_array_parameter(output.name, output.type, written=True))
        notes.append(f"{output.name}: {output.type.dtype}{output.type.shape} (result)")
    listed = ", ".join(f"{p.c_type}{'' if p.c_type.endswith('*') else ' '}{p.name}" for p in parameters)
    return TaskSpec(
        language="pytorch",
        name=loaded.module,
        source=source,
        prototype=f'extern "C" void launch({listed})',
        parameters=parameters,
        sizes=loaded.sizes,
        inputs=inputs,
        notes=notes,
        tolerance_rule=_RULE,
        graph=loaded.graph.model_dump(mode="json"),
    )


def _array_parameter(name: str, type_: TensorType, *, written: bool) -> Parameter:
    dtype = DTYPES[type_.dtype]
    return Parameter(
        name=name,
        kind="array",
        dtype=dtype,
        c_type=f"{'' if written else 'const '}{_C_TYPES[dtype]} *",
        access="write" if written else "read",
        extent=str(type_.numel),
        shape=[str(n) for n in type_.shape],
        role="data",
    )


def _array(raw: bytes, offset: int, type_: TensorType, dtype: str) -> Array:
    """Copied out of bytes that an untrusted process wrote. Raises TaskProblem when they are not all there."""
    bytes_ = math.prod(type_.shape) * np.dtype(dtype).itemsize
    if not 0 <= offset <= len(raw) - bytes_:
        raise broken("its answer is cut off")
    return np.frombuffer(raw[offset : offset + bytes_], dtype).reshape(type_.shape)
