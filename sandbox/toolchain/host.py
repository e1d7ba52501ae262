"""The user's own C and C++ through gcc, in the jail."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sandbox import jail
from sandbox.cancellation import Cancellation
from sandbox.errors import Cancelled
from sandbox.home import cache, scratch, store
from sandbox.limits import COMPILE, MIB, Limits
from sandbox.toolchain.find import find_host_compiler

_WORK = Path("/build")
_MAX_OBJECT_BYTES = 128 * MIB


@dataclass(frozen=True)
class HostBuild:
    ok: bool
    log: str  # gcc's, paths reduced to the file names given
    path: Path | None  # the product, in the cache; to be bound into a jail, never loaded outside


def compile_host(
    sources: Mapping[str, str],
    *,
    output: Literal["object", "executable"],
    language: Literal["c", "c++"],
    flags: Sequence[str] = (),
    cancel: Cancellation,
    limits: Limits = COMPILE,
) -> HostBuild:
    """Compiles and links `sources` (file name -> text; headers may be among them) with gcc or g++.

    "object" is a shared object, "executable" a program. `flags` are the judge's own, never a user's. Good
    builds are kept on disk by content. Raises Cancelled, ToolchainMissing, JailUnavailable.
    """
    if any(not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name) for name in sources):
        raise ValueError(f"source names must be plain: {list(sources)}")
    compiler = find_host_compiler()
    program = str(compiler.cc if language == "c" else compiler.cxx)
    shape = ["-shared", "-fPIC"] if output == "object" else []
    units = [name for name in sources if not name.endswith((".h", ".hpp"))]
    # Libraries ("-lm") must follow the sources that need them.
    libraries = [flag for flag in flags if flag.startswith("-l")]
    others = [flag for flag in flags if not flag.startswith("-l")]
    command = [program, *shape, *others, "-o", "product", *units, *libraries]
    entry = cache("host") / _key(command, sources, compiler.version)
    product = entry / "product"
    if product.exists():
        return HostBuild(True, (entry / "log").read_text(), product)
    with scratch("host") as folder:
        for name, text in sources.items():
            (folder / name).write_text(text, errors="replace")
        finished = jail.run(
            command,
            binds=[jail.Bind(folder, _WORK, writable=True)],
            cwd=_WORK,
            limits=limits,
            cancel=cancel,
        )
        if finished.reason == "cancelled":
            raise Cancelled
        log = finished.stderr.decode(errors="replace").replace(f"{_WORK}/", "")
        if finished.reason != "exited":
            return HostBuild(
                False, f"{log}\nthe compiler was stopped: {_stopped(finished.reason, limits)}", None
            )
        if not finished.ok:
            return HostBuild(False, log, None)
        content = jail.read_result(folder / "product", _MAX_OBJECT_BYTES)
    store(entry, _filler(content, log))
    return HostBuild(True, log, product)


def _filler(content: bytes, log: str) -> Callable[[Path], None]:
    def fill(folder: Path) -> None:
        (folder / "log").write_text(log)
        (folder / "product").write_bytes(content)
        (folder / "product").chmod(0o755)

    return fill


def _key(command: Sequence[str], sources: Mapping[str, str], version: str) -> str:
    told = json.dumps([list(command), sorted(sources.items()), version])
    return hashlib.sha256(told.encode(errors="replace")).hexdigest()[:40]


def _stopped(reason: str, limits: Limits) -> str:
    return {
        "timeout": f"it did not end within {limits.wall_seconds:.0f} s",
        "memory": f"it needed more than {limits.memory_bytes >> 20} MiB of memory",
        "output": f"it wrote more than {limits.file_bytes >> 20} MiB",
    }[reason]
