"""The gallery: the examples and the recorded runs that ship with Kernelwright, read from `examples/`."""
