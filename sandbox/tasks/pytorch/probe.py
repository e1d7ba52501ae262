"""In the jail: what the module accepts and whether it can be judged at all, found out by running it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from sandbox.errors import TaskProblem
from sandbox.tasks.pytorch.graph import Graph, Placeholder
from sandbox.tasks.pytorch.messages import FILE, Target, Values
from sandbox.tasks.pytorch.module import Built
from sandbox.tasks.pytorch.truth import Reference
from sandbox.tasks.pytorch.values import draw, parameter
from sandbox.types import Problem

_OFFSETS = (32.0, 8.0, 2.0)
#: A draw whose native error is above this, relative to the largest output, says nothing about a candidate.
_USEFUL_ERROR = 5e-6
_Domain = str


class Probe:
    """Runs one module on trial inputs."""

    def __init__(self, built: Built, graph: Graph) -> None:
        self._reference = Reference(built)
        self._targets = [
            Target(name=p.name, kind=p.kind, target=p.target, type=p.type) for p in graph.placeholders
        ]
        self._leaves = torch.utils._pytree.tree_leaves(list(built.inputs))
        self._given = {p.name: self._value(built, p) for p in graph.placeholders}
        self._placeholders = graph.placeholders
        self._generator = np.random.default_rng(7)

    def values(self) -> list[Values]:
        """How to draw every tensor. Raises TaskProblem for a module that is random or constant."""
        baseline = self._run({})
        if not all(
            torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(baseline, self._run({}), strict=True)
        ):
            raise TaskProblem(
                Problem(
                    kind="non_deterministic",
                    message="two runs of the module on the same inputs differ",
                    hint="take random numbers from get_inputs() instead of drawing them in forward",
                    file=FILE,
                )
            )
        domains = self._domains([int(t.isfinite().sum()) for t in baseline])
        values = [self._describe(p, domains.get(p.name, "observed")) for p in self._placeholders]
        self._require_variation(values)
        return values

    def offset(self, values: Sequence[Values]) -> float:
        """The largest offset of "large_offset" at which the module's own float32 result still means
        something.
        """
        return next((o for o in _OFFSETS if self._native_error(values, o) <= _USEFUL_ERROR), 1.0)

    def fixed(self, name: str) -> bytes:
        raw: bytes = self._given[name].contiguous().numpy().tobytes()
        return raw

    def _native_error(self, values: Sequence[Values], offset: float) -> float:
        tensors = self._draw(values, "large_offset", offset)
        native = self._reference.native(tensors, self._targets)
        truth = self._reference.truth(tensors, self._targets)
        worst = 0.0
        for got, wanted in zip(native, truth, strict=True):
            if got.is_floating_point() and got.numel():
                error = (got.double() - wanted).abs().nan_to_num().max().item()
                worst = max(worst, error / (wanted.abs().nan_to_num(posinf=0, neginf=0).max().item() or 1.0))
        return worst

    def _value(self, built: Built, p: Placeholder) -> torch.Tensor:
        if p.kind == "input":
            given = self._leaves[int(p.target)]
        else:
            owner, _, name = p.target.rpartition(".")
            given = getattr(built.model.get_submodule(owner), name)
        value: torch.Tensor = given.detach().clone()
        return value

    def _run(self, replaced: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        return self._reference.native({**self._given, **replaced}, self._targets)

    def _domains(self, finite: Sequence[int]) -> dict[str, _Domain]:
        """By float input: "real" where values of either sign give as many finite outputs as the file's
        own do,
        else "nonnegative", else "observed"."""
        names = [
            p.name
            for p in self._placeholders
            if p.kind == "input" and self._given[p.name].is_floating_point()
        ]
        if self._accepts(dict.fromkeys(names, "real"), finite):
            return dict.fromkeys(names, "real")
        domains: dict[str, _Domain] = {}
        for name in names:
            tries = ("real", "nonnegative")
            domains[name] = next(
                (d for d in tries if self._accepts({**domains, name: d}, finite)), "observed"
            )
        return domains

    def _accepts(self, domains: Mapping[str, _Domain], finite: Sequence[int]) -> bool:
        values = [self._describe(p, domains[p.name]) for p in self._placeholders if p.name in domains]
        try:
            results = self._run(
                {v.name: torch.from_numpy(draw(v, "normal", 0, self._generator)) for v in values}
            )
        except TaskProblem:
            return False
        return all(int(r.isfinite().sum()) >= count for r, count in zip(results, finite, strict=True))

    def _describe(self, p: Placeholder, domain: _Domain) -> Values:
        given = self._given[p.name].double()
        spread = given.numel() > 0
        running = p.target.rpartition(".")[2] in ("running_mean", "running_var")
        if p.kind == "constant" or (p.kind == "buffer" and not (running and given.is_floating_point())):
            domain = "fixed"
        elif not self._given[p.name].is_floating_point():
            domain = "integer" if p.kind == "input" else "fixed"
        return Values(
            name=p.name,
            type=p.type,
            domain=domain,
            low=given.min().item() if spread else 0.0,
            high=given.max().item() if spread else 0.0,
            mean=given.mean().item() if spread else 0.0,
            deviation=given.std(correction=0).item() if spread else 0.0,
        )

    def _draw(self, values: Sequence[Values], distribution: str, offset: float) -> dict[str, torch.Tensor]:
        tensors = {}
        for v, p in zip(values, self._placeholders, strict=True):
            if v.domain == "fixed":
                tensors[v.name] = self._given[v.name]
            elif p.kind == "input":
                made = draw(v, distribution, offset, self._generator)  # type: ignore[arg-type]
                tensors[v.name] = torch.from_numpy(made).to(self._given[v.name].dtype)
            else:
                tensors[v.name] = torch.from_numpy(parameter(v, self._generator))
        return tensors

    def _require_variation(self, values: Sequence[Values]) -> None:
        """Raises TaskProblem when different inputs give bitwise the same outputs."""
        first, second = (
            self._reference.native(self._draw(values, "normal", 0), self._targets) for _ in range(2)
        )
        if all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(first, second, strict=True)):
            raise TaskProblem(
                Problem(
                    kind="constant_output",
                    message="the outputs do not depend on the inputs: different inputs give the same outputs",
                    hint="a kernel for this would write a constant; check forward",
                    file=FILE,
                )
            )
