"""Finding a CUDA toolkit and a host compiler."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sandbox.errors import ToolchainMissing

_PYPI = (
    "pip install 'nvidia-cuda-nvcc==13.0.*' 'nvidia-nvvm==13.0.*' 'nvidia-cuda-crt==13.0.*' "
    "'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-cccl==13.0.*'"
)


#: Set for an nvcc that is asked where it lives. A wrapper that would itself look for nvcc ends at once.
EXAMINED = "KERNELWRIGHT_EXAMINES_NVCC"


@dataclass(frozen=True)
class Toolkit:
    """A CUDA toolkit whose nvcc answers."""

    nvcc: Path  # the real executable, wrappers resolved
    root: Path  # the folder that holds everything nvcc needs
    version: str  # "13.0.88"


@dataclass(frozen=True)
class HostCompiler:
    cc: Path
    cxx: Path
    version: str  # first line of `gcc --version`


@functools.cache
def find_toolkit() -> Toolkit:
    """KERNELWRIGHT_NVCC, else PATH, CUDA_HOME, /usr/local/cuda, the PyPI packages of this interpreter.

    Raises ToolchainMissing, which says how to get one.
    """
    tried: list[str] = []
    for candidate in _candidates():
        if (toolkit := _examine(candidate)) is not None:
            return toolkit
        tried.append(str(candidate))
    found = f" ({', '.join(tried)} does not work)" if tried else ""
    raise ToolchainMissing(f"no nvcc found{found}: set KERNELWRIGHT_NVCC, install CUDA 13, or {_PYPI}")


def _candidates() -> Iterator[Path]:
    configured = os.environ.get("KERNELWRIGHT_NVCC")
    if configured:
        yield Path(configured)
        return
    for folder in os.get_exec_path():
        if (on_path := shutil.which("nvcc", path=folder)) is not None:
            yield Path(on_path)
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    packages = [
        Path(p) / "nvidia" / "cu13" for p in sys.path if p.endswith(("site-packages", "dist-packages"))
    ]
    for home in [*(Path(h) for h in homes if h), *packages]:
        if (home / "bin" / "nvcc").is_file():
            yield home / "bin" / "nvcc"


def _examine(nvcc: Path) -> Toolkit | None:
    """Asks nvcc itself where it lives: `nvcc` may be a script that starts the real one.

    `kernelwright nvcc`, which a Makefile may know by this name too, declines: it is looking for nvcc itself.
    """
    ask = partial(
        subprocess.run, capture_output=True, text=True, timeout=20, env={**os.environ, EXAMINED: "1"}
    )
    try:
        plan = ask([nvcc, "--dryrun", "-c", "nothing.cu"]).stderr
        said = ask([nvcc, "--version"]).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    here, top = re.search(r"^#\$ _HERE_=(.*)$", plan, re.M), re.search(r"^#\$ TOP=(.*)$", plan, re.M)
    version = re.search(r"\bV(\d+\.\d+\.\d+)", said)
    if here is None or top is None or version is None:
        return None
    real = (Path(here[1]) / "nvcc").resolve()
    return Toolkit(nvcc=real, root=Path(top[1]).resolve(), version=version[1]) if real.is_file() else None


@functools.cache
def find_host_compiler() -> HostCompiler:
    """gcc and g++ under /usr, since nothing else is in the jail. Raises ToolchainMissing."""
    cc, cxx = (shutil.which(name, path="/usr/bin:/usr/local/bin") for name in ("gcc", "g++"))
    if cc is None or cxx is None:
        raise ToolchainMissing("no gcc and g++ under /usr: install them (Debian, Ubuntu: apt install g++)")
    said = subprocess.run([cxx, "--version"], capture_output=True, text=True, check=True).stdout
    return HostCompiler(cc=Path(cc), cxx=Path(cxx), version=said.splitlines()[0])
