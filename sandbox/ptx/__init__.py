"""PTX: parsing what nvcc emits into typed data."""

from sandbox.ptx.model import Module, PtxError
from sandbox.ptx.parser import parameter_layout, parse

__all__ = ["Module", "PtxError", "parameter_layout", "parse"]
