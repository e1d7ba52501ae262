"""Between REST and the records of cards."""

from __future__ import annotations

from django.db.models import Count

from webapp.cards import selectors
from webapp.cards.models import Card
from webapp.live.resources import DeviceInfo, DeviceList, GpuPlace


def gpu_place(place: selectors.Place) -> GpuPlace:
    return GpuPlace(
        state="working" if place.position is None else "waiting",
        position=place.position,
        device=place.device,
    )


def device_list() -> DeviceList:
    """Every card that was ever served, by host."""
    busy = selectors.cards_busy()
    counts = selectors.waiting().order_by().values("target").annotate(of=Count("pk"))
    waiting = {row["target"]: row["of"] for row in counts}
    return DeviceList(results=[_device(card, busy, waiting) for card in Card.objects.all()])


def _device(card: Card, busy: set[int], waiting: dict[str, int]) -> DeviceInfo:
    return DeviceInfo(
        uuid=card.uuid,
        name=card.name,
        arch=card.arch,
        host=card.host,
        index=card.index,
        memory_mib=card.memory_mib,
        driver=card.driver,
        state=selectors.card_state(card, busy),
        targets=card.targets,
        waiting=sum(waiting.get(target, 0) for target in card.targets),
        heartbeat_at=card.heartbeat_at,
        quarantine=card.quarantine,
    )
