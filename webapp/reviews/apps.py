"""Reviews hear of judgements that end."""

from __future__ import annotations

from django.apps import AppConfig


class ReviewsConfig(AppConfig):
    name = "webapp.reviews"

    def ready(self) -> None:
        from webapp.evaluations.services import ended
        from webapp.reviews.revisions import revision_judged

        if revision_judged not in ended:
            ended.append(revision_judged)
