"""What reviews keep when people, runs and workspaces go, and text that no database takes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.webapp.reviewing import KERNEL, Story
from webapp.library.models import LibraryEntry
from webapp.reviews.models import Chain, Comment, ReviewRequest, Revision, Thread
from webapp.runs.services import agent_run_delete

pytestmark = pytest.mark.django_db


@pytest.fixture
def story(db: None) -> Story:
    return Story()


def merged(story: Story) -> Any:
    """With a thread, an answer of the agent's run and everything that refers to something."""
    it = story.with_kernel(reviewers=["team-rob"])
    here = f"review-requests/{it['id']}"
    anchor = {"revision": it["head"]["id"], "line": 3, "end_line": 3}
    thread = story.rob.post(f"{here}/threads", {"anchor": anchor, "body": "Why, @team-mia?"}, 201)
    story.rob.post(f"threads/{thread['id']}/send-to-agent", {}, 202)
    story.rob.post(f"threads/{thread['id']}/resolve")
    story.rob.post(f"{here}/submissions", {"verdict": "approve", "revision": it["head"]["id"]}, 201)
    return story.mia.post(f"{here}/merge", {})


def test_a_revision_outlives_its_run(story: Story) -> None:
    it = merged(story)
    agent_run_delete(user=story.ann.user, run=story.run)
    assert story.mia.get(f"review-requests/{it['id']}")["turns"][1]["run"] is None
    assert story.mia.get(f"revisions/{it['turns'][1]['id']}")["source"] == "// turn 2\n"


def test_what_people_did_stays_when_they_are_gone(story: Story) -> None:
    it = merged(story)
    for person in (story.ann, story.rob):
        person.user.delete()
    now = story.mia.get(f"review-requests/{it['id']}")
    assert (now["author"]["username"], now["head"]["author"]["username"]) == ("deleted user", "deleted user")
    assert now["turns"][1]["author"] is None  # that was the agent
    thread = story.mia.get(f"review-requests/{it['id']}/threads")["results"][0]
    assert thread["comments"][0]["author"] == {"username": "deleted user"}
    assert story.mia.get(f"review-requests/{it['id']}/submissions")["results"][0]["verdict"] == "approve"
    assert LibraryEntry.objects.count() == 1


def test_a_workspace_goes_with_all_that_is_in_it(story: Story) -> None:
    merged(story)
    kept = Story("other").with_kernel()
    story.workspace.delete()
    assert {str(it.pk) for it in ReviewRequest.objects.all()} == {kept["id"]}
    assert Chain.objects.count() == 1
    assert (Thread.objects.count(), Comment.objects.count(), LibraryEntry.objects.count()) == (0, 0, 0)


def test_a_revision_is_never_changed(story: Story) -> None:
    it = story.with_kernel()
    revision = Revision.objects.get(pk=it["head"]["id"])
    revision.source = "other"
    with pytest.raises(TypeError, match="never changes"):
        revision.save()


@pytest.mark.parametrize("text", ["a\x00b", "a\ud800b"], ids=["nul", "half_a_surrogate_pair"])
def test_text_that_no_database_takes_is_refused_with_words(story: Story, text: str) -> None:
    it = story.with_kernel()
    here = f"review-requests/{it['id']}"
    anchor = {"revision": it["head"]["id"], "line": 3, "end_line": 3}
    suggestion = {"line": 3, "end_line": 3, "text": text}
    run = str(story.run.pk)
    story.ann.post("review-requests", {"title": text, "run": run}, 400)
    story.ann.post("review-requests", {"title": "A", "description": text, "run": run}, 400)
    story.ann.post("review-requests", {"title": "A", "tags": [text], "run": run}, 400)
    story.ann.post("review-requests", {"title": "A", "reviewers": [text], "run": run}, 400)
    story.ann.patch(here, {"description": text}, 400, **{"If-Match": f'"{it["version"]}"'})
    story.ann.post(f"{here}/revisions", {"source": text, "base_revision": it["head"]["id"]}, 400)
    story.rob.post(f"{here}/threads", {"anchor": anchor, "body": text}, 400)
    story.rob.post(f"{here}/threads", {"anchor": anchor, "suggestion": suggestion}, 400)
    evidence = {"kind": "metric", "name": text}
    story.rob.post(f"{here}/threads", {"anchor": anchor, "body": "b", "evidence": evidence}, 400)
    review = {"verdict": "comment", "body": text, "revision": it["head"]["id"]}
    story.rob.post(f"{here}/submissions", review, 400)
    rule = {"path_glob": text, "reviewers": ["team-rob"]}
    story.mia.post("review-rules?workspace=team", rule, 400)


def test_evidence_says_what_the_judge_found(story: Story) -> None:
    it = story.with_kernel()
    anchor = {"revision": it["head"]["id"], "line": 3, "end_line": 3}
    evidence = {"kind": "metric", "name": "coalescing", "value": "invented"}
    body = {"anchor": anchor, "body": "b", "evidence": evidence}
    made = story.rob.post(f"review-requests/{it['id']}/threads", body, 201)
    assert made["evidence"] == {"kind": "metric", "name": "coalescing", "value": "1.0"}
    body["evidence"] = {"kind": "check", "name": "coalescing"}
    problem = story.rob.post(f"review-requests/{it['id']}/threads", body, 400)
    assert "evidence" in problem["detail"]


def test_comments_are_their_authors_to_change_and_leave_a_trace(story: Story) -> None:
    it = story.with_kernel()
    anchor = {"revision": it["head"]["id"], "line": 3, "end_line": 3}
    thread = story.rob.post(f"review-requests/{it['id']}/threads", {"anchor": anchor, "body": "a"}, 201)
    comment = thread["comments"][0]["id"]
    story.ann.patch(f"comments/{comment}", {"body": "b"}, 403)
    story.mia.delete(f"comments/{comment}", 403)
    edited = story.rob.patch(f"comments/{comment}", {"body": "b"})
    assert (edited["body"], edited["edited_at"] is not None) == ("b", True)
    story.rob.delete(f"comments/{comment}")
    left = story.ann.get(f"threads/{thread['id']}")["comments"][0]
    assert (left["deleted"], left["body"]) == (True, "")
    draft = story.rob.post(f"threads/{thread['id']}/comments", {"body": "c", "draft": True}, 201)
    story.ann.patch(f"comments/{draft['id']}", {"body": "b"}, 404)
    story.rob.delete(f"comments/{draft['id']}")
    assert len(story.rob.get(f"threads/{thread['id']}")["comments"]) == 1
    assert story.ann.get(f"revisions/{it['head']['id']}")["source"] == KERNEL
