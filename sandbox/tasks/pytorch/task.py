"""A PyTorch module as a task: what the judge sees of it. The user's file runs only in `worker`, in the jail."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from sandbox import jail
from sandbox.cancellation import Cancellation
from sandbox.errors import Cancelled, TaskProblem
from sandbox.home import scratch
from sandbox.limits import TORCH, Limits
from sandbox.tasks.base import Array, Distribution, Draw, Expected, Inputs, Parameter, TaskSpec
from sandbox.tasks.pytorch.graph import DTYPES, TensorType, reduction_length
from sandbox.tasks.pytorch.messages import (
    ARRAYS,
    DRAWS,
    FILE,
    REPLY,
    REQUEST,
    Computed,
    DrawLayout,
    ExpectedRequest,
    Loaded,
    LoadRequest,
    Reply,
    Target,
    Values,
)
from sandbox.tasks.pytorch.values import draw, parameter
from sandbox.types import Problem

#: What one run of the module may cost in the emulator. A draw is replayed twice, and there are five.
MAX_ELEMENTS = 1 << 20
MAX_FLOP = 1 << 25

_REPLY_BYTES = 1 << 24
_C_TYPES = {"float32": "float", "float64": "double", "int32": "int", "int64": "long long", "uint8": "bool"}
_DISTRIBUTIONS: tuple[Distribution, ...] = ("normal", "uniform", "heavy_tail", "large_offset", "cancellation")
_RULE = (
    "float32 results are compared with the module run in float64: at most twice the error of the module itself "
    "in float32, with a floor that grows with the square root of the reduction length; integers and booleans exact"
)


@dataclass(frozen=True)
class PyTorchTask:
    """Made by `load`. Implements `sandbox.tasks.base.Task`."""

    spec: TaskSpec
    _source: str
    _loaded: Loaded
    _fixed: Mapping[str, Array]  # values of buffers and constants, which are the module's own in every draw
    _limits: Limits

    def draws(self, seed: bytes) -> Sequence[Draw]:
        """One draw per distribution. The sizes are the module's; parameters get their own values every time."""
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

    def expected(self, draws: Sequence[Draw], cancel: Cancellation) -> Sequence[Expected]:
        """The module in its own precision and in float64, from one jailed process for all draws."""
        outputs = self._loaded.graph.outputs
        targets = [
            Target(name=p.name, kind=p.kind, target=p.target, type=p.type)
            for p in self._loaded.graph.placeholders
        ]
        with scratch("torch") as folder:
            with (folder / DRAWS).open("wb") as file:
                layouts = []
                for one in draws:
                    offsets = []
                    for target in targets:
                        offsets.append(file.tell())
                        file.write(np.ascontiguousarray(one.arrays[target.name]).tobytes())
                    layouts.append(DrawLayout(offsets=offsets))
            request = ExpectedRequest(
                sizes=self._loaded.sizes, targets=targets, draws=layouts, outputs=[o.type for o in outputs]
            )
            computed = _ask(folder, self._source, request, self._limits, cancel).computed
            if computed is None or len(computed.native) != len(draws) or len(computed.truth) != len(draws):
                raise _broken("its answer is incomplete")
            raw = jail.read_result(folder / ARRAYS, self._limits.file_bytes)
        return [self._expected(raw, computed, i) for i in range(len(draws))]

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
    source: str, inputs: Inputs, cancel: Cancellation, *, shrink: bool = True, limits: Limits = TORCH
) -> PyTorchTask:
    """Trace the file's `Model` in the jail. `shrink`: lower module-level integers to what the emulator can afford.

    Raises TaskProblem (what is wrong with the file, and its line), JailUnavailable, Cancelled.
    """
    request = LoadRequest(
        sizes=inputs.sizes,
        max_elements=MAX_ELEMENTS if shrink else None,
        max_flop=MAX_FLOP if shrink else None,
    )
    with scratch("torch") as folder:
        loaded = _ask(folder, source, request, limits, cancel).loaded
        if loaded is None:
            raise _broken("its answer is incomplete")
        raw = jail.read_result(folder / ARRAYS, limits.file_bytes)
    fixed = {
        v.name: _array(raw, v.offset, v.type, DTYPES[v.type.dtype])
        for v in loaded.values
        if v.domain == "fixed" and v.offset is not None
    }
    return PyTorchTask(_spec(source, inputs, loaded), source, loaded, fixed, limits)


def _ask(
    folder: Path, source: str, request: LoadRequest | ExpectedRequest, limits: Limits, cancel: Cancellation
) -> Reply:
    """Runs the worker on `request`. Raises TaskProblem when it says so, or when it dies or never ends."""
    (folder / FILE).write_text(source)
    (folder / REQUEST).write_text(request.model_dump_json())
    finished = jail.run(
        jail.python_argv("sandbox.tasks.pytorch.worker", "/run/task"),
        binds=[jail.Bind(folder, Path("/run/task"), writable=True)],
        cwd=Path("/run/task"),
        limits=limits,
        cancel=cancel,
        python=True,
    )
    match finished.reason:
        case "cancelled":
            raise Cancelled
        case "timeout":
            raise TaskProblem(
                Problem(
                    kind="endless",
                    message=f"the module did not finish within {limits.wall_seconds:.0f} s",
                    hint="make the sizes smaller, and look for a loop that never ends",
                    file=FILE,
                )
            )
        case "memory":
            raise _out_of_memory(limits)
        case "output":
            raise TaskProblem(
                Problem(kind="too_much_output", message="the file prints or writes without end", file=FILE)
            )
    said = finished.stderr.decode(errors="replace").strip().splitlines()
    if not finished.ok:
        if said and ("MemoryError" in said[-1] or "alloc" in said[-1].lower()):
            raise _out_of_memory(limits)
        how = f"signal {finished.signal}" if finished.signal else f"exit code {finished.returncode}"
        raise _broken(f"{how}: {said[-1][:300]}" if said else how)
    try:
        reply = Reply.model_validate_json(jail.read_result(folder / REPLY, _REPLY_BYTES))
    except (OSError, ValidationError) as error:
        raise _broken(f"it left no answer ({type(error).__name__})") from None
    if reply.problem is not None:
        raise TaskProblem(reply.problem)
    return reply


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
        raise _broken("its answer is cut off")
    return np.frombuffer(raw[offset : offset + bytes_], dtype).reshape(type_.shape)


def _broken(how: str) -> TaskProblem:
    return TaskProblem(
        Problem(kind="crashed", message=f"the process that ran the module broke off: {how}", file=FILE)
    )


def _out_of_memory(limits: Limits) -> TaskProblem:
    return TaskProblem(
        Problem(
            kind="out_of_memory",
            message=f"the module needs more than {limits.memory_bytes >> 30} GiB of memory",
            hint="make the sizes smaller",
            file=FILE,
        )
    )
