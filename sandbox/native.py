"""Building the project's own C++: the emulator's executable and the recording CUDA runtime.

Everything is keyed by a hash of the sources, the flags, the compiler and the CPU, so a stale or foreign build
is never used. `python -m sandbox.native` builds all targets. A checkout has its builds beside the sources; an
installed package, whose folder may be anybody's, in the data folder's cache.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from sandbox.errors import ToolchainMissing
from sandbox.home import cache

ROOT = Path(__file__).resolve().parent
_COMMON = ("-std=c++20", "-Wall", "-Wextra", "-Wno-restrict", "-g1", "-fPIC", "-pthread")
# Lowered kernels call helpers of the engine by name; everything else may bind inside its own library.
_ENGINE_FLAGS = (
    *("-O3", "-march=native", "-fno-math-errno", "-ffp-contract=off"),
    *("-fno-plt", "-fno-semantic-interposition"),
)


@dataclass(frozen=True)
class Folder:
    """Every `*.cpp` in `name` (below sandbox/) is a source; `*.h` of it and of `includes` are its headers."""

    name: str
    flags: tuple[str, ...]
    includes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Target:
    """One thing to build from folders of sources."""

    name: str
    folders: tuple[Folder, ...]
    product: str  # file name
    link_flags: tuple[str, ...]
    version_script: str = ""  # below sandbox/
    links: tuple[str, ...] = ()  # other names for the product in the same folder


_ENGINE = Folder("emulator/runtime", _ENGINE_FLAGS)


def _cuda_library(name: str, version: int) -> Target:
    """One of CUDA's libraries. It finds the runtime in the program that is linked to both."""
    soname = f"lib{name}.so.{version}"
    flags = ("-O3", "-march=native", "-fvisibility=hidden", "-fcx-limited-range", "-Wno-psabi")
    return Target(
        name=name,
        folders=(Folder(f"cudalibs/{name}", flags, includes=("cudart", "emulator/runtime")),),
        product=soname,
        link_flags=("-shared", f"-Wl,-soname,{soname}", "-Wl,-Bsymbolic", "-pthread", "-ldl"),
        links=(f"lib{name}.so",),
    )


TARGETS = {
    target.name: target
    for target in (
        Target(
            name="emulate",
            folders=(_ENGINE, Folder("emulator/replay", ("-O2",), includes=("emulator/runtime",))),
            product="kw-emulate",
            link_flags=("-pthread", "-rdynamic", "-ldl"),
        ),
        Target(
            name="cudart",
            folders=(_ENGINE, Folder("cudart", ("-O2",), includes=("emulator/runtime",))),
            product="libcudart.so.13",
            link_flags=("-shared", "-Wl,-soname,libcudart.so.13", "-Wl,-Bsymbolic", "-pthread", "-ldl"),
            version_script="cudart/cudart.map",
            links=("libcudart.so",),
        ),
        Target(
            name="record",
            folders=(Folder("recorder/harness", ("-O2",)),),
            product="kw-record",
            link_flags=("-ldl",),
        ),
        _cuda_library("cublas", 13),
        _cuda_library("cufft", 12),
        _cuda_library("curand", 10),
    )
}


class NativeBuildFailed(Exception):
    """The project's own C++ does not compile here: Kernelwright's fault. The message is the compiler's."""


def path(name: str) -> Path:
    """The product of target `name`, built first where it is missing."""
    return build(name)


def _output() -> Path:
    checkout = (ROOT.parent / "pyproject.toml").is_file() and os.access(ROOT, os.W_OK)
    return ROOT / "_native" if checkout else cache("native")


@functools.cache
def build(name: str) -> Path:
    """Builds target `name` unless that very build exists; returns the absolute path of its product.

    Raises ToolchainMissing without a host compiler, NativeBuildFailed when the compiler refuses.
    """
    target = TARGETS[name]
    compiler = _compiler()
    objects = {
        source: (folder, _object_key(folder, source, compiler))
        for folder in target.folders
        for source in sorted((ROOT / folder.name).glob("*.cpp"))
    }
    if not objects:
        raise NativeBuildFailed(f"{target.name} has no C++ sources")
    key = _product_key(target, [key for _, key in objects.values()])
    product = _output() / f"{name}-{key}" / target.product
    if product.exists():
        return product
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        waiting = [
            pool.submit(_compile, folder, source, key, compiler) for source, (folder, key) in objects.items()
        ]
    compiled = [future.result() for future in waiting]
    return _link(target, compiled, product, compiler)


@functools.cache
def _compiler() -> str:
    compiler = shutil.which(os.environ.get("CXX", "g++")) or shutil.which("c++")
    if compiler is None:
        raise ToolchainMissing("no C++ compiler found: install g++ (Debian, Ubuntu: apt install g++)")
    return compiler


@functools.cache
def machine() -> str:
    """This compiler's and this CPU's identity: a build with -march=native belongs to one kind of CPU."""
    version = subprocess.run(
        [_compiler(), "--version"], capture_output=True, text=True, check=True
    ).stdout.splitlines()[0]
    return f"{version} {platform.machine()} {cpu_features()}"


@functools.cache
def cpu_features() -> str:
    """The CPU's feature flags as the kernel lists them; empty where it does not."""
    try:
        with open("/proc/cpuinfo") as info:
            return next((line.split(":")[1].strip() for line in info if line.startswith("flags")), "")
    except OSError:
        return ""


def _object_key(folder: Folder, source: Path, compiler: str) -> str:
    digest = hashlib.sha256(repr((compiler, machine(), _COMMON, folder)).encode())
    headers = [file for name in (folder.name, *folder.includes) for file in sorted((ROOT / name).glob("*.h"))]
    for file in [*headers, source]:
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:20]


def _product_key(target: Target, keys: list[str]) -> str:
    digest = hashlib.sha256(repr((keys, target.link_flags)).encode())
    if target.version_script:
        digest.update((ROOT / target.version_script).read_bytes())
    return digest.hexdigest()[:20]


def _compile(folder: Folder, source: Path, key: str, compiler: str) -> Path:
    product = _output() / "objects" / f"{folder.name.replace('/', '-')}-{source.stem}-{key}.o"
    if not product.exists():
        product.parent.mkdir(parents=True, exist_ok=True)
        includes = [f"-I{ROOT / name}" for name in folder.includes]
        _run_into(product, [compiler, *_COMMON, *folder.flags, *includes, "-c", str(source)])
    return product


def _link(target: Target, objects: list[Path], product: Path, compiler: str) -> Path:
    product.parent.mkdir(parents=True, exist_ok=True)
    flags = list(target.link_flags)
    if target.version_script:
        flags.append(f"-Wl,--version-script={ROOT / target.version_script}")
    _run_into(product, [compiler, *map(str, objects), *flags])
    for link in target.links:
        with TemporaryDirectory(dir=product.parent) as scratch:
            (Path(scratch) / link).symlink_to(product.name)
            os.replace(Path(scratch) / link, product.parent / link)
    return product


def _run_into(product: Path, command: list[str]) -> None:
    """Runs a compiler so that `product` appears whole or not at all, also with several builders at once."""
    with TemporaryDirectory(dir=product.parent) as scratch:
        half = Path(scratch) / product.name
        finished = subprocess.run([*command, "-o", str(half)], capture_output=True, text=True)
        if finished.returncode != 0:
            raise NativeBuildFailed(f"{' '.join(command)}\n{finished.stderr}")
        if finished.stderr:
            print(finished.stderr, file=sys.stderr)
        os.replace(half, product)


def main() -> int:
    failed = False
    for name in TARGETS:
        started = time.monotonic()
        try:
            product = build(name)
        except (NativeBuildFailed, ToolchainMissing) as problem:
            print(f"{name}: {problem}", file=sys.stderr)
            failed = True
        else:
            print(f"{name}: {product} ({time.monotonic() - started:.1f} s)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
