"""What an nvcc command line must look like for its product to run on our runtime.

The runtime is linked as a shared library, as are the libraries that are offered; the PTX stays readable in
the executable, and the code is for the one architecture that is emulated. Everything else of a command line
is passed on as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox.program.libraries import OFFERED, Library, named

#: Library options of CUDA libraries that are not offered -> how people call them.
LIBRARIES = {
    "cublasLt": "cuBLASLt",
    "cublasLt_static": "cuBLASLt",
    "cudnn": "cuDNN",
    "cufftw": "cuFFTW",
    "cupti": "CUPTI",
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
    ("cufftw", "cufftw"),
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
_NO_HEADER = re.compile(r"fatal error: (\w+)\.h: No such file")
_DRIVER = re.compile(r"cu[A-Z]\w+")

#: Libraries that only static ones of NVIDIA's need.
_NEEDLESS = ("cudart_static", "culibos")
_MOST_NAMES = 5

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
    left_out: list[str]  # options of libraries that are not offered: "-lcudnn"
    linked: list[str]  # names of libraries that are: "cublas"


def adapt(
    arguments: Sequence[str],
    *,
    target: str,
    product: Callable[[str], Path],
    headers: Sequence[Path] = (),
) -> CommandLine:
    """The command line that makes the same product for `target`, on our runtime and libraries.

    `product`: the file of the native target "cudart", "cublas", ... `headers`: folders where headers are
    that the toolkit lacks.
    """
    kept: list[str] = []
    left_out: list[str] = []
    linked: list[str] = []
    for option, value in _pairs(arguments):
        if option in _REPLACED or (option in _COMPRESSION and value and "compress" in value):
            continue
        if option == "-l" and value in LIBRARIES:
            left_out.append(f"-l{value}")
            continue
        if option == "-l" and value in _NEEDLESS:
            continue
        if option == "-l" and value and (library := named(value)) is not None:
            if library.missing:
                left_out.append(f"-l{value}")
                continue
            value = library.name
            linked.append(value)
        kept += _words(option, value)
    added = [f"-arch={_specific(arguments, target)}", "-cudart=shared", "--compress-mode=none"]
    if not {"-G", "--device-debug", "-lineinfo", "--generate-line-info"} & set(kept):
        added.append("-lineinfo")
    for name in ("cudart", *dict.fromkeys(linked)):
        folder = product(name).parent
        added += [f"-L{folder}", f"-Xlinker=-rpath={folder}"]
    for folder in headers:
        added += ["-isystem", str(folder)]
    return CommandLine([*added, *kept], left_out, linked)


def explain(log: str, line: CommandLine) -> list[str]:
    """A sentence for every CUDA library whose functions the linker did not find, or without its header."""
    missing: dict[str, list[str]] = {}
    for name in _UNDEFINED.findall(log):
        library = _library_of(name)
        if library is None and _DRIVER.fullmatch(name):
            library = "cuda"
        if library is not None:
            missing.setdefault(library, []).append(name)
    sentences = [_why(library, list(dict.fromkeys(names)), line) for library, names in missing.items()]
    for header in dict.fromkeys(_NO_HEADER.findall(log)):
        library = _library_of(header)
        if library in LIBRARIES:
            sentences.append(
                f"unsupported: the program includes {header}.h of {LIBRARIES[library]}, "
                "which Kernelwright does not offer"
            )
        elif library in OFFERED:
            sentences.append(f"the program includes {header}.h: {_how(OFFERED[library])}")
    return sentences


def _library_of(name: str) -> str | None:
    return next((library for prefix, library in _FUNCTIONS if name.startswith(prefix)), None)


def _why(library: str, names: list[str], line: CommandLine) -> str:
    if library not in OFFERED:
        return (
            f"unsupported: the program calls {names[0]} of {LIBRARIES[library]} (-l{library}), "
            "which Kernelwright does not offer"
        )
    offered = OFFERED[library]
    if offered.missing:
        return f"the program calls {names[0]} of {offered.title}: {offered.missing}"
    if library not in line.linked:
        return f"the program calls {names[0]} of {offered.title}: link it with -l{library}"
    shown = ", ".join(names[:_MOST_NAMES]) + (", ..." if len(names) > _MOST_NAMES else "")
    return f"unsupported: the program calls {shown} of {offered.title}, which Kernelwright offers without it"


def _how(library: Library) -> str:
    return library.missing or f"Kernelwright has no such header of {library.title}"


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
