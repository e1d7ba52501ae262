"""Writes of review rules: who is asked for which requests of a workspace."""

from __future__ import annotations

from django.db import transaction

from webapp.accounts.models import User
from webapp.common.errors import ProblemError
from webapp.live.resources_reviews import ReviewRuleWrite
from webapp.reviews.models import ReviewRule
from webapp.reviews.requests import members_named
from webapp.workspaces import audit
from webapp.workspaces.access import require
from webapp.workspaces.models import Workspace

RULES_MAX = 200


def rule_create(*, user: User, workspace: Workspace, rule: ReviewRuleWrite) -> ReviewRule:
    require(user, "review_rule.edit", workspace)
    if not rule.path_glob and not rule.tag:
        raise ProblemError(
            400, "invalid", "Give path_glob, tag or both: a rule for everything is path_glob *"
        )
    reviewers = members_named(workspace, rule.reviewers)
    with transaction.atomic():
        if ReviewRule.objects.filter(workspace=workspace).count() >= RULES_MAX:
            raise ProblemError(409, "too-many-rules", f"A workspace has at most {RULES_MAX} review rules.")
        made = ReviewRule.objects.create(workspace=workspace, path_glob=rule.path_glob, tag=rule.tag)
        made.reviewers.set(reviewers)
        detail = rule.model_dump(mode="json")
        audit.record("review_rule.edit", actor=user, workspace=workspace, thing=made, detail=detail)
    return made


def rule_delete(*, user: User, rule: ReviewRule) -> None:
    require(user, "review_rule.edit", rule)
    with transaction.atomic():
        audit.record(
            "review_rule.edit", actor=user, workspace=rule.workspace, thing=rule, detail={"deleted": True}
        )
        rule.delete()
