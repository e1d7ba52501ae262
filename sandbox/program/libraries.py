"""CUDA's libraries that programs may call: ours by name, and what they compute with.

Each is a shared library of our own (`sandbox/cudalibs`) with the name and the version that programs are
linked to. cuBLAS computes with the OpenBLAS that NumPy's wheel brings along, cuRAND with NVIDIA's own
library, whose generators need no GPU; cuFFT needs nothing. NVIDIA's headers are used where they are; for
cuBLAS and cuFFT there are small ones of ours.
"""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sandbox import native
from sandbox.errors import TaskProblem, ToolchainMissing
from sandbox.toolchain import find_toolkit
from sandbox.types import Problem

HEADERS = Path(__file__).resolve().parents[1] / "cudalibs" / "include"
_CUDA_PACKAGES = "nvidia"  # NVIDIA's wheels put everything below nvidia/cu13


@dataclass(frozen=True)
class Library:
    name: str  # behind -l; also the native target's
    title: str
    options: tuple[str, ...]  # other names behind -l
    variable: str = ""  # of the environment, where the library looks for what it computes with
    find: Callable[[], Path | None] = lambda: None
    needs: str = ""  # what that is, and how to get it

    @property
    def missing(self) -> str:
        """Why it cannot be used here; empty where it can."""
        return self.needs if self.variable and self.find() is None else ""


@functools.cache
def openblas() -> Path | None:
    """The OpenBLAS of NumPy's wheel, or of the package scipy-openblas64; both have the same names in it."""
    for package, folder in (("numpy", "../numpy.libs"), ("scipy_openblas64", "lib")):
        if (root := _package(package)) is not None:
            found = sorted((root / folder).resolve().glob("libscipy_openblas64_*.so"))
            if found:
                return found[0]
    return None


@functools.cache
def curand() -> Path | None:
    """NVIDIA's libcurand, of the toolkit or of its wheel."""
    return next((file for root in _cuda_folders() for file in _shared(root, "libcurand.so.10")), None)


OFFERED = {
    library.name: library
    for library in (
        Library(
            "cublas",
            "cuBLAS",
            ("cublas_static",),
            "KERNELWRIGHT_BLAS",
            openblas,
            "cuBLAS computes with OpenBLAS, which this NumPy does not have: pip install scipy-openblas64",
        ),
        Library("cufft", "cuFFT", ("cufft_static", "cufft_static_nocallback")),
        Library(
            "curand",
            "cuRAND",
            ("curand_static",),
            "KERNELWRIGHT_CURAND",
            curand,
            "cuRAND's numbers and headers are NVIDIA's own: pip install 'nvidia-curand==10.4.0.*'",
        ),
    )
}


def named(option: str) -> Library | None:
    """The library that `-l<option>` means."""
    return next((one for one in OFFERED.values() if option in (one.name, *one.options)), None)


def headers() -> list[Path]:
    """Folders of headers that the toolkit may lack. What it has itself is found first."""
    own = find_toolkit().root / "include"
    folders = [root / "include" for root in _cuda_folders()]
    return [*(folder for folder in folders if folder != own and (folder / "curand.h").is_file()), HEADERS]


def environment(executable: Path) -> tuple[list[Path], dict[str, str]]:
    """Folders of the libraries that `executable` is linked to, and the variables that these look at.

    Raises TaskProblem when one cannot work here; what native.path raises.
    """
    folders, variables = [], {}
    for library in _linked(executable):
        if library.missing:
            raise TaskProblem(Problem(kind="missing_library", message=library.missing))
        folders.append(native.path(library.name).parent)
        if library.variable:
            variables[library.variable] = str(library.find())
    return folders, variables


def _linked(executable: Path) -> Iterator[Library]:
    content = executable.read_bytes()
    for library in OFFERED.values():
        if re.search(rb"\0lib%s\.so\.\d+\0" % library.name.encode(), content):
            yield library


def _package(name: str) -> Path | None:
    """The folder of a package, without loading it."""
    spec = importlib.util.find_spec(name)
    return None if spec is None or not spec.origin else Path(spec.origin).parent


def _cuda_folders() -> list[Path]:
    """The toolkit, and where NVIDIA's wheels are."""
    spec = importlib.util.find_spec(_CUDA_PACKAGES)
    wheels = [Path(root) / "cu13" for root in (spec.submodule_search_locations or ())] if spec else []
    try:
        return [find_toolkit().root, *wheels]
    except ToolchainMissing:
        return wheels


def _shared(root: Path, name: str) -> list[Path]:
    return [root / folder / name for folder in ("lib64", "lib") if (root / folder / name).is_file()]
