"""Reviewing by API alone: asked for, talked about, changed, approved, merged."""

from __future__ import annotations

from uuid import UUID

import pytest

from tests.webapp import scripted
from tests.webapp.reviewing import KERNEL, Story, judged
from webapp.evaluations import services as evaluations
from webapp.evaluations.models import EvaluationRecord
from webapp.library.models import LibraryEntry

pytestmark = pytest.mark.django_db


@pytest.fixture
def story(db: None) -> Story:
    return Story()


def test_a_request_names_the_best_turn_and_what_it_lacks(story: Story) -> None:
    it = story.asked(reviewers=["team-rob"], tags=["rows"])
    assert (it["number"], it["state"], it["workspace"]) == (1, "open", "team")
    head = it["head"]
    assert (head["origin"], head["turn"], head["author"], head["verdict"]) == ("turn", 2, None, "passed")
    assert head["reference"]["source"] == story.run.source
    assert [turn["number"] for turn in it["turns"]] == [1, 2]
    assert it["turns"][1]["parent"] == it["turns"][0]["id"]
    assert it["reviewers"] == [{"username": "team-rob", "state": "waiting", "asked": True, "revision": None}]
    assert {item["name"]: item["ok"] for item in it["checklist"]} == {
        "approvals": False,
        "no_changes_requested": True,
        "no_unresolved": True,
        "verdict_passed": True,
    }
    assert not it["can"]["approve"]
    assert "own work" in it["can"]["why"]["approve"]
    assert story.rob.get(f"review-requests/{it['id']}")["can"]["approve"]
    assert story.rob.get("review-requests?workspace=team")["results"][0]["id"] == it["id"]
    assert story.rob.get("inbox")["results"][0]["id"] == it["id"]
    assert story.ann.get("inbox")["results"] == []
    again = story.ann.post("review-requests", {"run": str(story.run.pk), "turn": 2, "title": "Again"}, 201)
    assert again["head"]["id"] == head["id"]
    assert again["number"] == 2


def test_a_judged_candidate_that_somebody_gave_is_reviewed_too(story: Story) -> None:
    given = {
        "source": "void f(int n, float *x) {}\n",
        "candidate": KERNEL,
        "filename": "f.c",
        "workspace": "team",
    }
    record = story.rob.post("evaluations", given, 202)["id"]
    body = {"evaluation": record, "title": "Given"}
    assert story.ann.post("review-requests", body, 409)["type"] == "/problems/not-judged"
    said = scripted.evaluation("passed", 66.0)
    evaluations.evaluation_end(
        record=EvaluationRecord.objects.get(pk=record),
        state=EvaluationRecord.State.FINISHED,
        message="",
        evaluation=said,
    )
    it = story.ann.post("review-requests", body, 201)
    head = it["head"]
    assert (head["origin"], head["author"]["username"], head["score"]) == ("upload", "team-rob", 66.0)
    assert (head["source"], head["reference"]["source"]) == (KERNEL, given["source"])
    assert "own work" in story.rob.get(f"review-requests/{it['id']}")["can"]["why"]["approve"]
    assert story.ann.post("review-requests", body, 201)["head"]["id"] == head["id"]
    story.ann.post("review-requests", {**body, "run": str(story.run.pk)}, 400)
    story.ann.post("review-requests", {**body, "turn": 1}, 400)


def test_a_thread_is_begun_answered_and_resolved(story: Story) -> None:
    it = story.asked()
    anchor = {"revision": it["head"]["id"], "line": 1, "end_line": 1, "quoted": "// turn 2"}
    thread = story.rob.post(
        f"review-requests/{it['id']}/threads", {"anchor": anchor, "body": "Why, @team-ann?"}, 201
    )
    assert thread["place"] == {"side": "new", "line": 1, "end_line": 1}
    story.ann.post(f"threads/{thread['id']}/comments", {"body": "Because."}, 201)
    now = story.ann.get(f"review-requests/{it['id']}")
    assert now["unresolved"] == 1
    assert now["version"] > it["version"]
    assert not next(item for item in now["checklist"] if item["name"] == "no_unresolved")["ok"]
    assert story.rob.post(f"threads/{thread['id']}/resolve")["resolved_by"] == {"username": "team-rob"}
    listed = story.ann.get(f"review-requests/{it['id']}/threads")["results"]
    assert [comment["body"] for comment in listed[0]["comments"]] == ["Why, @team-ann?", "Because."]
    assert not story.rob.post(f"threads/{thread['id']}/reopen")["resolved"]


def test_review_edit_approve_and_merge_by_api_alone(story: Story) -> None:
    it = story.asked(reviewers=["team-rob"], rule={"approvals": 1, "score_at_least": 75})
    here = f"review-requests/{it['id']}"
    head = it["head"]["id"]
    anchor = {"revision": head, "line": 1, "end_line": 1}
    draft = {"anchor": anchor, "body": "Say what it is for.", "draft": True}
    draft["suggestion"] = {"line": 1, "end_line": 1, "text": "int rows = 2;  // of the second turn\n"}
    thread = story.rob.post(f"{here}/threads", draft, 201)
    assert story.ann.get(f"{here}/threads")["results"] == []
    story.ann.get(f"threads/{thread['id']}", 404)
    review = {"verdict": "request_changes", "body": "One thing.", "revision": head}
    sent = story.rob.post(f"{here}/submissions", review, 201)
    assert sent["comments"] == 1
    assert story.ann.get(here)["state"] == "changes_requested"
    assert story.ann.get("inbox")["results"][0]["id"] == it["id"]
    # Ann takes the suggestion in, and changes something herself.
    suggestion = story.ann.get(f"threads/{thread['id']}")["comments"][0]
    applied = story.ann.post(f"{here}/suggestions/apply", {"comments": [suggestion["id"]]}, 201)
    assert applied["source"] == "int rows = 2;  // of the second turn\n"
    assert (applied["origin"], applied["author"]["username"], applied["credited"]) == (
        "suggestion",
        "team-ann",
        ["team-rob"],
    )
    judged(applied["id"], "passed", 80.0)
    story.ann.post(f"threads/{thread['id']}/resolve")
    now = story.rob.get(here)
    assert now["head"]["verdict"] == "passed"
    assert now["head"]["score"] == 80.0
    # Rob's suggestion is in it: somebody else has to approve.
    own = {"verdict": "approve", "revision": applied["id"]}
    assert story.rob.post(f"{here}/submissions", own, 403)["type"] == "/problems/own-work"
    story.mia.post(f"{here}/submissions", {"verdict": "approve", "revision": head}, 409)
    story.mia.post(f"{here}/submissions", own, 201)
    assert story.mia.post(f"{here}/merge", {}, 409)["type"] == "/problems/not-approved"  # rob wants changes
    story.rob.post(
        f"{here}/submissions", {"verdict": "comment", "body": "Fine now", "revision": applied["id"]}, 201
    )
    assert story.rob.get(here)["state"] == "approved"
    assert story.mia.get("inbox")["results"] == []
    merged = story.mia.post(f"{here}/merge", {"revision": applied["id"]})
    assert merged["state"] == "merged"
    entry = LibraryEntry.objects.get(pk=UUID(merged["library_entry"]))
    assert (entry.title, entry.version, str(entry.revision_id)) == ("Scale", 1, applied["id"])
    story.mia.post(f"{here}/merge", {}, 409)
    story.ann.post(f"{here}/close", status=409)
    # The next request of this title is compared with what the library holds.
    following = story.ann.post("review-requests", {"revision": head, "title": "Scale"}, 201)
    assert following["base"]["id"] == applied["id"]
