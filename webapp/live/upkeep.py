"""What a worker looks after from time to time: work an earlier queue lost, work of workers that are gone.

Every kind of work registers here when its tasks are loaded.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from celery.signals import worker_ready, worker_shutting_down
from django.db import close_old_connections

from webapp.live.worker import stopping

logger = logging.getLogger(__name__)

SECONDS = 30.0
Job = Callable[[], int]

_requeue: list[Job] = []
_reconcile: list[Job] = []


def keep(*, requeue: Job, reconcile: Job) -> None:
    """`requeue` once a worker is ready, `reconcile` again and again; each returns how many it found."""
    _requeue.append(requeue)
    _reconcile.append(reconcile)


def reconcile() -> int:
    """Marks what workers that are gone left behind. Returns how much."""
    return sum(job() for job in _reconcile)


@worker_ready.connect
def upkeep_start(**_: Any) -> None:
    """Sends again what an earlier queue may have lost; from now on looks for work whose worker is gone."""
    threading.Thread(target=_upkeep, name="upkeep", daemon=True).start()


@worker_shutting_down.connect
def interrupt(**_: Any) -> None:
    """Lets work in flight end as interrupted, instead of keeping the worker until it is through."""
    stopping.set()


def _upkeep() -> None:
    """Until the process stops; a database that is away for a while is asked again."""
    requeued = False
    while True:
        try:
            if not requeued:
                for job in _requeue:
                    job()
                requeued = True
            reconcile()
        except Exception:
            logger.exception("work of workers that are gone could not be looked for")
        close_old_connections()
        if stopping.wait(SECONDS):
            return
