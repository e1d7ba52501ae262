"""Building the reference: the user's C as it stands and widened, each with the harness, by gcc in the
jail."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox.cancellation import Cancellation
from sandbox.errors import Cancelled, TaskProblem
from sandbox.home import cache, scratch
from sandbox.jail import Bind, read_result, run
from sandbox.limits import COMPILE, MIB
from sandbox.tasks.c.formals import Formal
from sandbox.tasks.c.parse import Program, compiler_problem, host_gcc
from sandbox.tasks.c.widen import widen
from sandbox.types import Problem

HARNESS = Path(__file__).parent / "harness.c"
INSIDE = Path("/tmp/build")
_LARGEST = 64 * MIB
#: As it stands: no fused multiply-add, no fast maths; wrapping integers, as on the device.
_FLAGS = (
    "-O2",
    "-std=gnu11",
    "-w",
    "-ffp-contract=off",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-Dmain=kw_user_main",
)
#: As its author would build it to be fast on this machine.
_FAST = ("-O3", "-march=native", "-std=gnu11", "-w", "-Dmain=kw_user_main")
_TRAPS = ("-fsanitize=float-cast-overflow", "-fsanitize-undefined-trap-on-error")


@dataclass(frozen=True)
class Executable:
    """A reference that can be run in the jail any number of times."""

    content: bytes
    float_dtype: str  # of its floating-point arrays and scalars: "" (as the parameters), or "float64"
    traces: bool = False  # results are which bytes were touched, not what the arrays hold


def build_native(program: Program, entry: str, formals: Sequence[Formal], cancel: Cancellation) -> Executable:
    """Raises TaskProblem with gcc's first error."""
    text = f'# 1 "{program.filename}"\n{program.source}\n# 1 "kernelwright"\n{_invoke(entry, formals, "")}'
    return Executable(_compile(text, program.filename, cancel), "")


def build_wide(program: Program, entry: str, formals: Sequence[Formal], cancel: Cancellation) -> Executable:
    """`float` as double, or `double` as long double where no parameter is a float."""
    long_double = not any(f.dtype == "float32" for f in formals)
    widened = widen(program, long_double=long_double)
    call = _invoke_long(entry, formals) if long_double else _invoke(entry, formals, "double")
    return Executable(_compile(f"{widened.text}\n{call}", program.filename, cancel), "float64")


def build_checked(
    program: Program, entry: str, formals: Sequence[Formal], cancel: Cancellation
) -> Executable:
    """As it stands, but it dies where a floating-point value does not fit the integer that it becomes."""
    text = f'# 1 "{program.filename}"\n{program.source}\n# 1 "kernelwright"\n{_invoke(entry, formals, "")}'
    return Executable(_compile(text, program.filename, cancel, extra=_TRAPS), "")


def build_traced(program: Program, entry: str, formals: Sequence[Formal], cancel: Cancellation) -> Executable:
    """As it stands, with every access to memory reported."""
    text = f'# 1 "{program.filename}"\n{program.source}\n# 1 "kernelwright"\n{_invoke(entry, formals, "")}'
    return Executable(_compile(text, program.filename, cancel, traced=True), "", traces=True)


def build_timed(
    program: Program, entry: str, formals: Sequence[Formal], cancel: Cancellation, *, openmp: bool
) -> Executable:
    """As fast as gcc makes it, with a harness that times it."""
    text = f'# 1 "{program.filename}"\n{program.source}\n# 1 "kernelwright"\n{_invoke(entry, formals, "")}'
    flags = (*_FAST, "-fopenmp") if openmp else _FAST
    return Executable(_compile(text, program.filename, cancel, flags=flags, harness=("-DKW_TIME",)), "")


def _compile(
    text: str,
    name: str,
    cancel: Cancellation,
    *,
    traced: bool = False,
    extra: Sequence[str] = (),
    flags: Sequence[str] = _FLAGS,
    harness: tuple[str, ...] = (),
) -> bytes:
    build = [host_gcc(), *flags, *extra, "task.c", "harness.o", "-lm", "-o", "reference"]
    if traced:
        # Two steps: the flag at link time would bring in a runtime of its own.
        compile_ = f"{host_gcc()} {' '.join(_FLAGS)} -O1 -fno-builtin -fsanitize=thread -c task.c -o task.o"
        build = ["/bin/sh", "-c", f"{compile_} && {host_gcc()} task.o harness.o -lm -o reference"]
    with scratch("reference") as folder:
        (folder / "task.c").write_text(text)
        (folder / "harness.o").write_bytes(_harness(cancel, ("-DKW_TRACE",) if traced else harness))
        done = run(
            build,
            binds=[Bind(folder, INSIDE, writable=True)],
            cwd=INSIDE,
            limits=COMPILE,
            cancel=cancel,
        )
        if done.reason == "cancelled":
            raise Cancelled
        if not done.ok:
            log = done.stderr.decode(errors="replace")
            if done.reason != "exited":
                log = f"gcc did not get through the program ({done.reason} limit reached)"
            raise TaskProblem(_undefined(log, name) or compiler_problem(log, name, "does_not_compile"))
        return read_result(folder / "reference", _LARGEST)


def _undefined(log: str, name: str) -> Problem | None:
    """The linker's complaint about a function that is not there."""
    match = re.search(r"undefined reference to `(\w+)'", log)
    if match is None:
        return None
    return Problem(
        kind="undefined_function",
        message=f"{match[1]} is used but not defined",
        hint="a task is one file: add the function, or include the header that declares it",
        file=name,
    )


def _harness(cancel: Cancellation, flags: tuple[str, ...] = ()) -> bytes:
    """The harness as an object file, compiled once for each compiler and kept in the cache."""
    source, gcc = HARNESS.read_bytes(), Path(host_gcc()).resolve()
    key = hashlib.sha256(
        source + str((flags, gcc, gcc.stat().st_mtime_ns, gcc.stat().st_size)).encode()
    ).hexdigest()
    kept = cache("reference") / f"harness-{key[:32]}.o"
    if kept.exists():
        return kept.read_bytes()
    with scratch("harness") as folder:
        (folder / "harness.c").write_bytes(source)
        done = run(
            [host_gcc(), "-O2", *flags, "-c", "harness.c", "-o", "harness.o"],
            binds=[Bind(folder, INSIDE, writable=True)],
            cwd=INSIDE,
            limits=COMPILE,
            cancel=cancel,
        )
        if done.reason == "cancelled":
            raise Cancelled
        if not done.ok:
            raise RuntimeError(f"the harness does not compile: {done.stderr.decode(errors='replace')}")
        content = read_result(folder / "harness.o", _LARGEST)
    with tempfile.NamedTemporaryFile(dir=kept.parent, delete=False) as file:
        file.write(content)
    os.replace(file.name, kept)
    return content


def _invoke(entry: str, formals: Sequence[Formal], floats: str) -> str:
    """The function that the harness calls. `floats` replaces the floating-point types, where given."""
    arguments = [
        f"*({_scalar(f, floats)} *)kw_a[{i}]" if not f.is_array else f"kw_a[{i}]"
        for i, f in enumerate(formals)
        if not f.is_result
    ]
    call = f"{entry}({', '.join(arguments)});"
    for i, f in enumerate(formals):
        if f.is_result:
            call = f"*({_scalar(f, floats)} *)kw_a[{i}] = {call}"
    return f"void kw_invoke(void **kw_a) {{ {call} }}\n"


_C_NAMES = {
    "bool": "_Bool",
    "int8": "signed char",
    "uint8": "unsigned char",
    "int16": "short",
    "uint16": "unsigned short",
    "int32": "int",
    "uint32": "unsigned int",
    "int64": "long",
    "uint64": "unsigned long",
    "float32": "float",
    "float64": "double",
}


def _scalar(formal: Formal, floats: str) -> str:
    return floats if floats and formal.dtype.startswith("float") else _C_NAMES[formal.dtype]


def _invoke_long(entry: str, formals: Sequence[Formal]) -> str:
    """As `_invoke`, for a program whose doubles are long double now: arrays are converted there and back."""
    before, arguments, after, call = "", [], "", ""
    for i, formal in enumerate(formals):
        wide = formal.dtype == "float64"
        if formal.is_result:
            call = f"*({_scalar(formal, '')} *)kw_a[{i}] = "
        elif wide and formal.is_array:
            before += f"long kw_n{i} = kw_bytes[{i}] / 8; long double *kw_w{i} = malloc(kw_n{i} * 16 + 16);\n"
            before += f"for (long k = 0; k < kw_n{i}; k++) kw_w{i}[k] = ((double *)kw_a[{i}])[k];\n"
            if not formal.const:
                after += f"for (long k = 0; k < kw_n{i}; k++) ((double *)kw_a[{i}])[k] = kw_w{i}[k];\n"
            arguments.append(f"(void *)kw_w{i}")
        elif formal.is_array:
            arguments.append(f"kw_a[{i}]")
        else:
            arguments.append(f"*({_scalar(formal, '')} *)kw_a[{i}]")
    call += f"{entry}({', '.join(arguments)});\n"
    return f"extern long kw_bytes[];\nvoid kw_invoke(void **kw_a) {{\n{before}{call}{after}}}\n"
