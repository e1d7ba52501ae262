"""Writes a finished run as a recording of the gallery.

Example: python manage.py export_recording 6f1c... --title "Row softmax" > softmax.jsonl
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from webapp.runs.models import AgentRun, RunEvent


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", type=UUID, help="the run's id, as in its address")
        parser.add_argument("--title", required=True)
        parser.add_argument("--label", default="Recorded run", help="where and how it was recorded")
        parser.add_argument("--description", default="")

    def handle(self, *_: Any, **options: Any) -> None:
        run = AgentRun.objects.filter(pk=options["run"]).first()
        if run is None or not run.has_ended or run.started_at is None:
            raise CommandError("there is no run of this id that has started and ended")
        self._line({key: options[key] for key in ("title", "label", "description")})
        for record in RunEvent.objects.filter(run=run).order_by("seq"):
            at = round((record.at - run.started_at).total_seconds(), 3)
            self._line({"at": at, "event": record.payload})

    def _line(self, value: dict[str, Any]) -> None:
        self.stdout.write(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
