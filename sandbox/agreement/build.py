"""The kernels of the suite through nvcc: a plain executable, and the PTX and machine code that are in it.

They are this project's own, so nvcc runs without the jail. Two builds: "ordinary" with nvcc's own flags, and
"exact" with -fmad=false, so that a multiplication and an addition stay two operations.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sandbox.home import cache, store
from sandbox.toolchain import find_toolkit
from sandbox.toolchain.resources import kernels
from sandbox.types import CompiledKernel

KERNELS = Path(__file__).resolve().parent / "kernels"
THEMES = ("access", "shared", "control", "atomics", "arithmetic", "half", "tensor", "winners")
Flags = Literal["ordinary", "exact"]
FLAGS: dict[Flags, tuple[str, ...]] = {"ordinary": (), "exact": ("-fmad=false",)}
_COMMON = ("-std=c++17", "-O3", "-lineinfo", "-Xptxas=-v", "--compress-mode=none")
_NAME = "agreement"
_KERNEL = re.compile(r"__global__ void (?:__launch_bounds__\([^)]*\) )?(\w+)\(")
_MACRO = re.compile(r"^(?:BANKS|WINNER|WINNER_SHARED)\((\w+), ", re.M)


@dataclass(frozen=True)
class Built:
    flags: Flags
    ptx: str
    cubin: bytes
    executable: Path
    resources: dict[str, CompiledKernel]  # by kernel: what ptxas said of it


def kernel_names(themes: tuple[str, ...] = THEMES) -> list[str]:
    """Every kernel of the sources."""
    texts = [(KERNELS / f"{theme}.cu").read_text() for theme in themes]
    return [
        name
        for text in texts
        for name in [*_KERNEL.findall(text), *_MACRO.findall(text)]
        if name != "name"  # of a macro that defines kernels
    ]


def source(themes: tuple[str, ...] = THEMES) -> str:
    """The program as one text: the kernels, the table of their names, the runner."""
    table = ", ".join(
        f'{{"{name}", reinterpret_cast<const void *>({name})}}' for name in kernel_names(themes)
    )
    includes = [f'#include "{theme}.cu"' for theme in themes]
    return "\n".join([*includes, f"#define KERNELS {table}", '#include "runner.cu"', ""])


def build(flags: Flags, target: str) -> Built:
    """Kept on disk by content. Raises ToolchainMissing; RuntimeError with nvcc's words."""
    toolkit = find_toolkit()
    digest = hashlib.sha256(
        repr((toolkit.version, str(toolkit.nvcc), target, _COMMON, FLAGS[flags])).encode()
    )
    for file in sorted(KERNELS.glob("*.cu")):
        digest.update(file.read_bytes())
    digest.update(source().encode())
    entry = cache("agreement") / digest.hexdigest()[:40]
    if not (entry / _NAME).exists():
        store(entry, lambda folder: _nvcc(str(toolkit.nvcc), target, FLAGS[flags], folder))
    said = kernels((entry / "log").read_text(), {})
    return Built(
        flags=flags,
        ptx=(entry / f"{_NAME}.ptx").read_text(),
        cubin=(entry / f"{_NAME}.{target}.cubin").read_bytes(),
        executable=entry / _NAME,
        resources={kernel.symbol: kernel for kernel in said},
    )


def _nvcc(nvcc: str, target: str, flags: tuple[str, ...], folder: Path) -> None:
    main = folder / f"{_NAME}.cu"
    main.write_text(source())
    keep = folder / "keep"
    keep.mkdir()
    command = [nvcc, *_COMMON, *flags, f"-arch={target}", f"-I{KERNELS}", "--keep", f"--keep-dir={keep}"]
    finished = subprocess.run(
        [*command, str(main), "-o", str(folder / _NAME)], capture_output=True, text=True
    )
    if finished.returncode != 0:
        raise RuntimeError(f"nvcc refuses the suite's kernels: {finished.stderr[-2000:]}")
    (folder / "log").write_text(finished.stdout + finished.stderr)
    for product in (f"{_NAME}.ptx", f"{_NAME}.{target}.cubin"):
        (keep / product).rename(folder / product)
    for file in keep.iterdir():
        file.unlink()
    keep.rmdir()
