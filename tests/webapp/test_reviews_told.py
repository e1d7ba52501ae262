"""Who is told what: the inbox, mentions, rules, mail; and what the agent is told and answers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core import mail as outbox
from django.utils import timezone

from tests.webapp import scripted
from tests.webapp.reviewing import KERNEL, Story
from webapp.common import announce
from webapp.language_models.models import LanguageModel
from webapp.language_models.services import language_model_save
from webapp.reviews import agent, mail, revisions
from webapp.reviews.models import AgentTask, Notification, Revision
from webapp.runs import services
from webapp.runs.models import AgentRun
from webapp.runs.tasks import _request

pytestmark = pytest.mark.django_db


@pytest.fixture
def story(db: None, settings: Any) -> Story:
    settings.MAIL_CONFIGURED = True
    return Story()


def begin(story: Story, it: Any, body: str, **more: object) -> Any:
    anchor = {"revision": it["head"]["id"], "line": 3, "end_line": 4}
    return story.rob.post(
        f"review-requests/{it['id']}/threads", {"anchor": anchor, "body": body, **more}, 201
    )


def kinds(person: Any) -> list[str]:
    return [it["kind"] for it in person.get("notifications")["results"]]


def test_reviewers_are_told_authors_are_answered_and_strangers_are_not_mentioned(story: Story) -> None:
    other = Story("other")
    it = story.with_kernel(reviewers=["team-rob"])
    assert kinds(story.rob) == ["revision", "review_asked"]
    begin(story, it, f"Why, @team-mia? See @{other.ann.user.username} and a@team-ann.")
    assert kinds(story.mia) == ["mention"]
    assert kinds(story.ann) == ["comment"]
    assert kinds(other.ann) == []
    begin(story, it, "not yet @team-mia", draft=True)
    assert len(kinds(story.mia)) == 1
    page = story.mia.get("notifications")
    assert (page["unread"], page["results"][0]["read"]) == (1, False)
    story.rob.post("notifications/read", {"ids": [page["results"][0]["id"]]}, 204)  # not his
    assert story.mia.get("notifications")["unread"] == 1
    story.mia.post("notifications/read", {}, 204)
    assert story.mia.get("notifications")["unread"] == 0
    # Who leaves sees nothing of it any more.
    story.workspace.memberships.filter(user=story.mia.user).delete()
    assert kinds(story.mia) == []


def test_rules_ask_by_the_files_name_and_by_tag(story: Story) -> None:
    rules = "review-rules?workspace=team"
    story.rob.post(rules, {"path_glob": "*.c", "reviewers": ["team-rob"]}, 403)
    story.mia.post(rules, {"path_glob": "*.c", "reviewers": ["nobody"]}, 400)
    story.mia.post(rules, {"reviewers": ["team-rob"]}, 400)
    named = story.mia.post(rules, {"path_glob": "*.c", "reviewers": ["team-rob", "team-ann"]}, 201)
    story.mia.post(rules, {"path_glob": "*.py", "reviewers": ["team-mia"]}, 201)
    story.mia.post(rules, {"tag": "risky", "reviewers": ["team-mia"]}, 201)
    assert [it["username"] for it in story.asked()["reviewers"]] == ["team-rob"]
    tagged = story.asked(tags=["risky"])["reviewers"]
    assert {it["username"] for it in tagged} == {"team-rob", "team-mia"}
    story.mia.delete(f"review-rules/{named['id']}")
    assert story.asked()["reviewers"] == []
    Story("other").mia.delete(f"review-rules/{named['id'] + 1}", 404)


def test_each_digest_or_no_mail(story: Story) -> None:
    story.rob.client.put("/api/v1/notifications/settings", {"mail": "each"}, "application/json")
    story.mia.client.put("/api/v1/notifications/settings", {"mail": "none"}, "application/json")
    assert story.rob.get("notifications/settings") == {"mail": "each"}
    assert story.ann.get("notifications/settings") == {"mail": "digest"}
    it = story.with_kernel(reviewers=["team-rob", "team-mia"])
    begin(story, it, "One\r\nBcc: x@example.org")
    begin(story, it, "Two")
    now = timezone.now()
    assert mail.mails_send(now=now) == 3
    by_user: dict[str, list[str]] = {}
    for message in outbox.outbox:
        by_user.setdefault(message.to[0], []).append(message.subject)
    assert by_user["team-rob@example.org"] == [
        "team-ann asks you to review #1 Scale",
        "team-ann made revision 3 the head of #1 Scale",
    ]
    assert by_user["team-ann@example.org"] == ["2 things happened in your reviews"]
    assert "team-mia@example.org" not in by_user
    assert f"/reviews/{it['id']}#thread-" in str(outbox.outbox[-1].body) + str(outbox.outbox[0].body)
    assert mail.mails_send(now=now) == 0
    begin(story, it, "Three")
    assert mail.mails_send(now=now + timedelta(hours=23)) == 0
    assert mail.mails_send(now=now + timedelta(hours=25)) == 1
    assert "Three" in str(outbox.outbox[-1].body)
    assert not Notification.objects.filter(mailed_at=None).exists()


def test_mail_that_cannot_be_sent_is_tried_again(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    it = story.with_kernel()
    begin(story, it, "One")
    with monkeypatch.context() as away:
        away.setattr("django.core.mail.EmailMessage.send", _refused)
        assert mail.mails_send() == 0
    assert mail.mails_send() == 1


def _refused(self: Any, fail_silently: bool = False) -> int:
    raise ConnectionRefusedError("no mail server there")


def test_everything_is_announced_in_the_transaction(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[tuple[int, str]] = []
    monkeypatch.setattr(announce, "_listeners", [])
    announce.listen(lambda workspace, event, payload: heard.append((workspace, event)))
    it = story.asked()
    approve = {"verdict": "approve", "revision": it["head"]["id"]}
    story.rob.post(f"review-requests/{it['id']}/submissions", approve, 201)
    story.mia.post(f"review-requests/{it['id']}/merge", {})
    assert heard == [
        (story.workspace.pk, f"review_request.{name}")
        for name in ("created", "reviewed", "approved", "merged")
    ]

    def broken(workspace: int, event: str, payload: Any) -> None:
        raise RuntimeError("no")

    announce.listen(broken)
    again = {"run": str(story.run.pk), "title": "Not without its word"}
    story.ann.client.raise_request_exception = False
    story.ann.post("review-requests", again, 500)
    assert len(story.ann.get("review-requests?workspace=team")["results"]) == 1


def test_a_thread_becomes_the_instruction_of_a_models_run(story: Story) -> None:
    language_model_save(
        model=LanguageModel(), values={"name": "coder", "model": "m", "base_url": "https://models.example/v1"}
    )
    it = story.with_kernel()
    thread = begin(story, it, "Use a grid-stride loop.", suggestion={"line": 3, "end_line": 3, "text": "for"})
    story.ann.post(f"threads/{thread['id']}/comments", {"body": "Secret draft", "draft": True}, 201)
    ask = {"policy": "llm", "model": "coder", "turns": 3}
    told = story.rob.post(f"threads/{thread['id']}/send-to-agent", ask, 202)
    assert told["follows_words"]
    run = AgentRun.objects.get(pk=told["run"])
    assert (run.owner, run.start_from, run.turn_limit, run.model) == (story.rob.user, KERNEL, 3, "coder")
    assert "lines 3 to 4" in run.instruction
    assert "    if (i < n)\n        x[i] = x[i] * f;" in run.instruction
    assert "team-rob: Use a grid-stride loop.\nsuggested instead:\nfor" in run.instruction
    assert "Secret" not in run.instruction
    assert _request(run).instruction == run.instruction
    # The agent works, and says in the thread what came of it.
    services.agent_run_execute(run_id=run.pk, translate=scripted.translate)
    said = story.ann.get(f"threads/{thread['id']}")
    assert said["runs"] == [str(run.pk)]
    answers = [comment for comment in said["comments"] if comment["author"] is None]
    assert len(answers) == 2
    assert "turn 2, Guard the last block: passed, structural score 71.5" in answers[1]["body"]
    assert kinds(story.ann)[0] == "agent"
    # Ann takes the turn in: it is the same chain, and Rob, who only said what he wants, may approve it.
    push = {"base_revision": it["head"]["id"], "run": str(run.pk), "turn": 2}
    head = story.ann.post(f"review-requests/{it['id']}/revisions", push, 201)
    assert (head["origin"], head["turn"], head["author"]) == ("turn", 2, None)
    assert Revision.objects.get(pk=head["id"]).chain == Revision.objects.get(pk=it["head"]["id"]).chain
    story.rob.post(f"threads/{thread['id']}/resolve")
    approve = {"verdict": "approve", "revision": head["id"]}
    story.rob.post(f"review-requests/{it['id']}/submissions", approve, 201)
    assert story.rob.get(f"review-requests/{it['id']}")["state"] == "approved"


def test_the_built_in_policy_says_that_it_cannot_follow_words(story: Story) -> None:
    it = story.with_kernel()
    thread = begin(story, it, "Use a grid-stride loop.")
    told = story.rob.post(f"threads/{thread['id']}/send-to-agent", {}, 202)
    assert not told["follows_words"]
    assert "cannot follow words" in told["detail"]
    run = AgentRun.objects.get(pk=told["run"])
    assert (run.policy, run.start_from, run.instruction) == ("builtin", KERNEL, "")
    wrong = story.rob.post(f"threads/{thread['id']}/send-to-agent", {"policy": "builtin", "model": "m"}, 400)
    assert "language model" in wrong["detail"]
    body = {"source": "void f(int n);\n", "instruction": "faster", "workspace": "team"}
    assert "language model" in story.rob.post("runs", body, 400)["detail"]


def test_what_ended_while_nobody_listened_is_taken_in_later(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = story.with_kernel()
    thread = begin(story, it, "Use a grid-stride loop.")
    run = story.rob.post(f"threads/{thread['id']}/send-to-agent", {}, 202)["run"]
    monkeypatch.setattr(services, "ended", [])
    services.agent_run_execute(run_id=AgentRun.objects.get(pk=run).pk, translate=scripted.translate)
    assert not AgentTask.objects.get(run=run).told
    assert (agent.runs_reconcile(), agent.runs_reconcile()) == (1, 0)
    assert len(story.ann.get(f"threads/{thread['id']}")["comments"]) == 3
    pushed = story.push(it["id"], "int other;\n", it["head"]["id"])
    judgement = Revision.objects.get(pk=pushed["id"]).judgement
    assert judgement is not None
    judgement.delete()
    assert (revisions.revisions_reconcile(), revisions.revisions_reconcile()) == (1, 0)
    now = story.ann.get(f"revisions/{pushed['id']}")
    assert (now["state"], now["verdict"]) == ("judged", None)
    assert "Ask for another" in now["message"]
    assert story.ann.post(f"revisions/{pushed['id']}/judge", status=202)["state"] == "pending"
