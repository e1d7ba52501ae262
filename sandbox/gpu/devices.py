"""The NVIDIA cards of this machine, asked of `nvidia-smi`: no context and no driver library in this process.

A fault of a driver library would be a fault of whoever loaded it; a tool's is an exit code.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

_SECONDS = 30.0
_FIELDS = (
    "index",
    "uuid",
    "name",
    "compute_cap",
    "driver_version",
    "compute_mode",
    "ecc.mode.current",
    "memory.total",
)


@dataclass(frozen=True)
class Device:
    index: int
    uuid: str  # "GPU-...": what locks and quarantines are named by
    name: str
    compute_capability: tuple[int, int]
    driver: str
    compute_mode: str  # "Default", "Exclusive_Process", "Prohibited"
    ecc: str  # "Enabled", "Disabled", "[N/A]"
    memory_mib: int

    @property
    def arch(self) -> str:
        major, minor = self.compute_capability
        return f"sm_{major}{minor}"

    def runs(self, target: str) -> bool:
        """Machine code runs on later minor versions of its own major one; sm_90a on exactly its own."""
        digits = target.removeprefix("sm_")
        if not digits.isdigit():
            return digits[:-1] == self.arch.removeprefix("sm_")
        major, minor = divmod(int(digits), 10)
        return self.compute_capability[0] == major and self.compute_capability[1] >= minor

    def __str__(self) -> str:
        said = f"{self.name}, {self.uuid}, {self.arch}, {self.memory_mib:,} MiB, driver {self.driver}"
        return f"{said}, compute mode {self.compute_mode}, ECC {self.ecc}"


class NoDevice(Exception):
    """There is no card that could be used. The message says what is missing, `how` what to do."""

    def __init__(self, message: str, how: str = "") -> None:
        super().__init__(message)
        self.how = how


def devices() -> list[Device]:
    """Every card the driver knows. Raises NoDevice without a driver or a card."""
    said = _ask(f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits")
    found = parse_devices(said)
    if not found:
        raise NoDevice("the NVIDIA driver is there, but nvidia-smi lists no device")
    return found


def require_bindings() -> None:
    """Raises NoDevice where the replaying process could not be started."""
    try:
        found = importlib.util.find_spec("cuda.bindings")
    except ModuleNotFoundError:
        found = None
    if found is None:
        raise NoDevice("the Python package cuda-bindings is not installed", "pip install 'kernelwright[gpu]'")


def parse_devices(said: str) -> list[Device]:
    found = []
    for line in said.splitlines():
        words = [word.strip() for word in line.split(",")]
        if len(words) != len(_FIELDS) or not words[0].isdigit():
            continue
        index, uuid, name, capability, driver, mode, ecc, memory = words
        major, _, minor = capability.partition(".")
        if major.isdigit() and minor.isdigit():
            size = int(memory) if memory.isdigit() else 0
            compute = (int(major), int(minor))
            found.append(Device(int(index), uuid, name, compute, driver, mode, ecc, size))
    return found


def sickness(uuid: str) -> str:
    """Why a card must not be used any more, as its driver says it; empty when it is well."""
    try:
        return parse_sickness(_ask("-q", "-x", "-i", uuid), uuid)
    except NoDevice as problem:
        return str(problem)


def parse_sickness(said: str, uuid: str) -> str:
    try:
        root = ElementTree.fromstring(said)
    except ElementTree.ParseError:
        return "nvidia-smi describes it in a way that cannot be read"
    gpu = next((gpu for gpu in root.iter("gpu") if gpu.findtext("uuid") == uuid), None)
    if gpu is None:
        return "the driver does not list it any more"
    action = gpu.findtext("gpu_recovery_action", "None")
    if action not in ("None", "N/A"):
        return f"the driver asks for this: {action}"
    volatile = gpu.find("ecc_errors/volatile")
    for count in volatile if volatile is not None else ():
        if "uncorrectable" in count.tag and (count.text or "").strip().isdigit() and int(count.text or 0):
            return f"{count.text} errors of memory that ECC could not correct ({count.tag})"
    if gpu.findtext("remapped_rows/remapped_row_failure", "No") == "Yes":
        return "a row of its memory could not be replaced by a spare one"
    return ""


def clocks_slowed(uuid: str) -> list[str]:
    """Reasons for which the card runs below its clock right now, heat and hardware only."""
    try:
        root = ElementTree.fromstring(_ask("-q", "-x", "-i", uuid))
    except (NoDevice, ElementTree.ParseError):
        return []
    reasons = root.find("gpu/clocks_event_reasons")
    prefix = "clocks_event_reason_"
    return [
        reason.tag.removeprefix(prefix)
        for reason in (reasons if reasons is not None else ())
        if (reason.text or "").strip() == "Active" and ("thermal" in reason.tag or "hw_" in reason.tag)
    ]


def _tool() -> str:
    found = shutil.which("nvidia-smi")
    if found is None:
        raise NoDevice("no NVIDIA driver: there is no nvidia-smi", "install the driver of the card")
    return found


def _ask(*options: str) -> str:
    command: Sequence[str] = [_tool(), *options]
    try:
        finished = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoDevice(f"nvidia-smi does not answer: {error}", "the driver may hang: see dmesg") from error
    if finished.returncode != 0:
        lines = (finished.stdout + finished.stderr).strip().splitlines()
        raise NoDevice(f"nvidia-smi fails: {lines[-1] if lines else f'exit code {finished.returncode}'}")
    return finished.stdout
