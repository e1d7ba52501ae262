"""Finds the front end's files by the manifest that Vite writes beside them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

MANIFEST = settings.PACKAGE / "static" / "ide" / ".vite" / "manifest.json"


@dataclass(frozen=True)
class Build:
    """Addresses of what the page loads, relative to the static files."""

    script: str
    styles: tuple[str, ...]
    preloads: tuple[str, ...]  # modules that the script imports at its start


def find_build(manifest: Path = MANIFEST) -> Build | None:
    """None when the front end was not built. Read anew each time: it is small, and may be built meanwhile."""
    try:
        chunks: dict[str, dict[str, Any]] = json.loads(manifest.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    entry = next((name for name, chunk in chunks.items() if chunk.get("isEntry")), None)
    if entry is None:
        return None
    needed = _with_imports(chunks, entry)
    return Build(
        script=f"ide/{chunks[entry]['file']}",
        styles=tuple(f"ide/{css}" for name in needed for css in chunks[name].get("css", [])),
        preloads=tuple(f"ide/{chunks[name]['file']}" for name in needed[1:]),
    )


def _with_imports(chunks: dict[str, dict[str, Any]], entry: str) -> list[str]:
    """The entry and all it imports statically, each once, the entry first."""
    found = [entry]
    for name in found:
        found += [imported for imported in chunks[name].get("imports", []) if imported not in found]
    return found
