"""Reviews hear of judgements and runs that end."""

from __future__ import annotations

from django.apps import AppConfig


class ReviewsConfig(AppConfig):
    name = "webapp.reviews"

    def ready(self) -> None:
        from webapp.evaluations.services import ended as evaluations_ended
        from webapp.reviews.agent import run_told
        from webapp.reviews.revisions import revision_judged
        from webapp.runs.services import ended as runs_ended

        if revision_judged not in evaluations_ended:
            evaluations_ended.append(revision_judged)
        if run_told not in runs_ended:
            runs_ended.append(run_told)
