"""Whole CUDA programs of the tests' own: compiled by the real nvcc, run in a jail on the emulator.

The test plays the service's part here: tables, lowering, reports.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import socket
import subprocess
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sandbox import jail, native, toolchain
from sandbox.cancellation import Cancellation
from sandbox.emulator.client import lower
from sandbox.errors import Judged
from sandbox.limits import EMULATE
from sandbox.ptx import parameter_layout
from sandbox.recorder.client import _LIMITS
from sandbox.targets import TARGETS

_TARGET = TARGETS["sm_90"]


@dataclass
class Ran:
    returncode: int | None
    signal: int | None
    stdout: str
    stderr: str
    faults: list[dict[str, Any]] = field(default_factory=list)
    traces: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    summary: dict[str, Any] | None = None

    @property
    def ok(self) -> bool:
        return self.returncode == 0 and not self.faults and not self.notes


def build(source: Path, folder: Path, *options: str) -> Path:
    product = folder / source.stem
    runtime = native.path("cudart").parent
    command = [str(toolchain.find_toolkit().nvcc), "-arch=sm_90", "-lineinfo", "-compress-mode=none"]
    command += ["-cudart", "shared", f"-L{runtime}", "-Xlinker", "-rpath=/cudart", "-std=c++17"]
    subprocess.run([*command, *options, str(source), "-o", str(product)], check=True)
    return product


def run(program: Path, *arguments: str, seconds: float = 60, **options: str) -> Ran:
    """`options` are those of the `configure` answer, e.g. profile="1"."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ran = Ran(None, None, "", "")
    server = threading.Thread(target=_Service(ours, ran, options).serve, daemon=True)
    server.start()
    with ours, theirs:
        finished = jail.run(
            [f"/program/{program.name}", *arguments],
            binds=[
                jail.Bind(program.parent, Path("/program")),
                jail.Bind(native.path("cudart").parent, Path("/cudart")),
            ],
            limits=replace(EMULATE, wall_seconds=seconds),
            cancel=Cancellation(),
            pass_fds=[theirs.fileno()],
            env={"KERNELWRIGHT_SERVICE": str(theirs.fileno())},
        )
        theirs.close()
        server.join(10)
    assert finished.reason == "exited", (finished.reason, finished.stderr)
    ran.returncode, ran.signal = finished.returncode, finished.signal
    ran.stdout, ran.stderr = (text.decode(errors="replace") for text in (finished.stdout, finished.stderr))
    return ran


class _Service:
    def __init__(self, connection: socket.socket, ran: Ran, options: dict[str, str]) -> None:
        self._connection = connection
        self._ran = ran
        self._options = {"mode": "checked", "threads": "2", "profile": "0", "seconds": "0"} | options
        self._modules: dict[str, str] = {}

    def serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                message, ancillary, _, _ = self._connection.recvmsg(1 << 16, socket.CMSG_SPACE(4))
                if not message:
                    return
                words = message.decode().split("\t")
                document = _content(ancillary)
                answer, payload = self._answer(words, document)
                self._send(answer, payload)

    def _answer(self, words: list[str], document: bytes) -> tuple[str, int | None]:
        match words:
            case ["configure"]:
                lines = [f"product\t{_TARGET.product}"]
                lines += [f"limit\t{name}\t{getattr(_TARGET, name)}" for name in _LIMITS]
                lines += ["limit\tmajor\t9", "limit\tminor\t0"]
                lines += [f"option\t{name}\t{value}" for name, value in self._options.items()]
                return "ok", _file("\n".join(lines).encode())
            case ["module", number]:
                text = document.decode()
                self._modules[number] = text
                lines = []
                for symbol, layout in parameter_layout(text).items():
                    pieces = ",".join(f"{offset}:{size}" for offset, size in layout)
                    lines.append(f"kernel\t{symbol}\t0\t0\t0\t1024\t{pieces}")
                return "ok", _file("\n".join(lines).encode())
            case ["lower", number, symbol]:
                try:
                    lowered = lower([self._modules[number]], Cancellation(), [(0, symbol)])
                except Judged as refusal:
                    return f"unsupported\t{refusal.message}", None
                return "ok", os.open(lowered.path, os.O_RDONLY)
            case ["fault"]:
                self._ran.faults.append(json.loads(document))
            case ["trace"]:
                self._ran.traces.append(json.loads(document))
            case ["finish"]:
                self._ran.summary = json.loads(document)
            case ["note", text]:
                self._ran.notes.append(text)
        return "ok", None

    def _send(self, answer: str, payload: int | None) -> None:
        ancillary = []
        if payload is not None:
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [payload]))]
        self._connection.sendmsg([answer.encode()], ancillary)
        if payload is not None:
            os.close(payload)


def _content(ancillary: list[tuple[int, int, bytes]]) -> bytes:
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            [file] = array.array("i", data[:4])
            with os.fdopen(file, "rb") as opened:
                opened.seek(0)
                return opened.read()
    return b""


def _file(content: bytes) -> int:
    file = os.memfd_create("answer", os.MFD_CLOEXEC)
    os.write(file, content)
    return file
