"""The books: what each run takes of its language model and of GPUs, written with the event that says so."""

from __future__ import annotations

from datetime import datetime

from django.db.models import F, Sum

from agent.events import Answered, Spent, TurnEnded
from webapp.accounts.models import User
from webapp.runs.models import AgentRun, ModelUse
from webapp.runs.selectors import turns_again
from webapp.workspaces.models import QuotaKind, Workspace
from webapp.workspaces.quotas import usage_add


def book(run: AgentRun, event: Spent | Answered) -> None:
    """Call it where the event is stored, in the same transaction. Turns that are told again cost nothing."""
    if event.turn in turns_again(run):
        return
    whose = {"user_id": run.owner_id, "workspace_id": run.workspace_id, "model": run.model}
    use, _ = ModelUse.objects.get_or_create(run=run, defaults=whose)
    if isinstance(event, Answered):
        if use.first_token_seconds is None:
            use.first_token_seconds = event.first_token_seconds
    else:
        use.requests += 1
        use.prompt_tokens += event.prompt_tokens
        use.completion_tokens += event.completion_tokens
        use.estimated = use.estimated or event.estimated
        if event.cost is not None:
            use.cost = (use.cost or 0.0) + event.cost
    use.save()


def book_gpu(run: AgentRun, event: TurnEnded) -> None:
    """The same for the seconds in which a turn had a card."""
    if not event.evaluation.card_seconds or event.turn in turns_again(run):
        return
    usage_add(
        workspace_id=run.workspace_id,
        user_id=run.owner_id,
        kind=QuotaKind.GPU_SECONDS,
        amount=event.evaluation.card_seconds,
    )


def tokens_since(workspace: Workspace | None, user: User | None, since: datetime) -> float:
    """Tokens of language models, prompts and answers, in runs that began then or later, of a workspace (None:
    of any) and of a user (None: of anybody)."""
    uses = ModelUse.objects.filter(started_at__gte=since)
    if workspace is not None:
        uses = uses.filter(workspace=workspace)
    if user is not None:
        uses = uses.filter(user=user.pk)
    total = uses.aggregate(total=Sum(F("prompt_tokens") + F("completion_tokens")))["total"]
    return float(total or 0)
