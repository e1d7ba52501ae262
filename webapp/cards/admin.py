"""Cards in Django's admin: how they are, who has them, and a way to have a sick one looked at again."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from webapp.cards import selectors, services
from webapp.cards.models import Card, GpuEvaluation, GpuUse
from webapp.common.admin import NoAdding, NoDeleting, ReadOnly


@admin.register(Card)
class CardAdmin(NoAdding, NoDeleting):
    list_display = (
        "name",
        "host",
        "index",
        "state",
        "worker",
        "leased_until",
        "heartbeat_at",
        "quarantine",
        "heal_asked_at",
    )
    list_filter = ("host", "arch")
    search_fields = ("uuid", "name", "host")
    actions = ("heal",)
    readonly_fields = tuple(field.name for field in Card._meta.fields)

    @admin.display(description="state")
    def state(self, card: Card) -> str:
        return selectors.card_state(card, selectors.cards_busy())

    @admin.action(description="Heal: have the card's worker ask the driver again", permissions=["change"])
    def heal(self, request: HttpRequest, queryset: QuerySet[Card]) -> None:
        sick = [card for card in queryset if card.quarantine]
        for card in sick:
            services.card_heal_ask(card=card)
        said = (
            f"{len(sick)} asked for; their workers put a card back into service when its driver calls it well"
        )
        self.message_user(request, said if sick else "None of these cards is out of service.")


@admin.register(GpuEvaluation)
class GpuEvaluationAdmin(ReadOnly):
    list_display = ("id", "run_id", "target", "state", "attempts", "card", "asked_at", "ended_at", "message")
    list_filter = ("state", "target")
    list_select_related = ("card",)
    search_fields = ("id", "run__id")


@admin.register(GpuUse)
class GpuUseAdmin(ReadOnly):
    list_display: Any = ("evaluation", "run_id", "card", "seconds", "at")
    list_filter = ("card",)
    list_select_related = ("card",)
