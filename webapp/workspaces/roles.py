"""The roles of a workspace, from the one that sees to the one that decides who else may. Each may what those
before it may."""

from __future__ import annotations

from django.db import models


class Role(models.TextChoices):
    VIEWER = "viewer"
    AUTHOR = "author"
    REVIEWER = "reviewer"
    MAINTAINER = "maintainer"
    ADMIN = "admin"

    @property
    def rank(self) -> int:
        return list(Role).index(self)
