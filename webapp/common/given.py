"""A task as a client gives it: what is checked before anything is stored."""

from __future__ import annotations

import re

from django.conf import settings

from sandbox.targets import TARGETS
from sandbox.tasks.base import Language
from webapp.common.errors import ProblemError
from webapp.live.resources import FieldProblem

_FILENAME = re.compile(r"[^/\\\x00-\x1f\x7f]{1,200}")
_SUFFIXES: dict[str, Language] = {".c": "c", ".py": "pytorch"}
_DEFAULT_NAMES: dict[Language, str] = {"c": "task.c", "pytorch": "task.py"}


def wrong(field: str, message: str, *, slug: str = "invalid", status: int = 400) -> ProblemError:
    return ProblemError(
        status, slug, f"{field}: {message}", errors=[FieldProblem(field=field, message=message)]
    )


def check_text(field: str, text: str) -> None:
    """Raises ProblemError for what is no text, or too much."""
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError:
        raise wrong(field, "is not text: it holds half of a surrogate pair", slug="not-text") from None
    if size > settings.SOURCE_BYTES_MAX:
        limit = settings.SOURCE_BYTES_MAX
        raise wrong(field, f"is {size} bytes; at most {limit} are taken", slug="too-large", status=413)
    if "\x00" in text:
        raise wrong(field, "is not text: it holds a NUL byte", slug="not-text")


def file_of(
    source: str, filename: str | None, language: Language | None, *, prefix: str = ""
) -> tuple[str, Language]:
    """The task's file name and language, each from the other where one is not given. Raises ProblemError."""
    check_text(f"{prefix}source", source)
    if not source.strip():
        raise wrong(f"{prefix}source", "is empty: paste a C function, a C program or a PyTorch module")
    name = filename or _DEFAULT_NAMES[language or _guessed(source)]
    if not _FILENAME.fullmatch(name):
        raise wrong(f"{prefix}filename", "must be a plain file name of at most 200 characters")
    said = _SUFFIXES.get("." + name.rpartition(".")[2].lower())
    if said is None:
        raise wrong(f"{prefix}filename", f"must end in .c or .py, which says the language; {name!r} does not")
    if language is not None and language != said:
        raise wrong(f"{prefix}language", f"is {language!r}, but {name!r} says {said!r}")
    return name, said


def target_of(target: str | None, *, prefix: str = "") -> str:
    """The architecture, the server's own where none is named. Raises ProblemError for an unknown one."""
    wanted = target or settings.RUN_TARGET
    if wanted not in TARGETS:
        known = ", ".join(sorted(TARGETS))
        raise wrong(f"{prefix}target", f"{wanted!r} is not known; choose one of {known}")
    return wanted


def check_entry(entry: str | None, *, prefix: str = "") -> None:
    if entry is not None:
        check_text(f"{prefix}entry", entry)
        if len(entry) > 200:
            raise wrong(f"{prefix}entry", "is longer than 200 characters")


def _guessed(source: str) -> Language:
    return "pytorch" if re.search(r"^\s*(import|from)\s+torch\b", source, re.MULTILINE) else "c"
