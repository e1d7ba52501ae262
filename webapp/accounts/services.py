"""Writes of accounts."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from webapp.accounts.models import SignInLink, User
from webapp.common.secrets import secret, secret_hash

OWNER = "owner"
LINK_LIFETIME = timedelta(hours=1)


def owner_ensure() -> User:
    """The local owner, made at the first start; without a password until `manage.py changepassword owner`."""
    owner, created = User.objects.get_or_create(
        username=OWNER, defaults={"is_staff": True, "is_superuser": True}
    )
    if created:
        owner.set_unusable_password()
        owner.save(update_fields=["password"])
    return owner


def sign_in_link_create(*, user: User, lifetime: timedelta = LINK_LIFETIME) -> str:
    """A token for `/enter/<token>`. The user's earlier unused links stop working."""
    token = secret()
    now = timezone.now()
    with transaction.atomic():
        SignInLink.objects.filter(user=user, used_at=None).delete()
        SignInLink.objects.create(user=user, token_hash=secret_hash(token), expires_at=now + lifetime)
    return token


def sign_in_link_use(token: str) -> User | None:
    """The link's user, the first time and in time; None otherwise, whatever the reason."""
    now = timezone.now()
    links = SignInLink.objects.filter(
        token_hash=secret_hash(token), used_at=None, expires_at__gt=now, user__is_active=True
    )
    # One UPDATE, so that of two requests at once only one gets in.
    if not links.update(used_at=now):
        return None
    return SignInLink.objects.select_related("user").get(token_hash=secret_hash(token)).user
