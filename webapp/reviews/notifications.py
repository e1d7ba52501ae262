"""Who is told what: in the page at once, by mail as each user wishes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import partial

from django.conf import settings as server
from django.db import transaction
from django.utils import timezone

from webapp.accounts.models import User
from webapp.reviews import queue
from webapp.reviews.models import Comment, Notification, NotificationSetting, ReviewRequest, Thread
from webapp.workspaces import audit

Mail = NotificationSetting.Mail

_MENTION = re.compile(r"(?<![\w@/.])@([\w.@+-]{1,150})")


def notify(
    request: ReviewRequest,
    users: Iterable[User],
    *,
    kind: str,
    text: str,
    actor: User | None = None,
    thread: Thread | None = None,
) -> None:
    """One sentence for each, but for who did it and for those who are no members any more."""
    wanted = {user.pk for user in users} - {None if actor is None else actor.pk}
    members = User.objects.filter(pk__in=wanted, is_active=True, memberships__workspace=request.workspace_id)
    settings = dict(NotificationSetting.objects.filter(user__in=members).values_list("user", "mail"))
    made = [
        Notification(
            user=user,
            request=request,
            thread=thread,
            actor=actor,
            kind=kind,
            text=text[:500],
            # Who wants no mail has none waiting, also when they change their mind later.
            mailed_at=timezone.now() if _unmailed(user, settings.get(user.pk)) else None,
        )
        for user in members.distinct()
    ]
    Notification.objects.bulk_create(made)
    if any(settings.get(it.user_id) == Mail.EACH for it in made):
        transaction.on_commit(partial(queue.mail_enqueue))


def _unmailed(user: User, wish: str | None) -> bool:
    return wish == Mail.NONE or not user.email or not server.MAIL_CONFIGURED


def everybody(request: ReviewRequest) -> list[User]:
    """Who takes part: the author, the reviewers, and who has said something."""
    said = Comment.objects.filter(thread__request=request, draft=False).values("author")
    asked = request.reviewers.values("user")
    taking_part = User.objects.filter(pk__in=asked) | User.objects.filter(pk__in=said)
    if request.author_id is not None:
        taking_part |= User.objects.filter(pk=request.author_id)
    return list(taking_part.distinct())


def comments_told(request: ReviewRequest, comments: Collection[Comment], *, actor: User) -> None:
    """Of what was just published: those mentioned are told so, others in the thread that there is one."""
    for comment in comments:
        mentioned = mentioned_in(comment.body)
        text = f"{actor.get_username()} mentioned you in {request}"
        notify(request, mentioned, kind="mention", text=text, actor=actor, thread=comment.thread)
        said = Comment.objects.filter(thread=comment.thread_id, draft=False).values("author")
        talking = User.objects.filter(pk__in=said) | User.objects.filter(pk=request.author_id or 0)
        others = talking.exclude(pk__in=[it.pk for it in mentioned]).distinct()
        text = f"{actor.get_username()} wrote in {request}: {_first_words(comment.body)}"
        notify(request, others, kind="comment", text=text, actor=actor, thread=comment.thread)


def mentioned_in(body: str) -> list[User]:
    """The users whose names stand after an @. A full stop at the end of a sentence is none of the name."""
    names = {name for found in _MENTION.findall(body) for name in (found, found.rstrip(".-+@"))}
    return list(User.objects.filter(username__in=names))


def _first_words(body: str) -> str:
    line = next((line for line in body.splitlines() if line.strip()), "a suggestion")
    return line if len(line) <= 120 else line[:119] + "…"


def notifications_read(*, user: User, ids: Collection[int] | None) -> int:
    """Marks these, or all; returns how many were not read yet."""
    mine = Notification.objects.filter(user=user.pk, read_at=None)
    if ids is not None:
        mine = mine.filter(pk__in=ids)
    return mine.update(read_at=timezone.now())


def setting_of(user: User) -> NotificationSetting:
    return NotificationSetting.objects.get_or_create(user=user)[0]


def setting_save(*, user: User, mail: str) -> NotificationSetting:
    setting = setting_of(user)
    setting.mail = mail
    with transaction.atomic():
        setting.save(update_fields=["mail"])
        audit.record("notification.edit", actor=user, workspace=None, detail={"mail": mail})
    return setting
