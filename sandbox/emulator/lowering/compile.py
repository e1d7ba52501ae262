"""The compiler process: `python -m sandbox.emulator.lowering.compile OUTPUT.so INPUT.ptx...`.

It runs in the jail, since PTX of a candidate is hostile input. Exit code 0: done. 3: not supported, with one
JSON line {"message", "line"} on standard output.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

UNSUPPORTED = 3


def emit_object(ir: str) -> bytes:
    """LLVM IR text to an ELF object for this CPU."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(ir)
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=os.environ.get("KERNELWRIGHT_LLVM_FEATURES") or llvm.get_host_cpu_features().flatten(),
        opt=int(os.environ.get("KERNELWRIGHT_LLVM_OPT", "1")),
        reloc="pic",
        codemodel="small",
    )
    data: bytes = machine.emit_object(module)
    return data


def main(arguments: list[str]) -> int:
    from sandbox.emulator.lowering.module import lower_modules
    from sandbox.ptx.model import PtxError

    output = Path(arguments[0])
    texts = [Path(name).read_text(encoding="utf-8", errors="replace") for name in arguments[1:]]
    try:
        lowered = lower_modules(texts)
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
