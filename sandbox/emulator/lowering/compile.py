"""The compiler process: `python -m sandbox.emulator.lowering.compile [--mode plain] OUTPUT.so INPUT.ptx...`.

`--kernel=INDEX:NAME`, once or several times: only these kernels (of the input of that index) and the
functions that they can call. Else all; with `--no-kernel`, none.

It runs in the jail, since PTX of a candidate is hostile input. Exit code 0: done. 3: not supported, with one
JSON line {"message", "line"} on standard output.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

UNSUPPORTED = 3


def cpu_features() -> str:
    """LLVM's names of the features of the CPU that code is written for."""
    import llvmlite.binding as llvm

    return os.environ.get("KERNELWRIGHT_LLVM_FEATURES") or str(llvm.get_host_cpu_features().flatten())


def vector_bits(features: str) -> int:
    """Width of the vector registers that the lowering writes code for (access.py)."""
    wanted = {"+avx512f", "+avx512bw", "+avx512dq", "+avx512vl"}
    return 512 if wanted <= set(features.split(",")) else 0


def emit_object(ir: str) -> bytes:
    """LLVM IR text to an ELF object for this CPU."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(ir)
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=cpu_features(),
        opt=int(os.environ.get("KERNELWRIGHT_LLVM_OPT", "1")),
        reloc="pic",
        codemodel="small",
    )
    data: bytes = machine.emit_object(module)
    return data


def _kernel(text: str) -> tuple[int, str]:
    index, _, name = text.partition(":")
    return int(index), name


def main(arguments: list[str]) -> int:
    from sandbox.emulator.lowering.module import lower_modules
    from sandbox.ptx.model import PtxError

    parser = argparse.ArgumentParser(prog="compile")
    parser.add_argument("--mode", choices=("checked", "plain"), default="checked")
    parser.add_argument("output", type=Path)
    parser.add_argument("inputs", type=Path, nargs="*")
    parser.add_argument("--kernel", action="append", type=_kernel, dest="kernels")
    parser.add_argument("--no-kernel", action="store_const", const=[], dest="kernels")
    given = parser.parse_args(arguments)
    output = given.output
    texts = [name.read_text(encoding="utf-8", errors="replace") for name in given.inputs]
    bits = vector_bits(cpu_features())
    try:
        lowered = lower_modules(texts, given.kernels, mode=given.mode, vector_bits=bits)
    except PtxError as error:
        print(json.dumps({"message": error.message, "line": error.line}))
        return UNSUPPORTED
    object_file = output.with_suffix(".o")
    object_file.write_bytes(emit_object(lowered.ir))
    subprocess.run(["ld", "-shared", "-z", "noexecstack", "-o", str(output), str(object_file)], check=True)
    object_file.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
