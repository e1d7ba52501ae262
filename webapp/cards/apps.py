"""What `doctor` and `GET doctor` say of cards of other machines."""

from __future__ import annotations

from django.apps import AppConfig
from django.conf import settings
from django.db import DatabaseError

from webapp.common import services_found
from webapp.live.resources import Finding


class CardsConfig(AppConfig):
    name = "webapp.cards"
    verbose_name = "Cards of other machines"

    def ready(self) -> None:
        services_found.further.append(cards_found)


def cards_found() -> list[Finding]:
    """As their workers last said."""
    from webapp.cards.selectors import cards_served

    if settings.WORKER_IN_PROCESS:
        return [_missing("none: they need a broker, KERNELWRIGHT_BROKER_URL")]
    try:
        served = cards_served()
    except DatabaseError:
        return []
    if not served:
        return [_missing("none is alive")]
    said = "; ".join(
        f"{card}, {card.uuid}{f', OUT OF SERVICE: {card.quarantine}' if card.quarantine else ''}"
        for card in served
    )
    if all(card.quarantine for card in served):
        return [_missing(said, "kernelwright doctor --heal on its host, or heal it at /admin/")]
    return [Finding(name="gpu_workers", ok=True, detail=said, how="", needed=False)]


def _missing(detail: str, how: str = "kernelwright gpu-worker, on a machine with a card") -> Finding:
    return Finding(name="gpu_workers", ok=False, detail=detail, how=how, needed=False)
