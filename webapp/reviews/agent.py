"""A thread is sent to the agent: a new run that starts from the head, told what was said."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from webapp.accounts.models import User
from webapp.live.resources_reviews import AgentAsk
from webapp.reviews import notifications
from webapp.reviews.anchoring import Range, quoted
from webapp.reviews.changes import changing, locked_request, say
from webapp.reviews.models import AgentTask, Comment, Thread
from webapp.reviews.placing import is_on_base
from webapp.runs.models import AgentRun
from webapp.runs.selectors import run_trajectory
from webapp.runs.serializers import INSTRUCTION_MAX, run_request
from webapp.runs.services import agent_run_create
from webapp.workspaces.access import require

_FOLLOWS = "The language model {model} starts from the head and is told what this thread says."
_DEAF = (
    "The built-in policy cannot follow words. It judges the head as it stands, translates the reference "
    "itself, and takes the next steps that the measurements argue for, whatever this thread asks for."
)


def thread_send_to_agent(*, user: User, thread: Thread, ask: AgentAsk) -> tuple[AgentRun, bool, str]:
    """The run, whether it follows words, and a sentence on what it does. Raises ProblemError, Denied."""
    require(user, "run.create", thread)
    with transaction.atomic():
        request = locked_request(thread.request)
        chain = request.head.chain
        policy: str = ask.policy or ("llm" if ask.model else chain.policy)
        body: dict[str, object] = {
            "source": chain.source,
            "filename": chain.filename,
            "entry": chain.entry,
            "inputs": chain.inputs,
            "policy": policy,
            "backend": chain.backend,
            "target": chain.target,
            "turns": ask.turns,
            "start_from": request.head.source,
            "workspace": request.workspace.slug,
        }
        if policy == "llm":
            body["model"] = ask.model or (chain.model if chain.policy == "llm" else None)
            body["instruction"] = instruction_of(thread)
        elif ask.model is not None:
            body["model"] = ask.model  # refused with the sentence that says why
        run, _ = agent_run_create(user=user, request=run_request(body))
        AgentTask.objects.create(thread=thread, run=run)
        follows = policy == "llm"
        said = _FOLLOWS.format(model=run.model) if follows else _DEAF
        with changing(request, ended=True) as locked:
            _say_in(thread, f"{user.get_username()} sent this to the agent, run {run.pk}. {said}")
            say(locked, "review_request.sent_to_agent", {"thread": str(thread.pk), "run": str(run.pk)})
    return run, follows, said


def instruction_of(thread: Thread) -> str:
    """What was said, with the lines that it is about."""
    head, placed = thread.request.head, thread.placed_on
    lines = Range(thread.place_line, thread.place_end_line)
    where = f"lines {lines.line} to {lines.end_line}"
    if thread.gone or placed.pk != head.pk or is_on_base(thread.request, thread):
        where = "lines that are not in this version any more"
    parts = [f"In a review of this kernel people say of {where}:", quoted(placed.source, lines), ""]
    for comment in thread.comments.filter(draft=False, deleted=False, by_agent=False).select_related(
        "author"
    ):
        name = comment.author.get_username() if comment.author else "somebody"
        parts.append(f"{name}: {comment.body}".rstrip())
        if comment.suggestion is not None:
            parts += ["suggested instead:", comment.suggestion["text"].rstrip("\n")]
    return "\n".join(parts)[:INSTRUCTION_MAX]


def run_told(run_id: UUID) -> None:
    """A run has ended: what came of it is said in the thread that it was given, once."""
    task = AgentTask.objects.filter(run=run_id, told=False).select_related("thread__request", "run").first()
    if task is None:
        return
    with changing(task.thread.request, ended=True) as locked:
        if not AgentTask.objects.filter(pk=task.pk, told=False).update(told=True):
            return
        text = _outcome(task.run)
        _say_in(task.thread, text)
        users = notifications.everybody(locked)
        told = f"The agent's run for a thread of {locked} has ended"
        notifications.notify(locked, users, kind="agent", text=told, thread=task.thread)
        say(locked, "review_request.agent_answered", {"thread": str(task.thread_id), "run": str(run_id)})


def _outcome(run: AgentRun) -> str:
    """Every turn in a line, and how one becomes the head."""
    lines = [f"Run {run.pk} has ended: {run.message or run.state}."]
    for turn in run_trajectory(run).turns:
        if turn.evaluation is not None:
            score = turn.evaluation.score
            said = turn.evaluation.verdict if score is None else f"passed, structural score {score:.1f}"
            lines.append(f"- turn {turn.number}, {turn.title}: {said}")
    if run.best_turn is not None and run.best_turn > 1:
        lines.append(f"Turn {run.best_turn} is the best: take it in as a revision.")
    else:
        lines.append("No turn is better than the head.")
    return "\n".join(lines)


def _say_in(thread: Thread, body: str) -> Comment:
    request = locked_request(thread.request)
    return Comment.objects.create(
        workspace_id=thread.workspace_id, thread=thread, by_agent=True, revision=request.head, body=body
    )


def runs_reconcile() -> int:
    """Tells of runs that ended while nobody listened. Returns how many."""
    ended = AgentTask.objects.filter(told=False, run__ended_at__isnull=False).values_list("run", flat=True)
    missed = list(ended)
    for run_id in missed:
        run_told(run_id)
    return len(missed)
