"""Reads of accounts."""

from __future__ import annotations

from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied

from sandbox.targets import TARGETS
from webapp.accounts.models import User
from webapp.language_models.selectors import policy_options
from webapp.live.resources import Options, PolicyOption, Session, UserInfo


def signed_in(user: User | AnonymousUser) -> User:
    """The user, where a permission has let only signed-in ones through. Raises PermissionDenied otherwise."""
    if not isinstance(user, User):
        raise PermissionDenied
    return user


def session_of(user: User, csrf_token: str) -> Session:
    """What a signed-in page needs to know at its start."""
    return Session(
        user=UserInfo(id=user.pk, username=user.username, is_staff=user.is_staff),
        options=options(),
        csrf_token=csrf_token,
        version=settings.VERSION,
    )


def options() -> Options:
    return Options(
        policies=[
            PolicyOption(name="builtin", title="Built-in translator", available=True, reason=""),
            *policy_options(),
        ],
        targets=sorted(TARGETS),
        default_target=settings.RUN_TARGET,
        backends=["auto", "emulator"],
        turns_default=settings.TURNS_DEFAULT,
        turns_default_llm=settings.TURNS_DEFAULT_LLM,
        turns_max=settings.TURNS_MAX,
        turns_max_llm=settings.TURNS_MAX_LLM,
        source_bytes_max=settings.SOURCE_BYTES_MAX,
    )


def oidc_connected(user: User) -> bool:
    """Whether the user can sign in with the identity provider."""
    accounts = SocialAccount.objects.filter(user=user.pk, provider=settings.OIDC["provider_id"])
    return bool(accounts.exists())
