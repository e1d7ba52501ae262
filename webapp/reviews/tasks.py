"""What a worker does for reviews: mail, and what was missed."""

from __future__ import annotations

from celery import shared_task
from django.db import close_old_connections

from webapp.live import upkeep
from webapp.reviews import agent, mail, queue, revisions


@shared_task(name=queue.MAIL)
def send_mail() -> None:
    try:
        mail.mails_send()
    finally:
        close_old_connections()


def reconcile() -> int:
    return revisions.revisions_reconcile() + agent.runs_reconcile() + mail.mails_send()


upkeep.keep(requeue=lambda: 0, reconcile=reconcile)
