"""The replaying process: `python -m sandbox.gpu.worker SOCKET RANGE_BYTES WISHED_BASE`, in a jail.

Says hello (where the driver put the device's range, and what the card is), then answers requests, each with
two files: what is asked, and where the answer goes. Its words travel over the socket as lines of JSON, its
bulk through the files (see `wire`). After a fault its context is dead, and it ends.
"""

from __future__ import annotations

import json
import mmap
import os
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from sandbox.gpu.clock import Sides, take
from sandbox.gpu.driver import Context, CudaError, Late, Module
from sandbox.gpu.memory import Allocation, NoRoom, Range, read
from sandbox.gpu.plans import Buffer, Plan, Stopped, stopped_by, unwrap

_LINE = 1 << 16


class Request:
    """What is asked: a line of JSON, then bytes that it points into."""

    def __init__(self, file: int) -> None:
        with mmap.mmap(file, 0, access=mmap.ACCESS_READ) as content:
            end = content.find(b"\n")
            self.document: dict[str, Any] = json.loads(content[:end])
            self._blob = content[end + 1 :]
        self.cubins = [self.bytes(*place) for place in self.document["cubins"]]

    def bytes(self, at: int, size: int) -> bytes:
        return self._blob[at : at + size]

    def plan(self, document: Mapping[str, Any], shift: int) -> Plan:
        buffers = [
            Buffer(
                Allocation(b["name"], b["address"] + shift, b["bytes"]),
                None if b["data"] is None else unwrap(self.bytes(*b["data"])),
                b["read_back"],
                b["poison"],
            )
            for b in document["buffers"]
        ]
        return Plan(document["operations"], buffers, shift, self.bytes)


class Answer:
    """A line of JSON, then the bytes it lists."""

    def __init__(self) -> None:
        self.documents: list[dict[str, Any]] = []
        self._pieces: list[bytes] = []

    def add(self, document: dict[str, Any], pieces: Sequence[bytes]) -> None:
        self.documents.append({**document, "bytes": [len(piece) for piece in pieces]})
        self._pieces += pieces

    def write(self, file: int) -> None:
        with os.fdopen(os.dup(file), "wb") as out:
            out.write(json.dumps(self.documents).encode() + b"\n")
            for piece in self._pieces:
                out.write(piece)


class Worker:
    def __init__(self, channel: socket.socket, size: int, wished: int) -> None:
        self._channel = channel
        began = time.monotonic()
        self._context = Context()
        self._memory = Range(self._context, size, wished)
        self._shift = self._memory.base - wished
        attribute = self._context.attribute
        self.say(
            hello=True,
            base=self._memory.base,
            seconds=time.monotonic() - began,
            l2_bytes=attribute("L2_CACHE_SIZE"),
            multiprocessors=attribute("MULTIPROCESSOR_COUNT"),
            # Where kernels can read host memory they could read this process's, and write to it.
            host_memory_open=bool(attribute("PAGEABLE_MEMORY_ACCESS")),
        )

    def say(self, **words: Any) -> None:
        self._channel.sendall(json.dumps(words).encode() + b"\n")

    def serve(self) -> None:
        alive = True
        while alive:
            line, files, _, _ = socket.recv_fds(self._channel, _LINE, 2)
            if not line:
                return
            request, answer = Request(files[0]), Answer()
            alive = (self._time if request.document["kind"] == "time" else self._replay)(request, answer)
            answer.write(files[1])
            for file in files:
                os.close(file)
            self.say(done=True, alive=alive)

    def _replay(self, request: Request, answer: Answer) -> bool:
        """Whether the context is as good as before."""
        deadline = time.monotonic() + request.document["seconds"]
        documents = request.document["replays"]
        for number, document in enumerate(documents):
            try:
                pieces = self._one(request, document, deadline)
            except Stopped as end:
                answer.add(end.document, [])
                return False
            answer.add({"status": "ok"}, pieces)
            self.say(progress=number + 1, of=len(documents))
        return True

    def _one(self, request: Request, document: Mapping[str, Any], deadline: float) -> list[bytes]:
        """A fresh module, fresh memory, one plan, and what it left behind."""
        running = ""

        def after_launch(kernel: str) -> None:
            nonlocal running
            running = kernel
            self._context.wait(deadline)

        try:
            plan = request.plan(document, self._shift)
            module = Module(request.cubins[document["cubin"]])
            plan.prepare(self._context, self._memory)
            self._context.wait(deadline)
            plan.enqueue(self._context, module, after_launch)
            self._context.wait(deadline)
            plan.check_guards(self._memory)
            pieces = [
                read(b.allocation.address, b.allocation.bytes).tobytes() for b in plan.buffers if b.read_back
            ]
            module.unload()
            plan.free()
            return pieces
        except Late:
            raise Stopped("timeout", message="the replay did not end in time") from None
        except NoRoom as problem:
            raise Stopped("unsupported", message=str(problem)) from problem
        except CudaError as error:
            raise stopped_by(error, running) from error

    def _time(self, request: Request, answer: Answer) -> bool:
        try:
            sides = Sides(
                [
                    (request.cubins[side["cubin"]], [request.plan(r, self._shift) for r in side["replays"]])
                    for side in request.document["sides"]
                ]
            )
            taken = take(
                self._context,
                self._memory,
                sides,
                schedule=request.document["schedule"],
                most_bytes=request.document["most_bytes"],
                deadline=time.monotonic() + request.document["seconds"],
                progress=lambda done, of: self.say(progress=done, of=of),
            )
        except Stopped as end:
            answer.add(end.document, [])
            return False
        answer.add({"status": "ok", **taken.document}, taken.pieces)
        return True


def main() -> int:
    # What kernels print comes out here, in every trial again: nobody reads it, and it must not fill anything.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    channel = socket.socket(fileno=int(sys.argv[1]))
    try:
        worker = Worker(channel, int(sys.argv[2]), int(sys.argv[3]))
    except (CudaError, RuntimeError) as error:
        channel.sendall(json.dumps({"hello": False, "error": str(error)}).encode() + b"\n")
        return 1
    worker.serve()
    channel.close()
    # A kernel that still runs dies with its context, and the context with this process; nothing waits for it.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
