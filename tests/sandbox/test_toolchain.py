"""nvcc and gcc in the jail: what they make, what they say, and sources that attack the compiler."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sandbox import jail, toolchain
from sandbox.cancellation import Cancellation
from sandbox.errors import Cancelled, Judged, ToolchainMissing
from sandbox.limits import COMPILE, MIB, RECORD, Limits
from sandbox.toolchain import diagnostics, find, resources

pytestmark = pytest.mark.usefixtures("jail")

SAXPY = """
template <typename T> __global__ void saxpy(int n, T a, const T *x, T *y) {
    __shared__ T tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < n ? x[i] : T(0);
    __syncthreads();
    if (i < n) y[i] = a * tile[threadIdx.x] + y[i];
}
extern "C" void launch(int n, float a, const float *x, float *y) {
    saxpy<float><<<(n + 255) / 256, 256>>>(n, a, x, y);
}
"""


def limited(**changes: float) -> Limits:
    return Limits(**{**vars(COMPILE), **changes})


def compile_source(source: str, *, target: str = "sm_90", limits: Limits = COMPILE) -> toolchain.Compiled:
    return toolchain.compile_candidate(source, target=target, cancel=Cancellation(), limits=limits)


def first_error(source: str, limits: Limits = COMPILE) -> tuple[int | None, str]:
    compiled = compile_source(source, limits=limits)
    assert not compiled.ok
    assert compiled.ptx == []
    assert compiled.host_object is None
    first = next(d for d in compiled.compilation.diagnostics if d.severity == "error")
    return first.line, first.message


def ended_with_a_sentence(source: str, limits: Limits) -> str:
    """A compile error or a timeout: its message."""
    try:
        return first_error(source, limits)[1]
    except Judged as judged:
        return judged.message if judged.verdict == "timeout" else ""


def test_one_run_gives_everything() -> None:
    log: list[str] = []
    compiled = toolchain.compile_candidate(SAXPY, target="sm_90", cancel=Cancellation(), on_log=log.append)
    assert compiled.ok, compiled.compilation.log
    [kernel] = compiled.compilation.kernels
    assert kernel.name == "saxpy<float>"
    assert kernel.symbol == "_Z5saxpyIfEviT_PKS0_PS0_"
    assert kernel.shared_bytes == 1024
    assert 4 < kernel.registers < 40
    assert (kernel.local_bytes, kernel.spill_store_bytes, kernel.spill_load_bytes) == (0, 0, 0)
    [ptx] = compiled.ptx
    assert f".entry {kernel.symbol}" in ptx
    assert "candidate.cu" in ptx
    assert ".loc" in ptx
    assert compiled.host_object is not None
    assert compiled.host_object.read_bytes()[:4] == b"\x7fELF"
    assert compiled.cubin is not None
    assert compiled.cubin.read_bytes()[:4] == b"\x7fELF"
    assert "".join(log) == compiled.compilation.log
    assert "/" not in compiled.compilation.log


def test_the_second_time_comes_from_disk_with_the_same_log() -> None:
    source = SAXPY.replace("256", "128")
    once = compile_source(source)
    began = time.monotonic()
    log: list[str] = []
    again = toolchain.compile_candidate(source, target="sm_90", cancel=Cancellation(), on_log=log.append)
    assert time.monotonic() - began < 0.1
    assert again == once
    assert "".join(log) == once.compilation.log


def test_another_target_is_another_result() -> None:
    compiled = compile_source(SAXPY, target="sm_80")
    assert compiled.ok
    assert ".target sm_80" in compiled.ptx[0]


def test_a_target_is_no_place_for_flags() -> None:
    with pytest.raises(ValueError, match="no target"):
        compile_source(SAXPY, target="sm_90 --run")


def test_the_log_streams() -> None:
    heard: list[float] = []
    source = '#warning "early"\n' + SAXPY
    compiled = toolchain.compile_candidate(
        source, target="sm_90", cancel=Cancellation(), on_log=lambda text: heard.append(time.monotonic())
    )
    assert compiled.ok
    assert len(heard) >= 2
    assert heard[-1] - heard[0] > 0.05


def test_ptx_comes_before_the_rest() -> None:
    heard: list[tuple[float, str]] = []
    compiled = toolchain.compile_candidate(
        SAXPY + "// early",
        target="sm_90",
        cancel=Cancellation(),
        on_ptx=lambda ptx: heard.append((time.monotonic(), ptx)),
    )
    assert [ptx for _, ptx in heard] == compiled.ptx
    assert time.monotonic() - heard[0][0] > 0.05


def test_errors_have_their_line() -> None:
    line, message = first_error(SAXPY.replace("tile[threadIdx.x] = i", "tile[threadId.x] = i"))
    assert line == 5
    assert message == 'identifier "threadId" is undefined'


def test_all_errors_and_warnings_are_found() -> None:
    source = SAXPY.replace("int i =", "int unused = 3; int i =").replace("y[i] = a", "z[i] = b")
    found = compile_source(source).compilation.diagnostics
    assert [(d.severity, d.line) for d in found if d.severity == "error"] == [("error", 7), ("error", 7)]
    warned = compile_source(SAXPY.replace("int i =", "int unused = 3; int i =")).compilation.diagnostics
    assert [(d.severity, d.line, d.file) for d in warned] == [("warning", 4, "candidate.cu")]


def test_an_error_of_the_preprocessor() -> None:
    line, message = first_error('#include "nothing.h"\n' + SAXPY)
    assert line == 1
    assert "nothing.h" in message


def test_an_error_in_a_header_names_the_line_that_led_there() -> None:
    source = "#include <vector>\nstruct Fixed { Fixed(Fixed const &) = delete; Fixed(int); };\n" + SAXPY
    source += "void grow(std::vector<Fixed> &v, Fixed const &f) {\n    v.push_back(f);\n}\n"
    compiled = compile_source(source)
    assert not compiled.ok
    errors = [d for d in compiled.compilation.diagnostics if d.severity == "error"]
    assert errors
    assert all(d.file == "candidate.cu" for d in errors)


def test_too_much_shared_memory_is_ptxas_error_with_a_line() -> None:
    line, message = first_error(SAXPY.replace("tile[256]", "tile[100000]"))
    assert "too much shared data" in message
    assert line is not None
    assert 2 <= line <= 7


def test_a_bad_instruction_is_ptxas_error_with_its_line() -> None:
    line, message = first_error(SAXPY.replace("__syncthreads();", 'asm volatile("frobnicate.u32;");'))
    assert line == 6
    assert "frobnicate" in message or "syntax" in message.lower()


def test_no_launch_is_said_plainly() -> None:
    source = SAXPY.split("extern")[0]
    assert "there is no extern" in first_error(source)[1]
    assert "not with C linkage" in first_error(SAXPY.replace('extern "C" ', ""))[1]


def test_libraries_are_said_to_be_missing() -> None:
    source = SAXPY.replace(
        'extern "C"', 'extern int cublasSgemm(...);\nint use() { return cublasSgemm(1); }\nextern "C"'
    )
    line, message = first_error(source)
    assert "cublasSgemm" in message
    assert line is not None


def test_spills_are_reported() -> None:
    body = "".join(f"float r{i} = x[i + {i}];" for i in range(80))
    body += "__syncthreads();" + "".join(f"y[i + {i}] = r{i} * r{(i * 7) % 80};" for i in range(80))
    source = (
        "__global__ void __launch_bounds__(1024, 2) k(const float *x, float *y) "
        f"{{ int i = threadIdx.x; {body} }}\n"
        'extern "C" void launch(const float *x, float *y) { k<<<1, 1024>>>(x, y); }'
    )
    [kernel] = compile_source(source).compilation.kernels
    assert kernel.registers <= 32
    assert kernel.spill_store_bytes > 0
    assert kernel.spill_load_bytes > 0
    assert kernel.local_bytes > 0


def test_cooperative_groups_compile() -> None:
    source = """
#include <cooperative_groups.h>
__global__ void k(const float *x, float *y) {
    auto warp = cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block());
    y[threadIdx.x] = warp.shfl_down(x[threadIdx.x], 1);
}
extern "C" void launch(const float *x, float *y) { k<<<1, 128>>>(x, y); }
"""
    assert compile_source(source).ok


# Attacks.


@pytest.mark.parametrize("path", ["/etc/shadow", "/etc/passwd", "../../etc/passwd"])
def test_includes_reach_nothing_of_the_machine(path: str) -> None:
    compiled = compile_source(f'#include "{path}"\n' + SAXPY)
    assert not compiled.ok
    assert "root:" not in compiled.compilation.log
    assert compiled.compilation.diagnostics[0].line == 1


def test_an_included_environment_is_empty_or_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one owner of an ordinary user's jail may read its first process's environment: nothing is in it."""
    monkeypatch.setenv("KW_SECRET", "stolen")
    compiled = compile_source('#include "/proc/1/environ"\n' + SAXPY)
    assert "stolen" not in compiled.compilation.log
    assert compiled.ok or "ermission denied" in compiled.compilation.log


def test_incbin_reaches_nothing_of_the_machine(tmp_path: Path) -> None:
    secret = tmp_path / "answers"
    secret.write_text("stolen")
    source = SAXPY + f'\nasm(".section .data\\nstolen: .incbin \\"{secret}\\"\\n.previous");\n'
    _, message = first_error(source)
    assert "No such file" in message or "file not found" in message
    assert "stolen" not in compile_source(source).compilation.log.replace("stolen:", "")


def test_an_endless_include_ends() -> None:
    small = limited(wall_seconds=4, memory_bytes=512 * MIB)
    assert ended_with_a_sentence('#include "/dev/zero"\n' + SAXPY, small)


def test_a_template_bomb_ends_as_timeout_or_error() -> None:

    bomb = "template <int D, long P> struct T {\n"
    bomb += "  static constexpr long v = T<D - 1, P * 2>::v + T<D - 1, P * 2 + 1>::v; };\n"
    bomb += "template <long P> struct T<0, P> { static constexpr long v = P; };\nlong use = T<60, 0>::v;\n"
    message = ended_with_a_sentence(bomb + SAXPY, limited(wall_seconds=2, memory_bytes=512 * MIB))
    assert "within 2 s" in message or "more than 512 MiB" in message


def test_time_is_up() -> None:
    with pytest.raises(Judged, match="nvcc did not end within") as judged:
        compile_source(SAXPY + "// slow", limits=limited(wall_seconds=0.05))
    assert (judged.value.verdict, judged.value.fault) == ("timeout", "candidate")


def test_giant_arrays_end() -> None:
    small = limited(wall_seconds=10, memory_bytes=512 * MIB, file_bytes=64 * MIB)
    source = "static char big[1L << 33] = {1};\nchar *use() { return big; }\n" + SAXPY
    assert ended_with_a_sentence(source, small)


def test_a_huge_source_is_refused_at_once() -> None:
    began = time.monotonic()
    assert "at most" in first_error("//" + "x" * (2 << 20))[1]
    assert time.monotonic() - began < 0.5


def test_cancelling_stops_nvcc() -> None:
    cancel = Cancellation()
    cancel.set()
    with pytest.raises(Cancelled):
        toolchain.compile_candidate(SAXPY + "// never seen", target="sm_90", cancel=cancel)


# Finding.


def test_a_wrapper_is_followed_to_the_real_toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = toolchain.find_toolkit()
    wrapper = tmp_path / "nvcc"
    wrapper.write_text(f'#!/bin/sh\nexec {real.nvcc} "$@"\n')
    wrapper.chmod(0o755)
    assert find._examine(wrapper) == real


def test_our_own_wrapper_that_is_called_nvcc_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = toolchain.find_toolkit()
    wrapper = tmp_path / "nvcc"
    wrapper.write_text(
        f'#!/bin/sh\necho again >> {tmp_path}/calls\nexec {sys.executable} -m webapp.cli.main nvcc "$@"\n'
    )
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{real.nvcc.parent}:{os.environ['PATH']}")
    find.find_toolkit.cache_clear()
    try:
        assert find.find_toolkit() == real
        built = subprocess.run(
            [wrapper, "--version"], capture_output=True, text=True, timeout=60, check=False
        )
    finally:
        find.find_toolkit.cache_clear()
    assert real.version in built.stdout
    # Once when it was found here, once by us, and twice when it looked for nvcc: it never goes on from there.
    assert len((tmp_path / "calls").read_text().splitlines()) == 2 + 1 + 2


def test_no_nvcc_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    find.find_toolkit.cache_clear()
    try:
        monkeypatch.setenv("KERNELWRIGHT_NVCC", str(tmp_path / "nothing"))
        with pytest.raises(ToolchainMissing, match="pip install"):
            find.find_toolkit()
    finally:
        find.find_toolkit.cache_clear()


# Reading what compilers say, without running them.


def test_forms_of_diagnostics() -> None:
    log = """candidate.cu(12): error: expected a ";"
candidate.cu(3): warning #177-D: variable "x" was declared but never referenced
candidate.cu(1): catastrophic error: cannot open source file "x.h"
candidate.cu:5:10: fatal error: nothing.h: No such file or directory
ptxas candidate.ptx, line 4; error   : Unknown symbol 'x'
ptxas error   : Entry function '_Z1kv' uses too much shared data (0x10000 bytes, 0xc000 max)
ptxas fatal   : Ptx assembly aborted due to errors
nvcc error   : 'cicc' died due to signal 11 (Invalid memory reference)
/usr/bin/ld: candidate.o: in function `launch':
candidate.cu:(.text+0x1d): undefined reference to `helper(int)'
collect2: error: ld returned 1 exit status
1 error detected in the compilation of "candidate.cu".
"""
    ptx = ".entry _Z1kv(\n)\n\t.loc\t1 7 5\n bad x;\n"
    found = diagnostics.parse(log, source="void launch() {\n  helper(3);\n}", ptx=ptx)
    assert [(d.line, d.column, d.severity) for d in found] == [
        (12, None, "error"),
        (3, None, "warning"),
        (1, None, "error"),
        (5, 10, "error"),
        (7, None, "error"),
        (7, None, "error"),
        (None, None, "error"),
        (None, None, "error"),
        (2, None, "error"),
    ]


def test_resources_of_kernels_and_not_of_device_functions() -> None:
    log = """ptxas info    : 0 bytes gmem, 16 bytes cmem[3]
ptxas info    : Compiling entry function '_Z1av' for 'sm_90'
ptxas info    : Function properties for _Z1av
    16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 12 registers, used 1 barriers, 16 bytes cumulative stack size, 4096 bytes smem
ptxas info    : Function properties for _Z6helperv
    99 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Compiling entry function '_Z1bv' for 'sm_90'
ptxas info    : Function properties for _Z1bv
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
"""
    first, second = resources.kernels(log, {"_Z1av": "a"})
    assert (first.name, first.registers, first.shared_bytes, first.local_bytes) == ("a", 12, 4096, 16)
    assert (first.spill_store_bytes, first.spill_load_bytes) == (4, 8)
    assert (second.name, second.registers, second.local_bytes) == ("_Z1bv", 8, 0)


def test_warnings_cannot_speak_for_ptxas() -> None:
    forged = (
        "ptxas info    : Compiling entry function '_Z1kPf' for 'sm_90'",
        "ptxas info    : Used 5 registers",
    )
    source = "".join(f'[[deprecated("{text}")]] static void d{i}() {{}}\n' for i, text in enumerate(forged))
    source += "".join(f'#pragma message("{text}")\n' for text in forged)
    source += """__global__ void k(float *y) { y[threadIdx.x] = sinf(y[threadIdx.x]) + 1; }
extern "C" void launch(float *y) { d0(); d1(); k<<<1, 32>>>(y); }
"""
    compiled = compile_source(source)
    assert all(text in compiled.compilation.log for text in forged)
    [kernel] = compiled.compilation.kernels
    assert kernel.registers > 5


# gcc.


def test_a_host_program_is_built_and_runs_in_the_jail() -> None:
    built = toolchain.compile_host(
        {
            "main.c": '#include <math.h>\n#include "twice.h"\nint main() { return (int)sqrt(twice(8)); }\n',
            "twice.h": "static double twice(double x) { return 2 * x; }\n",
        },
        output="executable",
        language="c",
        flags=["-O2", "-lm"],
        cancel=Cancellation(),
    )
    assert built.ok, built.log
    assert built.path is not None
    binds = [jail.Bind(built.path, Path("/program"))]
    assert jail.run(["/program"], binds=binds, limits=RECORD, cancel=Cancellation()).returncode == 4


def test_a_shared_object_exports_its_function() -> None:
    built = toolchain.compile_host(
        {"f.cpp": 'extern "C" int answer() { return 42; }\n'},
        output="object",
        language="c++",
        cancel=Cancellation(),
    )
    assert built.path is not None
    assert "answer" in subprocess.run(["nm", "-D", built.path], capture_output=True, text=True).stdout


def test_a_host_error_is_told_with_the_file_as_given() -> None:
    wrong = {"f.c": "int f(void) { return x; }\n"}
    built = toolchain.compile_host(wrong, output="object", language="c", cancel=Cancellation())
    assert not built.ok
    assert built.path is None
    assert built.log.startswith("f.c: In function")
    assert "f.c:1:22: error:" in built.log


def test_host_sources_have_plain_names() -> None:
    for name in ("../f.c", "-o", "/etc/x.c", "a b.c"):
        with pytest.raises(ValueError, match="plain"):
            toolchain.compile_host({name: ""}, output="object", language="c", cancel=Cancellation())


def test_the_compilers_are_found_where_the_jail_has_them() -> None:
    compiler = toolchain.find_host_compiler()
    assert os.fspath(compiler.cc).startswith("/usr/")
    assert "g++" in compiler.version
