"""The books: what each run takes of its language model, written with the event that says so."""

from __future__ import annotations

from agent.events import Answered, Spent
from webapp.runs.models import AgentRun, ModelUse


def book(run: AgentRun, event: Spent | Answered) -> None:
    """Call it where the event is stored, in the same transaction. Turns that are told again cost nothing."""
    if event.turn <= run.turns_again:
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
