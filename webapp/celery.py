"""The task queue: `celery -A webapp worker` on a cluster, threads inside the server on a laptop."""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")

app = Celery("kernelwright")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
