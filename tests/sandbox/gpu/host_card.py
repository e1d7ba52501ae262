"""A card that is none: a driver library on host memory (`host_driver.cpp`) and an `nvidia-smi` that says what
a test wants. What is replayed on it says nothing of a GPU; how the replaying process is started, asked,
judged and ended is the real thing."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.gpu import devices
from sandbox.gpu.lease import heal
from tests.conftest import missing

HERE = Path(__file__).parent
CUBIN = b"host kernels"

_HEALTHY = """<nvidia_smi_log><gpu id="0"><uuid>{uuid}</uuid>{recovery}<ecc_errors><volatile>
<sram_uncorrectable_parity>0</sram_uncorrectable_parity><dram_correctable>7</dram_correctable>
<dram_uncorrectable>{uncorrectable}</dram_uncorrectable></volatile></ecc_errors>
<remapped_rows><remapped_row_failure>No</remapped_row_failure></remapped_rows>
<clocks_event_reasons><clocks_event_reason_gpu_idle>Active</clocks_event_reason_gpu_idle>
<clocks_event_reason_sw_thermal_slowdown>{hot}</clocks_event_reason_sw_thermal_slowdown>
</clocks_event_reasons></gpu></nvidia_smi_log>"""


def health(uuid: str, *, action: str = "None", uncorrectable: int = 0, hot: str = "Not Active") -> str:
    recovery = f"<gpu_recovery_action>{action}</gpu_recovery_action>"
    return _HEALTHY.format(uuid=uuid, recovery=recovery, uncorrectable=uncorrectable, hot=hot)


class HostCard:
    """What a test holds in its hands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.uuid = f"GPU-{uuid.uuid4()}"
        self._health = folder / "health.xml"
        self.say(health(self.uuid))
        tool = folder / "nvidia-smi"
        listed = f"0, {self.uuid}, Host Card, 9.0, 580.0, Default, Enabled, 256"
        tool.write_text(
            f'#!/bin/sh\ncase "$1" in --query-gpu*) echo "{listed}" ;; *) cat {self._health} ;; esac\n'
        )
        tool.chmod(0o755)

    def say(self, xml: str) -> None:
        self._health.write_text(xml)

    def forget(self) -> None:
        """Removes what it left in /dev/shm."""
        heal(self.uuid)
        (Path("/dev/shm") / f"kernelwright-{self.uuid}.lock").unlink(missing_ok=True)


@pytest.fixture(scope="session")
def host_driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("driver")
    folder.chmod(0o755)  # the jail reads it as another user
    source, library = HERE / "host_driver.cpp", folder / "libcuda.so.1"
    command = ["g++", "-std=c++17", "-O1", "-shared", "-fPIC", str(source), "-o", str(library)]
    subprocess.run(command, check=True)
    return folder


@pytest.fixture
def host_card(
    jail: None, host_driver: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[HostCard]:
    try:
        devices.require_bindings()
    except devices.NoDevice as problem:
        missing("cuda-bindings", f"{problem}: {problem.how}")
    card = HostCard(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(host_driver))
    yield card
    card.forget()
