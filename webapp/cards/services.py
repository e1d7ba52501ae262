"""Writes of cards: leased, kept, put out of service; evaluations asked for, taken, finished, taken over.

Every change of an evaluation names who it believes is at work on it, so that a worker which was given up, and
comes back, changes nothing. All leases run on the database's clock.
"""

from __future__ import annotations

import socket
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from sandbox.gpu.devices import Device
from sandbox.progress import Progress
from sandbox.targets import TARGETS
from webapp.cards import artifacts, queue, selectors
from webapp.cards.models import Card, GpuEvaluation, GpuProgress, GpuUse
from webapp.cards.wire import packed
from webapp.live import publish

BEAT_SECONDS = 2.0
LEASE = timedelta(seconds=20)
#: A worker that dies with an evaluation may have been killed by it: it is tried once more, not for ever.
ATTEMPTS = 2

#: After a run's end, whoever asked has had time enough to forget an evaluation.
ORPHANED = timedelta(minutes=1)

State = GpuEvaluation.State

# --- Cards --------------------------------------------------------------------------------------------------


def card_lease(*, device: Device, worker: str) -> Card | None:
    """The card, now this worker's; None while another has it. A lease that has run out, or whose process on
    this host is gone, is taken over. Two that claim at once: one UPDATE finds the other's."""
    described = {
        "name": device.name,
        "arch": device.arch,
        "host": socket.gethostname(),
        "index": device.index,
        "driver": device.driver,
        "memory_mib": device.memory_mib,
        "targets": sorted(target for target in TARGETS if device.runs(target)),
    }
    card, _ = Card.objects.update_or_create(uuid=device.uuid, defaults=described)
    free = Q(worker__in=["", worker]) | Q(leased_until=None) | Q(leased_until__lt=Now())
    if not selectors.process_lives(card.worker):
        free |= Q(worker=card.worker)
    taken = Card.objects.filter(free, pk=card.pk).update(
        worker=worker, leased_until=Now() + LEASE, heartbeat_at=Now()
    )
    if not taken:
        return None
    card.refresh_from_db()
    return card


def card_beat(*, card: Card) -> bool:
    """Keeps the lease. False when another has it."""
    mine = Card.objects.filter(pk=card.pk, worker=card.worker)
    return bool(mine.update(leased_until=Now() + LEASE, heartbeat_at=Now()))


def card_release(*, card: Card) -> None:
    Card.objects.filter(pk=card.pk, worker=card.worker).update(worker="", leased_until=None)


def card_quarantine(*, card: Card, reason: str) -> None:
    """Says that its worker found it sick."""
    Card.objects.filter(pk=card.pk).update(quarantine=reason, quarantined_at=Now(), heal_asked_at=None)


def card_healed(*, card: Card) -> None:
    """Back in service: what waits is rung for again."""
    Card.objects.filter(pk=card.pk).update(quarantine="", quarantined_at=None, heal_asked_at=None)
    for target in set(selectors.waiting().filter(target__in=card.targets).values_list("target", flat=True)):
        queue.ring(target)


def card_heal_ask(*, card: Card) -> None:
    """Its worker looks at the card again within seconds, and says what it found."""
    Card.objects.filter(pk=card.pk).exclude(quarantine="").update(heal_asked_at=Now())


# --- Evaluations: asked for ---------------------------------------------------------------------------------


def evaluation_ask(
    *, evaluation_id: UUID, run_id: UUID | None, given_id: UUID | None, target: str, request: str
) -> GpuEvaluation:
    """`run_id` or `given_id` says who asks."""
    evaluation = GpuEvaluation.objects.create(
        id=evaluation_id, run_id=run_id, given_id=given_id, target=target, request=request
    )
    queue.ring(target)
    _tell(evaluation)
    return evaluation


def evaluation_cancel(*, evaluation: GpuEvaluation) -> None:
    """Nobody wants it any more. Who works on it sees that within a second, and stops."""
    GpuEvaluation.objects.filter(pk=evaluation.pk, state__in=[State.WAITING, State.WORKING]).update(
        state=State.CANCELLED, ended_at=Now()
    )
    _tell(evaluation)


def evaluation_fail(*, evaluation: GpuEvaluation, message: str) -> None:
    GpuEvaluation.objects.filter(pk=evaluation.pk, state__in=[State.WAITING, State.WORKING]).update(
        state=State.FAILED, ended_at=Now(), message=message
    )
    evaluation.refresh_from_db()
    _tell(evaluation)


def evaluation_take_back(*, evaluation: GpuEvaluation) -> None:
    """From a worker that is gone: once more from the start, or given up. `evaluation` as it was read."""
    if evaluation.attempts >= ATTEMPTS:
        message = (
            f"the GPU worker died in the middle of this candidate, and so did the one that tried it again "
            f"({evaluation.worker.partition('/')[0]}); the worker's log has the details"
        )
        _mine(evaluation).update(state=State.FAILED, ended_at=Now(), message=message)
    elif _wait_again(evaluation, attempts=evaluation.attempts):
        queue.ring(evaluation.target)
    evaluation.refresh_from_db()
    _tell(evaluation)


def evaluation_forget(*, evaluation: GpuEvaluation) -> None:
    """What was handed over and said meanwhile: whoever asked has read it. Raises ArtifactProblem."""
    store = artifacts.store()
    for name in filter(None, (evaluation.request, evaluation.result)):
        store.delete(name)
    GpuProgress.objects.filter(evaluation=evaluation).delete()
    GpuEvaluation.objects.filter(pk=evaluation.pk).update(request="", result="")


def evaluations_sweep() -> int:
    """Ends and forgets those that nobody waits for any more. Returns how many."""
    long_ago = Now() - ORPHANED
    ended = Q(run__ended_at__lt=long_ago) | Q(given__ended_at__lt=long_ago)
    orphans = GpuEvaluation.objects.filter(ended).exclude(request="")
    found = list(orphans)
    for evaluation in found:
        evaluation_cancel(evaluation=evaluation)
        evaluation_forget(evaluation=evaluation)
    return len(found)


def evaluations_ring() -> int:
    """Rings for all that waits: a broker may have lost its bells. Returns for how many targets."""
    targets = set(selectors.waiting().values_list("target", flat=True))
    for target in targets:
        queue.ring(target)
    return len(targets)


# --- Evaluations: worked on ---------------------------------------------------------------------------------


def evaluation_take(*, card: Card) -> GpuEvaluation | None:
    """The one that has waited longest for such a card, now this worker's. None when there is none, or when
    the card is not this worker's any more."""
    while True:
        oldest = selectors.waiting().filter(target__in=card.targets).order_by("asked_at", "id").first()
        held = Card.objects.filter(pk=card.pk, worker=card.worker, quarantine="", leased_until__gt=Now())
        if oldest is None or not held.exists():
            return None
        taken = GpuEvaluation.objects.filter(pk=oldest.pk, state=State.WAITING).update(
            state=State.WORKING,
            card=card,
            worker=card.worker,
            attempts=F("attempts") + 1,
            started_at=Now(),
        )
        if taken:
            oldest.refresh_from_db()
            _tell(oldest)
            return oldest


def evaluation_is_mine(*, evaluation: GpuEvaluation) -> bool:
    """Whether its worker should go on: nobody cancelled it or took it back, and somebody waits for it."""
    return _mine(evaluation).filter(selectors.WANTED).exists()


def evaluation_say(*, evaluation: GpuEvaluation, progress: Progress) -> None:
    GpuProgress.objects.create(evaluation=evaluation, said=packed(progress))


def evaluation_finish(*, evaluation: GpuEvaluation, result: str, seconds: float) -> bool:
    """Its end, and what is charged for it: `seconds` of the card. False when it was not this worker's any
    more; then nothing is changed and nothing charged."""
    with transaction.atomic():
        if not _mine(evaluation).update(state=State.DONE, result=result, ended_at=Now()):
            return False
        assert evaluation.card_id is not None
        if seconds > 0:
            GpuUse.objects.get_or_create(
                evaluation=evaluation.pk,
                defaults={
                    "run_id": evaluation.run_id,
                    "given_id": evaluation.given_id,
                    "card_id": evaluation.card_id,
                    "seconds": seconds,
                },
            )
    _tell(evaluation)
    return True


def evaluation_put_back(*, evaluation: GpuEvaluation) -> None:
    """By a worker that is told to stop: that is no death, and no attempt."""
    if _wait_again(evaluation, attempts=evaluation.attempts - 1):
        queue.ring(evaluation.target)


def _wait_again(evaluation: GpuEvaluation, *, attempts: int) -> bool:
    return bool(
        _mine(evaluation).update(
            state=State.WAITING, attempts=attempts, worker="", card=None, started_at=None
        )
    )


def _mine(evaluation: GpuEvaluation) -> QuerySet[GpuEvaluation]:
    return GpuEvaluation.objects.filter(
        pk=evaluation.pk, state=State.WORKING, worker=evaluation.worker, attempts=evaluation.attempts
    )


def _tell(evaluation: GpuEvaluation) -> None:
    """Lists show where a run's candidate is."""
    if evaluation.run is not None:
        publish.run_changed(evaluation.run.workspace_id, evaluation.run.pk)
