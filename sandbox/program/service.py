"""The parent's side of a running program: what our CUDA runtime inside it asks for, and what it reports.

Requests come over a SOCK_SEQPACKET socket, each answered in order: a line of words separated by tabs, with
larger content in a file in memory beside it. The other side, `sandbox/cudart/service.h`, lives in the
program's process, so everything that comes is hostile input: bounded, and checked before it is used.

    configure                 -> ok + tables: product, limit and option lines
    module  ID  (+ PTX)       -> ok + kernel lines; texts that were linked together have a NUL between them
    lower   ID  SYMBOL  MODE  -> ok + shared object with the kernel's native code | unsupported  WHY
    fault       (+ JSON)      -> ok      one finding of a check
    trace       (+ JSON)      -> ok      what one launch counted
    note    TEXT              -> ok      a line for the person
    refused SYMBOL  WHY       -> ok      a kernel that cannot be run at all
    finish      (+ JSON)      -> ok      the runtime is done

What it cannot answer gets `error  WHY`; where that is our own fault, the report knows, so that the run cannot
end well, and the answer is `failed  WHY`.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import stat
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import ValidationError

from sandbox.cancellation import Cancellation
from sandbox.emulator.client import Lowered, Mode
from sandbox.emulator.trace import LaunchTrace
from sandbox.errors import Cancelled, Judged
from sandbox.home import explained
from sandbox.limits import MIB
from sandbox.program.kernels import kernels_in
from sandbox.program.names import shortened
from sandbox.program.report import Finding, Report
from sandbox.recorder.tables import device_lines, kernel_line
from sandbox.targets import Target

_MESSAGE_BYTES = 1 << 16
_MAX_FILES = 4
_MAX_PTX_BYTES = 256 * MIB
_MAX_DOCUMENT_BYTES = 16 * MIB
_MAX_MODULES = 256
_MODES: dict[str, Mode] = {"checked": "checked", "plain": "plain"}
_NAME = re.compile(r"[!-~]{1,4096}")


class BadRequest(Exception):
    """What came is not in the protocol."""


@dataclass(frozen=True)
class Answer:
    words: str = "ok"
    file: int | None = None  # sent along, then closed here


@dataclass
class Service:
    """One program's service. `serve` answers until the program's end of the socket is closed."""

    target: Target
    options: Mapping[str, str]
    report: Report
    cancel: Cancellation
    lower: Callable[[Sequence[str], int, str, Mode], Lowered]  # PTX texts, a kernel of one of them, how
    _modules: dict[str, list[str]] = field(default_factory=dict)
    _owners: dict[tuple[str, str], int] = field(default_factory=dict)  # module, kernel -> which of its texts

    def serve(self, connection: socket.socket) -> None:
        with connection:
            while True:
                try:
                    message, files, _, _ = socket.recv_fds(connection, _MESSAGE_BYTES, _MAX_FILES)
                except ConnectionResetError:  # it was killed before it read an answer
                    return
                except OSError as error:
                    self.report.own_fault(f"own fault: the connection to the program broke: {error}")
                    return
                try:
                    if not message:
                        return
                    answer = self._answer(message, files)
                finally:
                    for file in files:
                        os.close(file)
                try:
                    _send(connection, answer)
                except OSError as error:
                    if not isinstance(error, BrokenPipeError):
                        self.report.own_fault(f"own fault: an answer did not reach the program: {error}")
                    return

    def _answer(self, message: bytes, files: list[int]) -> Answer:
        try:
            words = message.decode().rstrip("\n").split("\t")
            handler = _HANDLERS.get((words[0], len(words) - 1))
            if handler is None:
                raise BadRequest(f"no such request: {words[0][:40]!r} with {len(words) - 1} words")
            return handler(self, words[1:], files)
        except (BadRequest, UnicodeDecodeError, ValidationError) as problem:
            return Answer(f"error\t{_one_line(str(problem))}")
        except Cancelled:
            return Answer("error\tinterrupted")
        except Exception as error:  # the thread must live: who asks next waits for an answer, too
            why = f"own fault: {explained(error)}"
            self.report.own_fault(why)
            return Answer(f"failed\t{_one_line(why)}")

    def _configure(self, _: list[str], __: list[int]) -> Answer:
        lines = [device_lines(self.target)]
        lines += [f"option\t{name}\t{value}\n" for name, value in self.options.items()]
        return Answer(file=_memory_file("tables", "".join(lines).encode()))

    def _module(self, words: list[str], files: list[int]) -> Answer:
        if len(self._modules) >= _MAX_MODULES and words[0] not in self._modules:
            raise BadRequest(f"more than {_MAX_MODULES} modules")
        module = _name(words[0])
        texts = _content(files, _MAX_PTX_BYTES).decode(errors="replace").rstrip("\0").split("\0")
        if len(texts) > _MAX_MODULES:
            raise BadRequest(f"more than {_MAX_MODULES} texts in one module")
        self._modules[module] = texts
        lines = []
        for number, text in enumerate(texts):
            for kernel in kernels_in(text, self.target):
                # Templates are in every text that uses them, each time the same.
                if self._owners.setdefault((module, kernel.symbol), number) == number:
                    lines.append(kernel_line(kernel))
        return Answer(file=_memory_file("kernels", "".join(lines).encode()))

    def _lower(self, words: list[str], _: list[int]) -> Answer:
        module, kernel, mode = words[0], _name(words[1]), _MODES.get(words[2])
        if mode is None:
            raise BadRequest(f"no mode {words[2][:40]!r}")
        texts = self._modules.get(module)
        if texts is None:
            raise BadRequest(f"no module {module[:40]!r}")
        owner = self._owners.get((module, kernel), 0)
        try:
            # Whichever text has the kernel, their order stays: it decides the addresses of functions.
            lowered = self.lower(texts, owner, kernel, mode)
        except Judged as refused:
            if refused.verdict == "internal_error":
                raise
            self.report.add_unsupported(kernel, refused.message)
            return Answer(f"unsupported\t{_one_line(refused.message)}")
        return Answer(file=os.open(lowered.path, os.O_RDONLY | os.O_CLOEXEC))

    def _fault(self, _: list[str], files: list[int]) -> Answer:
        try:
            self.report.add(Finding.model_validate_json(_content(files, MIB)))
        except ValidationError as problem:
            self.report.own_fault(f"own fault: a finding cannot be read: {_one_line(str(problem))}")
            raise
        return Answer()

    def _trace(self, _: list[str], files: list[int]) -> Answer:
        self.report.add_trace(LaunchTrace.model_validate_json(_content(files, _MAX_DOCUMENT_BYTES)))
        return Answer()

    def _note(self, words: list[str], _: list[int]) -> Answer:
        text = _one_line(words[0])
        # A call that is not offered is for the program to handle. A kernel that did not run is an error.
        refused = re.fullmatch(r"unsupported: (\S+): (.*)", text)
        if refused and any(refused[1] == kernel for _, kernel in self._owners):
            self.report.add_unsupported(refused[1], refused[2])
        else:
            first, space, rest = text.partition(" ")
            known = any(first == kernel for _, kernel in self._owners)
            self.report.note(f"{shortened(self.report.demangle(first))}{space}{rest}" if known else text)
        return Answer()

    def _refused(self, words: list[str], _: list[int]) -> Answer:
        self.report.add_unsupported(_name(words[0]), _one_line(words[1]))
        return Answer()

    def _finish(self, _: list[str], files: list[int]) -> Answer:
        self.report.finish(_content(files, MIB))
        return Answer()


#: (request, number of words after it) -> who answers.
_HANDLERS: dict[tuple[str, int], Callable[[Service, list[str], list[int]], Answer]] = {
    ("configure", 0): Service._configure,
    ("module", 1): Service._module,
    ("lower", 3): Service._lower,
    ("fault", 0): Service._fault,
    ("trace", 0): Service._trace,
    ("note", 1): Service._note,
    ("refused", 2): Service._refused,
    ("finish", 0): Service._finish,
}


class Connected:
    """A service at work: the program's end of its socket, and the thread that answers."""

    def __init__(self, service: Service) -> None:
        ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._thread = threading.Thread(target=service.serve, args=(ours,), name="service", daemon=True)
        self._thread.start()

    @property
    def descriptor(self) -> int:
        return self._theirs.fileno()

    def end(self) -> None:
        """Once every process with the other end is dead; waits until all that it sent has been taken in."""
        self._theirs.close()
        self._thread.join()


def _send(connection: socket.socket, answer: Answer) -> None:
    if answer.file is None:
        connection.send(answer.words.encode())
        return
    try:
        socket.send_fds(connection, [answer.words.encode()], [answer.file])
    finally:
        os.close(answer.file)


def _content(files: list[int], limit: int) -> bytes:
    """Of the one file that came along."""
    if len(files) != 1:
        raise BadRequest(f"{len(files)} files came along instead of 1")
    found = os.fstat(files[0])
    # Reading anything else could wait for ever.
    if not stat.S_ISREG(found.st_mode) or found.st_size > limit:
        raise BadRequest(f"what came along is no file of at most {limit} bytes")
    pieces, offset = [], 0
    while offset < found.st_size:
        piece = os.pread(files[0], min(found.st_size - offset, 1 << 24), offset)
        if not piece:
            break
        pieces.append(piece)
        offset += len(piece)
    return b"".join(pieces)


def _memory_file(name: str, content: bytes) -> int:
    file = os.memfd_create(name, os.MFD_CLOEXEC)
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, file)
        with os.fdopen(os.dup(file), "wb") as writer:
            writer.write(content)
        os.lseek(file, 0, os.SEEK_SET)
        stack.pop_all()
    return file


def _name(word: str) -> str:
    if not _NAME.fullmatch(word):
        raise BadRequest("a name must be printable")
    return word


def _one_line(text: str) -> str:
    """A word of an answer, or of what a person reads: no tabs, line breaks or control characters."""
    return "".join(c if c.isprintable() else " " for c in text)[:2000]
