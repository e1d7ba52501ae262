"""Does the emulator agree with a card? Small kernels of the project's own, run on both and compared.

`kernelwright bench emulator-vs-card` is the door, `run` the order of things: `build` makes machine code and a
plain executable of `kernels/`, `replays` runs the `cases` in the emulator and through the GPU backend,
`profiler` runs the executable under Nsight Compute, `bounds` says what has to agree and how closely, `report`
prints it.
"""
