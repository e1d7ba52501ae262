"""A POST that creates something may be sent again: the same key with the same body gives the same thing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from django.db import IntegrityError, models, transaction
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter
from pydantic import BaseModel
from rest_framework.request import Request

from webapp.common.errors import ProblemError
from webapp.common.models import IdempotencyKey

if TYPE_CHECKING:
    from webapp.accounts.models import User

Made = TypeVar("Made", bound=models.Model)

LIFETIME = timedelta(hours=24)
CHARACTERS_MAX = 200
PARAMETER = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "pattern": r"^[!-~]{1,200}$"},
    OpenApiParameter.HEADER,
    description="Chosen by the client; the same key and body give the same result again (24 hours)",
)


def key_of(request: Request) -> str:
    """The request's key; empty without one. Raises ProblemError for one that cannot be taken."""
    given = request.headers.get("Idempotency-Key")
    if given is None:
        return ""
    key = str(given)
    if not 1 <= len(key) <= CHARACTERS_MAX or not all("!" <= letter <= "~" for letter in key):
        detail = f"Idempotency-Key: 1 to {CHARACTERS_MAX} printable ASCII characters without spaces are taken"
        raise ProblemError(400, "invalid", detail)
    return key


def created_once(
    *,
    user: User,
    key: str,
    what: str,
    body: BaseModel | None,
    create: Callable[[], Made],
    find: Callable[[str], Made | None],
) -> tuple[Made, bool]:
    """What `create` makes, and whether it is new: with a key that was used for `what` and the same body, what
    came of it then, as `find` finds it by its primary key (None: it is gone, and is made anew).

    Key and thing are stored in one transaction. Raises ProblemError for a key used with another request.
    """
    if not key:
        return create(), True
    text = f"{what}\n{body.model_dump_json() if body is not None else ''}"
    body_hash = hashlib.sha256(text.encode()).hexdigest()
    IdempotencyKey.objects.filter(created_at__lt=timezone.now() - LIFETIME).delete()
    if (earlier := _earlier(user, key, body_hash, find)) is not None:
        return earlier, False
    try:
        with transaction.atomic():
            made = create()
            IdempotencyKey.objects.create(user=user, key=key, body_hash=body_hash, resource=str(made.pk))
    except IntegrityError:  # the same request, at the same time, was faster
        if (earlier := _earlier(user, key, body_hash, find)) is not None:
            return earlier, False
        raise
    return made, True


def _earlier(user: User, key: str, body_hash: str, find: Callable[[str], Made | None]) -> Made | None:
    record = IdempotencyKey.objects.filter(user=user, key=key).first()
    if record is None:
        return None
    if record.body_hash != body_hash:
        detail = "This Idempotency-Key was used with another request. Use a new key for a new request."
        raise ProblemError(409, "idempotency-key-reused", detail)
    if (found := find(record.resource)) is None:
        record.delete()
    return found
