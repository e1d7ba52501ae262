"""Users and sign-in links."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from django.contrib.auth.models import AbstractUser
from django.db import models

if TYPE_CHECKING:
    from webapp.workspaces.models import ApiToken


class User(AbstractUser):
    """A person. Our own class from the start, so that it can grow without changing every foreign key."""

    #: The API token by which the user acts in this request; None for a browser. Set by the authentication, so
    #: that whoever asks what the user may see or do need not be told of it.
    token: ApiToken | None = None


class SignInLink(models.Model):
    """A link that signs its user in, once. Only the token's hash is kept."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="sign_in_links")
    token_hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"sign-in link of {self.user_id}, {'used' if self.used_at else 'unused'}"


class BrowserSession(models.Model):
    """A signed-in browser, for its user to recognise. What signs it in is Django's session of that key."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="browser_sessions")
    session_key = models.CharField(max_length=40, unique=True)
    agent = models.CharField(max_length=300, blank=True)
    address = models.CharField(max_length=64, blank=True)
    signed_in_at = models.DateTimeField(auto_now_add=True)
    last_seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.agent or "a browser"
