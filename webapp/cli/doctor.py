"""What this machine can do, and how to get what is missing: nvcc, jail, GPU, torch, model, database, broker.

Example: kernelwright doctor
"""

from __future__ import annotations

import argparse
import os
from importlib.util import find_spec
from typing import TypedDict

from sandbox.doctor import examine, heal_cards
from sandbox.gpu.devices import NoDevice
from webapp.cli import language_model
from webapp.cli.output import BAD_INPUT, GOOD, NOT_GOOD, dump, say


class Row(TypedDict):
    name: str
    ok: bool
    detail: str
    how: str
    needed: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    parser.add_argument(
        "--heal", action="store_true", help="put cards back into service that were sick and are well"
    )


def main(options: argparse.Namespace) -> int:
    if options.heal:
        try:
            for line in heal_cards():
                say(line)
        except NoDevice as missing:
            say(f"kernelwright: {missing}")
            return BAD_INPUT
    machine = [Row(name=f.name, ok=f.ok, detail=f.detail, how=f.how, needed=f.needed) for f in examine()]
    ok, detail, how = language_model.examine()
    model = Row(name="language model", ok=ok, detail=detail, how=how, needed=False)
    rows = [*machine, model, *_services()]
    if options.json:
        dump(rows)
    else:
        for row in rows:
            state = "ok" if row["ok"] else "missing" if row["needed"] else "not here"
            print(f"{state:<9} {row['name']:<16} {row['detail']}")
            if not row["ok"] and row["how"]:
                print(f"{'':<26} {row['how']}")
    return GOOD if all(row["ok"] for row in rows if row["needed"]) else NOT_GOOD


def _services() -> list[Row]:
    """What a server would use. A machine that only judges has no Django, and needs none of it."""
    if find_spec("django") is None:
        detail = "Django is not installed: this machine can judge but not serve"
        return [Row(name="web", ok=False, detail=detail, how="pip install 'kernelwright[web]'", needed=False)]
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    import django

    django.setup()
    from webapp.common import services_found
    from webapp.language_models.selectors import ENVIRONMENT

    # What the environment names has its row already, whether there is a server or not.
    return [
        Row(name=f.name, ok=f.ok, detail=f.detail, how=f.how, needed=f.needed)
        for f in services_found.services()
        if f.name != f"model {ENVIRONMENT}"
    ]
