"""The process in the jail, trusted code around the user's. Arguments: two folders, two file descriptors.

A byte on the first descriptor says that a request lies in the first folder; one on the second, that the reply
lies in the second.
"""

from __future__ import annotations

import os
import select
import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from pydantic import TypeAdapter

from sandbox.errors import TaskProblem
from sandbox.tasks.pytorch.export import export, require_dtypes
from sandbox.tasks.pytorch.graph import DTYPES
from sandbox.tasks.pytorch.messages import (
    ARRAYS,
    DRAWS,
    FILE,
    REPLY,
    REQUEST,
    Computed,
    ExpectedRequest,
    Loaded,
    LoadRequest,
    Reply,
    Request,
)
from sandbox.tasks.pytorch.module import UserFile, blaming
from sandbox.tasks.pytorch.probe import Probe
from sandbox.tasks.pytorch.shrink import shrink
from sandbox.tasks.pytorch.truth import Reference
from sandbox.types import Problem

_IDLE_SECONDS = 300.0  # nobody asks: end, and be started again when somebody does


def main() -> None:
    inbox, outbox = Path(sys.argv[1]), Path(sys.argv[2])
    requests, replies = int(sys.argv[3]), int(sys.argv[4])
    warnings.filterwarnings("ignore")
    torch.set_num_threads(2)
    worker = _Worker(inbox, outbox)
    while select.select([requests], [], [], _IDLE_SECONDS)[0] and os.read(requests, 1):
        (outbox / REPLY).write_text(worker.answer().model_dump_json())
        os.write(replies, b"\n")


class _Worker:
    def __init__(self, inbox: Path, outbox: Path) -> None:
        self._inbox, self._outbox = inbox, outbox
        self._file: UserFile | None = None
        self._reference: tuple[dict[str, int], Reference] | None = None  # with the sizes it was built for

    def answer(self) -> Reply:
        request: LoadRequest | ExpectedRequest
        request = TypeAdapter(Request).validate_json((self._inbox / REQUEST).read_bytes())
        try:
            if self._file is None:
                self._file = UserFile.parse((self._inbox / FILE).read_text())
            if isinstance(request, LoadRequest):
                return Reply(loaded=_load(self._file, request, self._outbox))
            return Reply(computed=self._expected(self._file, request))
        except TaskProblem as problem:
            return Reply(problem=problem.problem)

    def _expected(self, file: UserFile, request: ExpectedRequest) -> Computed:
        if self._reference is None or self._reference[0] != request.sizes:
            self._reference = (request.sizes, Reference(file.build(request.sizes)))
        reference = self._reference[1]
        raw = np.memmap(self._inbox / DRAWS, dtype=np.uint8, mode="r")
        native: list[list[int]] = []
        truth: list[list[int]] = []
        with (self._outbox / ARRAYS).open("wb") as out:

            def write(tensors: list[torch.Tensor]) -> list[int]:
                offsets = []
                for tensor in tensors:
                    offsets.append(out.tell())
                    out.write(tensor.contiguous().numpy().tobytes())
                return offsets

            for layout in request.draws:
                tensors = {}
                for target, offset in zip(request.targets, layout.offsets, strict=True):
                    data = raw[
                        offset : offset + target.type.numel * np.dtype(DTYPES[target.type.dtype]).itemsize
                    ]
                    array = (
                        np.frombuffer(data.tobytes(), DTYPES[target.type.dtype])
                        .reshape(target.type.shape)
                        .copy()
                    )
                    tensors[target.name] = torch.from_numpy(array).to(getattr(torch, target.type.dtype))
                native.append(
                    write(_checked(reference.native(tensors, request.targets), request, wide=False))
                )
                truth.append(write(_checked(reference.truth(tensors, request.targets), request, wide=True)))
        return Computed(native=native, truth=truth)


def _load(file: UserFile, request: LoadRequest, folder: Path) -> Loaded:
    unknown = sorted(set(request.sizes) - set(file.integers))
    if unknown:
        raise TaskProblem(
            Problem(
                kind="unknown_size",
                message=f"the file has no module-level integer {unknown[0]!r}",
                choices=sorted(file.integers),
                file=FILE,
            )
        )
    sizes = {**file.integers, **request.sizes}
    if request.max_elements is not None and request.max_flop is not None:
        sizes = shrink(file, request.sizes, request.max_elements, request.max_flop)
    built = file.build(sizes)
    with blaming("forward raises"):
        built.run()
    graph, order, scalars = export(built)
    require_dtypes(graph)
    probe = Probe(built, graph)
    values, raw = [], bytearray()
    for value in probe.values():
        if value.domain == "fixed":
            value = value.model_copy(update={"offset": len(raw)})
            raw += probe.fixed(value.name)
        values.append(value)
    (folder / ARRAYS).write_bytes(bytes(raw))
    return Loaded(
        module=type(built.model).__name__,
        graph=graph,
        order=order,
        values=values,
        scalars=scalars,
        sizes=sizes,
        notes=_notes(file, request, sizes),
        offset=probe.offset(values),
    )


def _notes(file: UserFile, request: LoadRequest, sizes: dict[str, int]) -> list[str]:
    free = {n: v for n, v in file.integers.items() if n not in request.sizes}
    lowered = [f"{n} {v} -> {sizes[n]}" for n, v in free.items() if sizes[n] < v]
    return [f"sizes were lowered so that the emulator can run them: {', '.join(lowered)}"] if lowered else []


def _checked(results: list[torch.Tensor], request: ExpectedRequest, *, wide: bool) -> list[torch.Tensor]:
    """The results in the types that were agreed on when the module was loaded."""
    shapes = [list(r.shape) for r in results]
    if shapes != [t.shape for t in request.outputs]:
        raise TaskProblem(
            Problem(
                kind="shape_changes", message=f"the outputs' shapes depend on the values: {shapes}", file=FILE
            )
        )
    return [
        r.to(torch.float64 if wide and t.dtype.startswith("float") else getattr(torch, t.dtype))
        for r, t in zip(results, request.outputs, strict=True)
    ]


if __name__ == "__main__":
    main()
