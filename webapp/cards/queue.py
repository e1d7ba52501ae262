"""The bell of the `gpu` queue: "something waits that code for this target can do". What waits, and in which
order, is in the database; a bell that is lost is rung again by whoever waits."""

from __future__ import annotations

import logging

from celery import current_app
from kombu.exceptions import OperationalError

EVALUATE = "cards.evaluate"
_RETRY = {"max_retries": 2, "interval_start": 0.2, "interval_step": 0.5, "interval_max": 1.0}

logger = logging.getLogger(__name__)


def queue_of(target: str) -> str:
    """One part a target, so that a card never hears of code that it cannot run."""
    return f"gpu.{target}"


def ring(target: str) -> None:
    """Never fails: it is rung again soon."""
    try:
        current_app.send_task(EVALUATE, queue=queue_of(target), retry=True, retry_policy=_RETRY)
    except OperationalError as error:
        logger.warning("the queue %s cannot be reached: %s", queue_of(target), error)
