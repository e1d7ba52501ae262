"""Loading many small modules in one jailed process: importing torch once for all of them."""

from __future__ import annotations

from pathlib import Path

from sandbox import jail
from sandbox.cancellation import Cancellation
from sandbox.home import scratch
from sandbox.limits import TORCH
from sandbox.tasks.pytorch.messages import LoadRequest, Reply

_SCRIPT = """
import pathlib, sys, traceback
sys.path[:0] = sys.argv[1].split(":")
from sandbox.errors import TaskProblem
from sandbox.tasks.pytorch.messages import LoadRequest, Reply
from sandbox.tasks.pytorch.module import UserFile
from sandbox.tasks.pytorch.worker import _load
outbox = pathlib.Path("/run/out")
for path in sorted(pathlib.Path("/run/in").glob("*.py")):
    request = LoadRequest.model_validate_json(path.with_suffix(".json").read_text())
    try:
        reply = Reply(loaded=_load(UserFile.parse(path.read_text()), request, outbox))
    except TaskProblem as problem:
        reply = Reply(problem=problem.problem)
    (outbox / path.with_suffix(".json").name).write_text(reply.model_dump_json())
"""


def load_all(files: dict[str, tuple[str, LoadRequest]]) -> dict[str, Reply]:
    """What the worker says to each source with its request, by name."""
    interpreter, *_, path, _ = jail.python_argv("unused")
    with scratch("test") as folder:
        inbox, outbox = folder / "in", folder / "out"
        inbox.mkdir()
        outbox.mkdir()
        for name, (source, request) in files.items():
            (inbox / f"{name}.py").write_text(source)
            (inbox / f"{name}.json").write_text(request.model_dump_json())
        finished = jail.run(
            [interpreter, "-I", "-S", "-B", "-c", _SCRIPT, path],
            binds=[
                jail.Bind(inbox, Path("/run/in")),
                jail.Bind(outbox, Path("/run/out"), writable=True),
            ],
            limits=TORCH,
            cancel=Cancellation(),
            python=True,
        )
        assert finished.ok, finished.stderr.decode()
        answers = {name: jail.read_result(outbox / f"{name}.json", 1 << 24) for name in files}
        return {name: Reply.model_validate_json(answer) for name, answer in answers.items()}
