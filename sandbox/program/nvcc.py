"""What an nvcc command line must look like for its product to run on our runtime.

The runtime is linked as a shared library, the PTX stays readable in the executable, and the code is for the
one architecture that is emulated. Everything else of a command line is passed on as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

#: Library options of CUDA libraries that are not offered -> how people call them.
LIBRARIES = {
    "cublas": "cuBLAS",
    "cublasLt": "cuBLASLt",
    "cublas_static": "cuBLAS",
    "cublasLt_static": "cuBLASLt",
    "cudnn": "cuDNN",
    "cufft": "cuFFT",
    "cufft_static": "cuFFT",
    "cufftw": "cuFFT",
    "cupti": "CUPTI",
    "curand": "cuRAND's host calls",
    "curand_static": "cuRAND's host calls",
    "cusolver": "cuSOLVER",
    "cusolver_static": "cuSOLVER",
    "cusolverMg": "cuSOLVER",
    "cusparse": "cuSPARSE",
    "cusparse_static": "cuSPARSE",
    "cuda": "the driver API (cu...)",
    "nccl": "NCCL",
    "nvidia-ml": "NVML",
    "nvjpeg": "nvJPEG",
    "nvrtc": "NVRTC",
    "nvToolsExt": "NVTX",
}
#: Beginning of a function's name -> the library that has it; the first match counts.
_FUNCTIONS = (
    ("cublasLt", "cublasLt"),
    ("cublas", "cublas"),
    ("cudnn", "cudnn"),
    ("cufft", "cufft"),
    ("cupti", "cupti"),
    ("curand", "curand"),
    ("cusolver", "cusolver"),
    ("cusparse", "cusparse"),
    ("nccl", "nccl"),
    ("nvjpeg", "nvjpeg"),
    ("nvrtc", "nvrtc"),
    ("nvtx", "nvToolsExt"),
    ("nvml", "nvidia-ml"),
)
_UNDEFINED = re.compile(r"undefined reference to [`'](\w+)'")
_DRIVER = re.compile(r"cu[A-Z]\w+")

# Options that say what is compiled for; with a value of their own, or behind "=".
_ARCHITECTURE = ("-arch", "--gpu-architecture", "-code", "--gpu-code", "-gencode", "--generate-code")
_REPLACED = (*_ARCHITECTURE, "-cudart", "--cudart", "-compress-mode", "--compress-mode")
#: Options whose value is for another tool, whatever it looks like.
_FORWARDED = (
    *("-Xcompiler", "--compiler-options", "-Xlinker", "--linker-options", "-Xptxas", "--ptxas-options"),
    *("-Xnvlink", "--nvlink-options", "-Xcudafe", "--cudafe-options", "-Xarchive", "--archive-options"),
    *("-ccbin", "--compiler-bindir", "-o", "--output-file", "-I", "-D", "-L", "-include", "-isystem"),
)
_COMPRESSION = ("-Xfatbin", "--fatbin-options")


@dataclass(frozen=True)
class CommandLine:
    arguments: list[str]  # without the name of the compiler
    left_out: list[str]  # options of libraries that are not offered: "-lcublas"


def adapt(arguments: Sequence[str], *, target: str, runtime: Path) -> CommandLine:
    """The command line that makes the same product for `target`, on the runtime library `runtime`."""
    kept: list[str] = []
    left_out: list[str] = []
    for option, value in _pairs(arguments):
        if option in _REPLACED or (option in _COMPRESSION and value and "compress" in value):
            continue
        if option == "-l" and value in LIBRARIES:
            left_out.append(f"-l{value}")
            continue
        if option == "-l" and value == "cudart_static":
            continue
        kept += _words(option, value)
    added = [f"-arch={_specific(arguments, target)}", "-cudart=shared", "--compress-mode=none"]
    if not {"-G", "--device-debug", "-lineinfo", "--generate-line-info"} & set(kept):
        added.append("-lineinfo")
    added += [f"-L{runtime.parent}", f"-Xlinker=-rpath={runtime.parent}"]
    return CommandLine([*added, *kept], left_out)


def explain(log: str, left_out: Sequence[str]) -> list[str]:
    """A sentence for every CUDA library whose functions the linker did not find."""
    missing: dict[str, str] = {}
    for name in _UNDEFINED.findall(log):
        library = next((library for prefix, library in _FUNCTIONS if name.startswith(prefix)), None)
        if library is None and _DRIVER.fullmatch(name):
            library = "cuda"
        if library is not None:
            missing.setdefault(library, name)
    return [
        f"unsupported: the program calls {name} of {LIBRARIES[library]} (-l{library}), "
        "which Kernelwright does not offer"
        for library, name in missing.items()
    ]


def _specific(arguments: Sequence[str], target: str) -> str:
    """sm_90a where the command line asks for what only sm_90 has and the target is sm_90."""
    asked = re.findall(r"(?:sm|compute)_(\d+[af])\b", " ".join(arguments))
    return next((f"sm_{one}" for one in asked if f"sm_{one[:-1]}" == target), target)


def _pairs(arguments: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Options with their values, whichever way they are joined; what is no option has no value."""
    waiting = iter(arguments)
    for word in waiting:
        name, equals, value = word.partition("=")
        if word.startswith("-l") and len(word) > 2 and not word.startswith("-lineinfo"):
            yield "-l", word[2:]
        elif word in ("-l", "--library"):
            yield "-l", next(waiting, None)
        elif equals and name in (*_REPLACED, *_COMPRESSION, "--library"):
            yield ("-l" if name == "--library" else name), value
        elif word in (*_REPLACED, *_FORWARDED, *_COMPRESSION):
            yield word, next(waiting, None)
        else:
            yield word, None


def _words(option: str, value: str | None) -> list[str]:
    if value is None:
        return [option]
    return [f"-l{value}"] if option == "-l" else [option, value]
