"""The compiler process: `python -m sandbox.emulator.lowering.compile FILE`.

It loads all it needs, then reads its one request from standard input: JSON {"modules": [PTX, ...], "kernels":
[[INDEX, NAME], ...] or null for all, "mode": "checked" or "plain", "cpu": "native" or LLVM's name of one}.
Lowered are these kernels (of the module of that index) and the functions that they can call; the shared
object goes into the open file FILE.

It runs in the jail, since PTX of a candidate is hostile input. Exit code 0: done. 3: not supported, with one
JSON line {"message", "line"} on standard output.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

UNSUPPORTED = 3
# Characters of IR. A basic block of ten thousand accesses (a copy of a struct of 16 KB) takes LLVM half a
# minute to optimise; without, a second.
MOST_OPTIMISED = 1 << 20


def cpu_and_features(cpu: str) -> tuple[str, str]:
    """LLVM's names of a CPU and of what it can do beyond that name; "native" is the one this runs on."""
    import llvmlite.binding as llvm

    if cpu != "native":
        return cpu, ""
    return llvm.get_host_cpu_name(), str(llvm.get_host_cpu_features().flatten())


def vector_bits(features: str) -> int:
    """Width of the vector registers that the lowering writes code for (access.py)."""
    wanted = {"+avx512f", "+avx512bw", "+avx512dq", "+avx512vl"}
    return 512 if wanted <= set(features.split(",")) else 0


class Malformed(Exception):
    """LLVM does not take what was lowered: the PTX means nothing, though no handler saw it."""


def emit_object(ir: str, cpu: str = "native") -> bytes:
    """LLVM IR text to an ELF object for a CPU. Raises Malformed."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    try:
        module = llvm.parse_assembly(ir)
    except RuntimeError as error:
        raise Malformed(" ".join(str(error).split())[:200]) from error
    target = llvm.Target.from_default_triple()
    name, features = cpu_and_features(cpu)
    machine = target.create_target_machine(
        cpu=name,
        features=features,
        opt=1 if len(ir) <= MOST_OPTIMISED else 0,
        reloc="pic",
        codemodel="small",
    )
    data: bytes = machine.emit_object(module)
    return data


def main(arguments: list[str]) -> int:
    from sandbox.emulator.lowering.module import lower_modules
    from sandbox.ptx.model import LINE_BITS, PtxError

    emit_object("define void @warm() { ret void }")
    request: dict[str, Any] = json.loads(sys.stdin.buffer.read())
    kernels, cpu = request["kernels"], request["cpu"]
    bits = vector_bits(cpu_and_features(cpu)[1])
    wanted = None if kernels is None else [(int(index), str(name)) for index, name in kernels]
    try:
        lowered = lower_modules(request["modules"], wanted, mode=request["mode"], vector_bits=bits)
        product = emit_object(lowered.ir, cpu)
    except Malformed as error:
        print(json.dumps({"message": f"unsupported: PTX that is not well formed: {error}", "line": 0}))
        return UNSUPPORTED
    except PtxError as error:
        print(
            json.dumps({"message": error.message, "line": error.line and error.line & ((1 << LINE_BITS) - 1)})
        )
        return UNSUPPORTED
    with os.fdopen(int(arguments[0]), "wb") as file:
        file.write(_linked(product))
    return 0


def _linked(code: bytes) -> bytes:
    """A shared object of one object file."""
    with tempfile.TemporaryDirectory() as folder:
        source, product = Path(folder) / "module.o", Path(folder) / "module.so"
        source.write_bytes(code)
        subprocess.run(["ld", "-shared", "-z", "noexecstack", "-o", product, source], check=True)
        return product.read_bytes()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
