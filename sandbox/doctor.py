"""What this machine can do of the judge's work, found out by trying, and how to get what is missing."""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sandbox import jail, native, toolchain
from sandbox.errors import ToolchainMissing


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
    return [*found, _programs(found), _torch(), _gpu()]


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
    without = "without one, candidates run in the emulator and are not timed"
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return Finding("gpu", False, f"no NVIDIA driver; {without}", "", needed=False)
    query = [tool, "--query-gpu=name,compute_cap,driver_version", "--format=csv,noheader"]
    names = _output(lambda: subprocess.run(query, capture_output=True, text=True, timeout=20))
    if not names:
        return Finding("gpu", False, f"nvidia-smi lists no GPU; {without}", "", needed=False)
    return Finding("gpu", True, "; ".join(names.splitlines()), "", needed=False)


def _output(run: Callable[[], subprocess.CompletedProcess[str]]) -> str:
    try:
        finished = run()
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return finished.stdout.strip() if finished.returncode == 0 else ""
