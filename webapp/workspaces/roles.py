"""Who may do what: the one table, from actions to roles and to the scopes of API tokens.

A new kind of object needs a line here for each thing that is done with it, a foreign key `workspace`, and
(where authors may do to their own what they may not to another's) an `owner_id`.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db import models


class Role(models.TextChoices):
    """From the one that sees to the one that decides who else may. Each may what those before it may."""

    VIEWER = "viewer"
    AUTHOR = "author"
    REVIEWER = "reviewer"
    MAINTAINER = "maintainer"
    ADMIN = "admin"

    @property
    def rank(self) -> int:
        return list(Role).index(self)


class Scope(models.TextChoices):
    """What an API token is good for. None includes another."""

    READ = "read"
    RUNS_WRITE = "runs:write"
    EVALUATIONS_WRITE = "evaluations:write"
    REVIEWS_WRITE = "reviews:write"
    WORKSPACE_ADMIN = "workspace:admin"


@dataclass(frozen=True)
class Rule:
    """What it takes to do something."""

    words: str  # "starting runs": the subject of a sentence
    role: Role | None  # at least this one; None: whoever is signed in, about themselves
    scope: Scope | None  # of the token, where there is one; None: no token, only a browser
    own: Role | None = None  # enough for what one made oneself; None: as for another's
    staff: str = ""  # a permission of the server's administrators that it takes


ACTIONS: dict[str, Rule] = {
    "server.view": Rule("asking the server about itself", None, Scope.READ),
    "model.view": Rule("seeing language models", None, Scope.READ),
    "model.edit": Rule(
        "setting up language models", None, None, staff="language_models.change_languagemodel"
    ),
    "account.view": Rule("seeing one's own account", None, Scope.READ),
    "account.edit": Rule("changing one's own account", None, None),
    "notification.edit": Rule("marking what one was told", None, Scope.REVIEWS_WRITE),
    "workspace.create": Rule("making a workspace", None, Scope.WORKSPACE_ADMIN),
    "invitation.accept": Rule("accepting an invitation", None, None),
    "workspace.view": Rule("seeing the workspace", Role.VIEWER, Scope.READ),
    "member.view": Rule("seeing who is a member", Role.VIEWER, Scope.READ),
    "usage.view": Rule("seeing what is used", Role.VIEWER, Scope.READ),
    "run.view": Rule("seeing runs", Role.VIEWER, Scope.READ),
    "run.create": Rule("starting runs", Role.AUTHOR, Scope.RUNS_WRITE),
    "run.cancel": Rule("stopping another's run", Role.MAINTAINER, Scope.RUNS_WRITE, own=Role.AUTHOR),
    "run.delete": Rule("deleting another's run", Role.MAINTAINER, Scope.RUNS_WRITE, own=Role.AUTHOR),
    "evaluation.view": Rule("seeing evaluations", Role.VIEWER, Scope.READ),
    "evaluation.create": Rule("judging candidates", Role.AUTHOR, Scope.EVALUATIONS_WRITE),
    "evaluation.cancel": Rule(
        "stopping another's evaluation", Role.MAINTAINER, Scope.EVALUATIONS_WRITE, own=Role.AUTHOR
    ),
    "evaluation.delete": Rule(
        "deleting another's evaluation", Role.MAINTAINER, Scope.EVALUATIONS_WRITE, own=Role.AUTHOR
    ),
    "review.view": Rule("seeing reviews", Role.VIEWER, Scope.READ),
    "review.create": Rule("asking for reviews", Role.AUTHOR, Scope.REVIEWS_WRITE),
    "review.comment": Rule("commenting", Role.AUTHOR, Scope.REVIEWS_WRITE),
    "review.push": Rule("changing the code under review", Role.AUTHOR, Scope.REVIEWS_WRITE),
    "review.edit": Rule("changing another's request", Role.MAINTAINER, Scope.REVIEWS_WRITE, own=Role.AUTHOR),
    "review.write": Rule("reviewing", Role.REVIEWER, Scope.REVIEWS_WRITE),
    "review_rule.edit": Rule("setting review rules", Role.MAINTAINER, Scope.WORKSPACE_ADMIN),
    "library.approve": Rule("approving into the library", Role.MAINTAINER, Scope.REVIEWS_WRITE),
    "profile.view": Rule("seeing agent profiles", Role.VIEWER, Scope.READ),
    "profile.edit": Rule("changing agent profiles", Role.MAINTAINER, Scope.WORKSPACE_ADMIN),
    "workspace.edit": Rule("changing the workspace", Role.ADMIN, Scope.WORKSPACE_ADMIN),
    "member.edit": Rule("changing members' roles", Role.ADMIN, Scope.WORKSPACE_ADMIN),
    "member.remove": Rule("removing members", Role.ADMIN, Scope.WORKSPACE_ADMIN, own=Role.VIEWER),
    "invitation.view": Rule("seeing invitations", Role.ADMIN, Scope.WORKSPACE_ADMIN),
    "invitation.create": Rule("inviting people", Role.ADMIN, Scope.WORKSPACE_ADMIN),
    "invitation.revoke": Rule("taking invitations back", Role.ADMIN, Scope.WORKSPACE_ADMIN),
    "token.view": Rule("seeing members' tokens", Role.ADMIN, Scope.WORKSPACE_ADMIN),
    "token.revoke": Rule("revoking members' tokens", Role.ADMIN, Scope.WORKSPACE_ADMIN),
    "quota.edit": Rule("setting quotas", Role.ADMIN, Scope.WORKSPACE_ADMIN),
    "audit.view": Rule("reading the audit log", Role.ADMIN, Scope.WORKSPACE_ADMIN),
}
