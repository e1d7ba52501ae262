"""The gallery: the examples and the recorded runs that ship with Kernelwright, read from `EXAMPLES`."""

from pathlib import Path

#: In a checkout a link to `examples/`; in an installed package the files themselves.
EXAMPLES = Path(__file__).resolve().parent / "examples"
