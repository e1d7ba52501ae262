"""Sends work to the task queue, by name."""

from __future__ import annotations

import logging

from celery import current_app
from kombu.exceptions import OperationalError

logger = logging.getLogger(__name__)

MAIL = "reviews.mail"


def mail_enqueue() -> None:
    """A queue that is away loses nothing: the worker's upkeep looks for what is waiting too."""
    try:
        current_app.send_task(MAIL, retry=False)
    except OperationalError as error:
        logger.warning("mail waits for the worker's upkeep: %s", error)
