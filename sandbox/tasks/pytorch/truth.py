"""In the jail: what the module makes of given inputs, in its own precision and in float64."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from sandbox.tasks.pytorch.messages import Target
from sandbox.tasks.pytorch.module import Built, blaming


class _Widen(TorchDispatchMode):  # type: ignore[misc]
    """float64 wherever the module asks for float32 by name: casts, factories, and constants it holds."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args, kwargs = torch.utils._pytree.tree_map(_widened, (args, kwargs or {}))
        return function(*args, **kwargs)


def _widened(value: Any) -> Any:
    if value is torch.float32:
        return torch.float64
    if isinstance(value, torch.Tensor) and value.dtype == torch.float32 and type(value) is torch.Tensor:
        return value.double()
    return value


class Reference:
    """The module, ready to be given tensors by name."""

    def __init__(self, built: Built) -> None:
        self._built = built
        self._leaves, self._structure = torch.utils._pytree.tree_flatten(list(built.inputs))
        self._wide: nn.Module | None = None

    def native(self, tensors: Mapping[str, torch.Tensor], targets: Sequence[Target]) -> list[torch.Tensor]:
        return self._run(self._built.model, self._place(tensors, targets), tensors, targets)

    def truth(self, tensors: Mapping[str, torch.Tensor], targets: Sequence[Target]) -> list[torch.Tensor]:
        if self._wide is None:
            self._wide = copy.deepcopy(self._built.model).double()
        wide = {name: t.double() if t.is_floating_point() else t for name, t in tensors.items()}
        with _default_float64(), _Widen():
            return self._run(self._wide, self._place(wide, targets), wide, targets)

    def _place(self, tensors: Mapping[str, torch.Tensor], targets: Sequence[Target]) -> list[Any]:
        leaves = list(self._leaves)
        for target in targets:
            if target.kind == "input":
                leaves[int(target.target)] = tensors[target.name].clone()
        inputs: list[Any] = torch.utils._pytree.tree_unflatten(leaves, self._structure)
        return inputs

    def _run(
        self,
        model: nn.Module,
        inputs: list[Any],
        tensors: Mapping[str, torch.Tensor],
        targets: Sequence[Target],
    ) -> list[torch.Tensor]:
        with torch.no_grad(), blaming("forward raises"):
            for target in targets:
                if target.kind in ("parameter", "buffer"):
                    _held(model, target.target).copy_(tensors[target.name])
            result = model(*inputs)
        return [v for v in torch.utils._pytree.tree_leaves(result) if isinstance(v, torch.Tensor)]


def _held(model: nn.Module, dotted: str) -> torch.Tensor:
    owner, _, name = dotted.rpartition(".")
    tensor: torch.Tensor = getattr(model.get_submodule(owner), name)
    return tensor.data


@contextmanager
def _default_float64() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)
