"""What is in the library."""

from __future__ import annotations

import uuid

from django.db import models


class LibraryEntry(models.Model):
    """One version of an approved candidate. Never changed: what replaces it is the next version."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(
        "workspaces.Workspace", on_delete=models.CASCADE, related_name="library_entries"
    )
    title = models.CharField(max_length=200)
    version = models.PositiveIntegerField()  # of this title, from 1
    revision = models.ForeignKey(
        "reviews.Revision", on_delete=models.RESTRICT, related_name="library_entries"
    )
    request = models.OneToOneField(
        "reviews.ReviewRequest", on_delete=models.RESTRICT, related_name="library_entry"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("workspace", "title", "-version")
        verbose_name_plural = "library entries"
        constraints = (
            models.UniqueConstraint(fields=["workspace", "title", "version"], name="library_version_unique"),
        )

    def __str__(self) -> str:
        return f"{self.title} {self.version}"
