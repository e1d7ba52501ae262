"""The service of a running program, driven by a peer that keeps to the protocol, and by one that does not."""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Callable, Iterator

import pytest

from sandbox.cancellation import Cancellation
from sandbox.emulator.client import Lowered, lower
from sandbox.errors import Judged
from sandbox.program.names import Demangler
from sandbox.program.report import Report
from sandbox.program.service import Connected, Service
from sandbox.targets import TARGETS

PTX = """
.version 8.0
.target sm_90
.address_size 64
.shared .align 4 .b8 outer[64];
.visible .entry _Z4fillPii(.param .u64 _Z4fillPii_param_0, .param .u32 _Z4fillPii_param_1)
.maxntid 128, 2, 1
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<3>;
  .shared .align 8 .f64 own[4];
  ld.param.u64 %rd1, [_Z4fillPii_param_0];
  ld.param.u32 %r1, [_Z4fillPii_param_1];
  mov.u32 %r2, outer;
  cvta.to.global.u64 %rd2, %rd1;
  st.global.u32 [%rd2], %r1;
  ret;
}
.visible .entry strange(.param .u64 strange_param_0)
{
  nonsense.u32;
  ret;
}
"""


class Peer:
    """The program's side."""

    def __init__(self, lowers: Callable[..., Lowered] = lower) -> None:
        self.said: list[str] = []
        self.report = Report(self.said.append, Demangler())
        cancel = Cancellation()
        self.connected = Connected(
            Service(
                target=TARGETS["sm_90"],
                options={"mode": "checked", "seed": "7"},
                report=self.report,
                cancel=cancel,
                lower=lambda texts, owner, kernel, mode: lowers(texts, cancel, [(owner, kernel)], mode=mode),
            )
        )
        self.socket = socket.socket(fileno=os.dup(self.connected.descriptor))

    def ask(self, words: str | bytes, content: bytes | None = None) -> tuple[str, bytes | None]:
        message = words if isinstance(words, bytes) else words.encode()
        files = []
        if content is not None:
            files.append(os.memfd_create("content"))
            os.write(files[0], content)
        socket.send_fds(self.socket, [message], files)
        for file in files:
            os.close(file)
        answer, received, _, _ = socket.recv_fds(self.socket, 65536, 4)
        contents = [os.pread(file, os.fstat(file).st_size, 0) for file in received]
        for file in received:
            os.close(file)
        return answer.decode(), contents[0] if contents else None

    def close(self) -> None:
        self.socket.close()
        self.connected.end()


@pytest.fixture
def peer() -> Iterator[Peer]:
    made = Peer()
    yield made
    made.close()


def test_configure_tells_the_target_and_the_options(peer: Peer) -> None:
    answer, tables = peer.ask("configure")
    assert answer == "ok"
    lines = [line.split("\t") for line in (tables or b"").decode().splitlines()]
    assert ["product", "H200 SXM"] in lines
    assert ["limit", "sm_count", "132"] in lines
    assert ["option", "seed", "7"] in lines


def test_a_module_is_described_by_its_kernels(peer: Peer) -> None:
    answer, lines = peer.ask("module\t0", PTX.encode())
    assert answer == "ok"
    # symbol, registers, static shared (64 of the module, 32 of its own), local, most threads, parameters
    assert (lines or b"").decode().splitlines() == [
        "kernel\t_Z4fillPii\t0\t96\t0\t256\t0:8,8:4",
        "kernel\tstrange\t0\t0\t0\t1024\t0:8",
    ]


@pytest.mark.usefixtures("jail")
def test_what_cannot_be_lowered_is_unsupported_and_told(peer: Peer) -> None:
    peer.ask("module\tm", PTX.encode())
    answer, _ = peer.ask("lower\tm\tstrange\tchecked")
    assert answer.startswith("unsupported\t")
    assert "nonsense" in answer
    assert any("nonsense" in line for line in peer.said)
    assert peer.report.errors == 1


def test_a_kernel_that_gave_up_is_an_error_and_a_call_that_is_not_offered_is_not(peer: Peer) -> None:
    peer.ask("module\tm", PTX.encode())
    peer.ask("note\tunsupported: cudaIpcOpenMemHandle: one process only")
    assert peer.report.errors == 0
    peer.ask("note\tunsupported: strange: a barrier in a divergent call: line 3")
    assert peer.report.unsupported == {"strange": "a barrier in a divergent call: line 3"}
    assert peer.report.errors == 1


@pytest.mark.usefixtures("jail")
def test_a_kernel_is_lowered_to_a_shared_object(peer: Peer) -> None:
    peer.ask("module\tm", PTX.replace("nonsense.u32;", "").encode())
    answer, product = peer.ask("lower\tm\t_Z4fillPii\tchecked")
    assert answer == "ok"
    assert product is not None
    assert product.startswith(b"\x7fELF")


@pytest.mark.usefixtures("jail")
def test_texts_that_were_linked_together_are_one_module(peer: Peer) -> None:
    head = ".version 8.0\n.target sm_90\n.address_size 64\n"
    callee = f"{head}.visible .func helper()\n{{\n  ret;\n}}\n"
    caller = f"{head}.extern .func helper();\n.visible .entry outer()\n{{\n  call.uni helper;\n  ret;\n}}\n"
    answer, lines = peer.ask("module\tboth", f"{callee}\0{caller}\0".encode())
    assert (answer, lines) == ("ok", b"kernel\touter\t0\t0\t0\t1024\t\n")
    answer, product = peer.ask("lower\tboth\touter\tchecked")
    assert answer == "ok"
    assert product is not None
    assert product.startswith(b"\x7fELF")


def test_findings_are_told_at_once_and_kept(peer: Peer) -> None:
    fault = {
        "kind": "out of bounds",
        "message": "write of 4 bytes behind an allocation",
        "kernel": "_Z4fillPii",
        "file": "/somewhere/fill.cu",
        "line": 12,
        "block": [1, 0, 0],
        "thread": [33, 0, 0],
        "address": 0x2000_0000_0010,
        "space": "global",
        "allocation": "x, 64 bytes",
        "count": 3,
    }
    assert peer.ask("fault", json.dumps(fault).encode()) == ("ok", None)
    assert peer.ask("note\ttimes are of the emulation") == ("ok", None)
    told = peer.said[0]
    for piece in (
        "out of bounds",
        "fill.cu:12",
        "(1,0,0)",
        "(33,0,0)",
        "0x200000000010",
        "3 times",
    ):
        assert piece in told
    assert "64 bytes" not in told  # the runtime's messages say what is in its other fields
    assert peer.report.findings[0].model_extra == {"allocation": "x, 64 bytes"}
    assert peer.said[1] == "kernelwright: times are of the emulation"
    assert peer.report.errors == 1
    assert peer.report.conclusion() == "kernelwright: 1 error"


@pytest.mark.parametrize(
    ("words", "content"),
    [
        (b"\xff\xfe", None),
        ("configure\tmore", None),
        ("unknown", None),
        ("module\t1", None),
        ("lower\t99\tkernel\tchecked", None),
        ("fault", b"not json"),
        ("fault", b'{"kind": 7}'),
        ("fault", json.dumps({"kind": "race", "message": "x" * 10_000}).encode()),
        ("trace", b"{}"),
        ("module\t" + "a\x01", b""),
    ],
)
def test_what_is_not_in_the_protocol_is_refused_and_the_service_goes_on(
    peer: Peer, words: str | bytes, content: bytes | None
) -> None:
    assert peer.ask(words, content)[0].startswith("error\t")
    assert peer.ask("configure")[0] == "ok"
    assert peer.report.findings == []


def test_a_pipe_in_place_of_a_file_does_not_stall_the_service(peer: Peer) -> None:
    reader, writer = os.pipe()
    socket.send_fds(peer.socket, [b"fault"], [reader])
    assert peer.socket.recv(65536).startswith(b"error\t")
    os.close(reader)
    os.close(writer)


@pytest.mark.parametrize(
    "fault",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        RuntimeError("the lowerer is broken"),
        Judged("internal_error", "kernelwright", "lowering failed: Killed"),
        MemoryError(),
    ],
    ids=["disk", "lowerer", "internal", "memory"],
)
def test_any_exception_is_our_own_fault_and_the_service_answers_on(fault: Exception) -> None:
    def broken(*_: object, **__: object) -> Lowered:
        raise fault

    peer = Peer(broken)
    try:
        peer.ask("module\tm", PTX.encode())
        for kernel in ("_Z4fillPii", "strange", "strange"):
            assert peer.ask(f"lower\tm\t{kernel}\tchecked")[0].startswith("failed\t")
        assert peer.ask("configure")[0] == "ok"
        assert len(peer.report.own_faults) == len(peer.said) == 1
        assert peer.said[0].startswith("kernelwright: own fault: ")
        assert str(fault) in peer.said[0] or "KERNELWRIGHT_HOME" in peer.said[0]
    finally:
        peer.close()


def test_a_kernel_that_cannot_even_be_looked_up_is_an_error(peer: Peer) -> None:
    assert peer.ask("refused\t_Z4addPi\tthe kernel is not in the PTX")[0] == "ok"
    assert peer.report.unsupported == {"_Z4addPi": "the kernel is not in the PTX"}
    assert peer.report.errors == 1


def test_a_finding_that_cannot_be_read_is_not_lost_in_silence(peer: Peer) -> None:
    assert peer.ask("fault", b'{"kind": 7}')[0].startswith("error\t")
    assert len(peer.report.own_faults) == 1


def test_terminal_control_characters_do_not_reach_the_person(peer: Peer) -> None:
    peer.ask("note\t\x1b[2Jcleared")
    peer.ask("fault", json.dumps({"kind": "race", "message": "\x1b]0;title\x07"}).encode())
    assert not any(c in text for text in peer.said for c in "\x1b\x07")
