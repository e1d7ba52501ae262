"""What every part of the API keeps."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class IdempotencyKey(models.Model):
    """A key that a client chose for one creating POST, and what came of it."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=200)
    body_hash = models.CharField(max_length=64)
    resource = models.CharField(max_length=64)  # the primary key of what was made
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["user", "key"], name="idempotency_key_once"),)
        indexes = (models.Index(fields=["created_at"], name="idempotency_key_oldest"),)

    def __str__(self) -> str:
        return self.key
