"""Notifications by mail: each at once, or a digest a day, as every user wishes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.utils import timezone

from webapp.accounts.models import User
from webapp.reviews.models import Notification, NotificationSetting

logger = logging.getLogger(__name__)

Mail = NotificationSetting.Mail
DIGEST_EVERY = timedelta(hours=24)
#: A mail is a look, not an archive: what is more is counted.
_LINES_MAX = 100


def mails_send(*, now: datetime | None = None) -> int:
    """Sends what is due; returns how many mails. A mail that cannot be sent is tried again the next time."""
    if not settings.MAIL_CONFIGURED:
        return 0
    now = now or timezone.now()
    waiting = Notification.objects.filter(mailed_at=None).values_list("user", flat=True)
    sent = 0
    for user_id in sorted(set(waiting)):
        try:
            sent += _send_to(user_id, now)
        except OSError as error:  # smtplib's errors are these too
            logger.warning("mail to user %s could not be sent, and will be tried again: %s", user_id, error)
    return sent


def _send_to(user_id: int, now: datetime) -> int:
    """What one user is due. Only one worker at a time sends to a user: the setting's row is the lock."""
    with transaction.atomic():
        NotificationSetting.objects.get_or_create(user_id=user_id)
        setting = NotificationSetting.objects.select_for_update().select_related("user").get(user=user_id)
        waiting = Notification.objects.filter(user=user_id, mailed_at=None).select_related("request")
        if setting.mail == Mail.NONE or not setting.user.email or not setting.user.is_active:
            waiting.update(mailed_at=now)
            return 0
        if setting.mail == Mail.DIGEST and setting.digest_at and now - setting.digest_at < DIGEST_EVERY:
            return 0
        rows = list(waiting.order_by("created_at", "id"))
        if setting.mail == Mail.DIGEST:
            # What was read in the page meanwhile needs no mail.
            groups = [[it for it in rows if it.read_at is None]]
            setting.digest_at = now
            setting.save(update_fields=["digest_at"])
        else:
            groups = [[it] for it in rows]
        Notification.objects.filter(pk__in=[it.pk for it in rows]).update(mailed_at=now)
        groups = [group for group in groups if group and _is_member(group[0])]
        for group in groups:
            _message(setting.user, group).send()
    return len(groups)


def _is_member(notification: Notification) -> bool:
    memberships = notification.request.workspace.memberships
    return memberships.filter(user=notification.user_id).exists()


def _message(user: User, notifications: Sequence[Notification]) -> EmailMessage:
    first = notifications[0]
    many = len(notifications) > 1
    subject = f"{len(notifications)} things happened in your reviews" if many else first.text
    lines = [_line(it) for it in notifications[:_LINES_MAX]]
    if len(notifications) > _LINES_MAX:
        lines.append(f"... and {len(notifications) - _LINES_MAX} more")
    lines.append("\nHow you are told is set in the page, under your name.")
    return EmailMessage(
        subject="".join(letter for letter in subject if letter.isprintable())[:200],
        body="\n".join(lines),
        from_email=settings.DEFAULT_FROM_EMAIL,
        to=[user.email],
    )


def _line(notification: Notification) -> str:
    return f"- {notification.text}\n  {_address(notification)}"


def _address(notification: Notification) -> str:
    """Where it is, as a full address where the server knows its own."""
    origin = settings.CSRF_TRUSTED_ORIGINS[0] if settings.CSRF_TRUSTED_ORIGINS else ""
    path = f"{origin}/reviews/{notification.request_id}"
    return path if notification.thread_id is None else f"{path}#thread-{notification.thread_id}"
