"""Reads `examples/`: `index.toml` lists the examples, `recordings/*.jsonl` are runs to play back.

index.toml has one table an example, in the order of the gallery:

    [[examples]]
    id = "saxpy"
    file = "c/saxpy.c"
    title = "saxpy"
    description = "y = a x + y"
    entry = "saxpy"            # only where the file has several
    [examples.inputs.sizes]     # only where something inferred is to be corrected
    n = 100000

A recording's first line is its title: {"title": "...", "label": "...", "description": "..."}; every other
line is an event with the seconds since the start: {"at": 1.25, "event": {...}}.
"""

from __future__ import annotations

import json
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from agent.events import RunStarted, event_adapter
from sandbox.tasks.base import Inputs, Language
from webapp.gallery import EXAMPLES
from webapp.live.resources import ExampleItem, RecordedEvent, Recording

_LANGUAGES: dict[str, tuple[Language, str]] = {".c": ("c", "C"), ".py": ("pytorch", "PyTorch")}


@cache
def gallery(folder: Path = EXAMPLES) -> tuple[ExampleItem, ...]:
    """Recordings, then the examples in the order of the index. Read once: they change with a release."""
    recordings = [_recording_item(path) for path in sorted((folder / "recordings").glob("*.jsonl"))]
    index = folder / "index.toml"
    entries = tomllib.loads(index.read_text(encoding="utf-8")).get("examples", []) if index.is_file() else []
    return (*recordings, *(_example_item(folder, entry) for entry in entries))


@cache
def recording(name: str, folder: Path = EXAMPLES) -> Recording | None:
    """One recorded run; None when there is none of this name."""
    paths = {path.stem: path for path in (folder / "recordings").glob("*.jsonl")}
    path = paths.get(name)
    if path is None:
        return None
    head, *lines = _lines(path)
    events = [
        RecordedEvent(seq=seq, at=line["at"], event=event_adapter.validate_python(line["event"]))
        for seq, line in enumerate(lines, start=1)
    ]
    return Recording(id=name, title=head["title"], label=head.get("label", "Recorded"), events=events)


def _example_item(folder: Path, entry: dict[str, Any]) -> ExampleItem:
    path = folder / entry["file"]
    language, label = _LANGUAGES[path.suffix]
    inputs = entry.get("inputs")
    return ExampleItem(
        id=entry.get("id", path.stem),
        kind="example",
        title=entry["title"],
        label=entry.get("label", label),
        description=entry.get("description", ""),
        language=language,
        filename=path.name,
        source=path.read_text(encoding="utf-8"),
        entry=entry.get("entry"),
        inputs=None if inputs is None else Inputs.model_validate(inputs),
    )


def _recording_item(path: Path) -> ExampleItem:
    head, *lines = _lines(path)
    events = (event_adapter.validate_python(line["event"]) for line in lines)
    started = next((event for event in events if isinstance(event, RunStarted)), None)
    language = started.task.language if started else None
    return ExampleItem(
        id=path.stem,
        kind="recording",
        title=head["title"],
        label=head.get("label", "Recorded"),
        description=head.get("description", ""),
        language=language,
        filename=f"{path.stem}{'.py' if language == 'pytorch' else '.c'}",
        source=started.task.source if started else "",
        entry=started.task.name if started else None,
        inputs=started.task.inputs if started else None,
    )


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
