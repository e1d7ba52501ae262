"""What this machine can do of the judge's work, found out by trying, and how to get what is missing."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from dataclasses import dataclass

from sandbox import jail, native, toolchain
from sandbox.errors import ToolchainMissing
from sandbox.gpu.client import usable
from sandbox.gpu.devices import NoDevice, devices, sickness
from sandbox.gpu.lease import heal, quarantined
from sandbox.program.libraries import OFFERED


@dataclass(frozen=True)
class Finding:
    name: str  # stable slug
    ok: bool
    detail: str  # one line: what was found, or what is wrong
    how: str  # what to do; empty when there is nothing to do
    needed: bool = True  # False: Kernelwright works without it


def examine() -> list[Finding]:
    """Everything, in the order in which the judge needs it. The first time builds C++."""
    found = [_nvcc(), _host_compiler(), _jail(), _native()]
    return [*found, _programs(found), _libraries(), _torch(), _gpu()]


def _nvcc() -> Finding:
    try:
        toolkit = toolchain.find_toolkit()
    except ToolchainMissing as missing:
        what, _, how = str(missing).partition(": ")
        return Finding("nvcc", False, what, how)
    return Finding("nvcc", True, f"{toolkit.version}, {toolkit.nvcc}", "")


def _host_compiler() -> Finding:
    try:
        compiler = toolchain.find_host_compiler()
    except ToolchainMissing as missing:
        what, _, how = str(missing).partition(": ")
        return Finding("host_compiler", False, what, how)
    return Finding("host_compiler", True, compiler.version, "")


def _jail() -> Finding:
    status = jail.status()
    return Finding("jail", status.available, status.reason, status.how)


def _native() -> Finding:
    try:
        for name in native.TARGETS:
            native.path(name)
    except ToolchainMissing as missing:
        what, _, how = str(missing).partition(": ")
        return Finding("native", False, what, how)
    except native.NativeBuildFailed as failed:
        last = str(failed).strip().splitlines()[-1]
        return Finding("native", False, f"Kernelwright's own C++ does not compile: {last}", "report this")
    return Finding("native", True, f"built: {', '.join(native.TARGETS)}", "")


def _programs(needs: Sequence[Finding]) -> Finding:
    """`kernelwright exec` needs all that judging needs, and nothing more."""
    missing = [finding.name for finding in needs if not finding.ok]
    if missing:
        return Finding("programs", False, f"kernelwright exec needs {', '.join(missing)}", "get these first")
    return Finding("programs", True, "kernelwright exec runs whole CUDA programs here", "")


def _libraries() -> Finding:
    """What cuBLAS and cuRAND compute with in `kernelwright exec`; programs without them need neither."""
    missing = [library for library in OFFERED.values() if library.missing]
    if missing:
        what = f"not for programs that call {', '.join(library.title for library in missing)}"
        how = "; ".join(library.missing for library in missing)
        return Finding("libraries", False, what, how, needed=False)
    detail = ", ".join(f"{library.title}: {library.find() or 'our own'}" for library in OFFERED.values())
    return Finding("libraries", True, detail, "", needed=False)


def _torch() -> Finding:
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        how = "pip install 'kernelwright[torch]'"
        return Finding(
            "torch", False, "not installed: PyTorch modules cannot be translated", how, needed=False
        )
    return Finding("torch", True, version, "", needed=False)


def _gpu() -> Finding:
    without = "without a card, candidates run in the emulator and are not timed"
    try:
        found = devices()
    except NoDevice as missing:
        return Finding("gpu", False, f"{missing}; {without}", missing.how, needed=False)
    listed = "; ".join(
        f"{device}{f', OUT OF SERVICE: {reason}' if (reason := quarantined(device.uuid)) else ''}"
        for device in found
    )
    try:
        usable()
    except NoDevice as missing:
        return Finding("gpu", False, f"{listed}; {missing}; {without}", missing.how, needed=False)
    return Finding("gpu", True, listed, "", needed=False)


def heal_cards() -> list[str]:
    """Puts every card back into service that its driver calls well. One line each; raises NoDevice."""
    said = []
    for device in devices():
        reason = quarantined(device.uuid)
        if not reason:
            continue
        still = sickness(device.uuid)
        if still:
            said.append(f"{device.name} {device.uuid} stays out of service: {still}")
        else:
            heal(device.uuid)
            said.append(f"{device.name} {device.uuid} is in service again; it was not, because {reason}")
    return said or ["no card is out of service"]
