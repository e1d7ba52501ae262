"""From a file to a task, whatever its kind."""

from __future__ import annotations

from pathlib import PurePath

from sandbox.cancellation import Cancellation
from sandbox.errors import TaskProblem
from sandbox.tasks.base import Inputs, Task
from sandbox.tasks.c.task import load_c
from sandbox.tasks.pytorch.task import load as load_pytorch
from sandbox.types import Problem

MAX_SOURCE_BYTES = 1_000_000


def load_task(
    source: str | bytes,
    *,
    filename: str,
    entry: str | None,
    inputs: Inputs | None,
    cancel: Cancellation,
) -> Task:
    """Raises TaskProblem for everything that is wrong with the file; JailUnavailable, Cancelled."""
    text = decode(source, filename)
    suffix = PurePath(filename).suffix.lower()
    if suffix not in (".c", ".py"):
        raise TaskProblem(
            Problem(
                kind="unknown_language",
                message=f"cannot tell the language of {PurePath(filename).name}",
                hint="end the name in .c for a C function or .py for a PyTorch module",
                file=PurePath(filename).name,
            )
        )
    if suffix == ".py":
        return load_pytorch(text, inputs or Inputs(), cancel, filename=filename)
    return load_c(text, filename=filename, entry=entry, inputs=inputs or Inputs(), cancel=cancel)


def decode(source: str | bytes, filename: str) -> str:
    """The text, checked: UTF-8, at most 1 MB, no NUL. Raises TaskProblem."""
    name = PurePath(filename).name
    raw = source.encode(errors="surrogatepass") if isinstance(source, str) else source
    if len(raw) > MAX_SOURCE_BYTES:
        raise TaskProblem(
            Problem(
                kind="too_long",
                message=f"the source has {len(raw)} bytes; {MAX_SOURCE_BYTES} is the limit",
                hint="paste the function to translate and what it calls, no data",
                file=name,
            )
        )
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TaskProblem(
            Problem(
                kind="not_utf8",
                message=f"byte {error.start} (0x{raw[error.start]:02x}) is not UTF-8",
                hint="save the file as UTF-8",
                file=name,
                line=raw[: error.start].count(b"\n") + 1,
            )
        ) from error
    if "\0" in text:
        place = text.index("\0")
        raise TaskProblem(
            Problem(
                kind="not_text",
                message=f"the source has a NUL at character {place}: this is not a text file",
                file=name,
                line=text.count("\n", 0, place) + 1,
            )
        )
    if not text.strip():
        raise TaskProblem(Problem(kind="empty", message="there is no source", file=name))
    return text.replace("\r\n", "\n").replace("\r", "\n")
