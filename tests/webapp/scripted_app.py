"""The real server and the real worker, with the scripted translator in the engine's place.

python -m tests.webapp.scripted_app --port 0
celery -A tests.webapp.scripted_app worker
"""

from __future__ import annotations

import argparse
import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
django.setup()

from tests.webapp import scripted  # noqa: E402
from webapp.celery import app as app  # noqa: E402
from webapp.cli import serve  # noqa: E402
from webapp.evaluations import tasks as evaluation_tasks  # noqa: E402
from webapp.runs import tasks  # noqa: E402

tasks.translate_run = scripted.translate
evaluation_tasks.judge_candidate = scripted.judge

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    serve.add_arguments(parser)
    sys.exit(serve.main(parser.parse_args()))
