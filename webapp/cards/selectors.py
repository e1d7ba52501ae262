"""Reads of cards and of what waits for them."""

from __future__ import annotations

import socket
from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from django.db.models import F, Q, QuerySet, Window
from django.db.models.functions import Now, RowNumber
from django.utils import timezone

from webapp.cards.models import Card, GpuEvaluation
from webapp.live.resources import CardState
from webapp.live.worker import worker_is_alive

State = GpuEvaluation.State
#: Who asked has not ended; else nobody waits for it any more. An outer join: one of the two is not there.
WANTED = Q(run__ended_at=None) & Q(given__ended_at=None)


@dataclass(frozen=True)
class Place:
    """Where a run's candidate is: waiting in the `gpu` queue, or on a card."""

    position: int | None  # 1 is next; None when it is being judged
    device: str  # "NVIDIA H200 on node7"; empty while it waits


def cards_served() -> list[Card]:
    """Those whose worker lives, also the ones out of service."""
    return [card for card in Card.objects.filter(leased_until__gt=Now()) if process_lives(card.worker)]


def cards_for(target: str) -> list[Card]:
    """Those that would take code for `target` now."""
    return [card for card in cards_served() if not card.quarantine and target in card.targets]


def process_lives(worker: str) -> bool:
    """Whether a worker that has not been silent for long lives: on this host its process is looked at."""
    if worker.partition("/")[0] != socket.gethostname():
        return bool(worker)
    return worker_is_alive(worker, None)


def worker_lives(evaluation: GpuEvaluation) -> bool:
    """Whether who took it still has its card's lease. Who lost it may be at work, but nobody will listen."""
    held = Card.objects.filter(evaluations=evaluation, worker=evaluation.worker, leased_until__gt=Now())
    return held.exists() and process_lives(evaluation.worker)


def card_state(card: Card, busy: Collection[int]) -> CardState:
    """`busy`: keys of cards with an evaluation at work."""
    if card.leased_until is None or card.leased_until < timezone.now() or not process_lives(card.worker):
        return "away"
    if card.quarantine:
        return "quarantined"
    return "busy" if card.pk in busy else "free"


def cards_busy() -> set[int]:
    working = GpuEvaluation.objects.filter(state=State.WORKING, card__isnull=False)
    return set(working.values_list("card_id", flat=True))


def waiting() -> QuerySet[GpuEvaluation]:
    """In their order."""
    return GpuEvaluation.objects.filter(WANTED, state=State.WAITING)


def positions() -> dict[UUID, int]:
    """Of every waiting evaluation, among those for the same target; 1 is next."""
    place = Window(RowNumber(), partition_by=[F("target")], order_by=[F("asked_at").asc(), F("id").asc()])
    return dict(waiting().annotate(place=place).values_list("pk", "place"))


def places(run_ids: Collection[UUID]) -> dict[UUID, Place]:
    """Of those runs that wait for a card or are on one."""
    if not run_ids:
        return {}
    open_ones = GpuEvaluation.objects.filter(
        run_id__in=run_ids, run__ended_at=None, state__in=[State.WAITING, State.WORKING]
    ).select_related("card")
    found = list(open_ones)
    numbers = positions() if any(it.state == State.WAITING for it in found) else {}
    return {
        it.run_id or it.pk: Place(position=numbers.get(it.pk), device="" if it.card is None else str(it.card))
        for it in found
    }
