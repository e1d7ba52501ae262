"""Test programs for this machine: compiled by g++ and run in a jail, bytes in, bytes out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sandbox import jail, toolchain
from sandbox.cancellation import Cancellation
from sandbox.limits import EMULATE

# Signed integers wrap and no product is fused with a sum: what nvcc does under -fmad=false.
_FLAGS = ("-O1", "-fwrapv", "-ffp-contract=off", "-fno-strict-aliasing", "-w")


def run_on_the_host(source: str, given: bytes) -> bytes:
    """What the C++ program writes when it is given these bytes."""
    built = toolchain.compile_host(
        {"host.cpp": source}, output="executable", language="c++", flags=_FLAGS, cancel=Cancellation()
    )
    assert built.path is not None, built.log
    finished = jail.run(
        ["/program"],
        binds=[jail.Bind(built.path, Path("/program"))],
        limits=replace(EMULATE, output_bytes=16 << 20),
        cancel=Cancellation(),
        stdin=given,
    )
    assert finished.ok, finished.stderr
    return finished.stdout
