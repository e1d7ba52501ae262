"""What a GPU worker does when the bell rings."""

from __future__ import annotations

from typing import Any

from celery import shared_task
from celery.signals import worker_ready
from django.db import close_old_connections

from webapp.cards import queue, services, worker
from webapp.live import upkeep


# Acknowledged late, so that a busy worker keeps no bell that an idle one could hear.
@shared_task(name=queue.EVALUATE, acks_late=True)
def evaluation_take() -> None:
    if worker.serving is None:  # only `kernelwright gpu-worker` hears these queues
        return
    try:
        worker.serving.take_one()
    finally:
        close_old_connections()


upkeep.keep(requeue=services.evaluations_ring, reconcile=services.evaluations_sweep)


@worker_ready.connect
def serving_start(sender: Any, **_: Any) -> None:
    """The consumer hears bells from now on; a card that is out of service is not to be rung for."""
    if worker.serving is None:
        return
    queues = [queue.queue_of(target) for target in worker.serving.card.targets]
    worker.serving.listen = worker.listener(sender, queues)
    worker.serving.start()
    for target in worker.serving.card.targets:
        queue.ring(target)
