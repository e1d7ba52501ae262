"""At the same time: two people decide, code moves under an approval, and whoever looks is told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from channels.db import database_sync_to_async
from django.db import connection
from django.test import Client

from tests.webapp.reviewing import KERNEL, Person, Story
from tests.webapp.sockets import socket
from webapp.library.models import LibraryEntry
from webapp.reviews.models import RequestRevision, ReviewRequest, Submission
from webapp.workspaces.roles import Role

pytestmark = pytest.mark.django_db(transaction=True)


def at_once(*works: Callable[[], Any]) -> list[Any]:
    """What each returned; all begin together, each in a thread with its own connection."""
    barrier, results = threading.Barrier(len(works)), [None] * len(works)

    def work(place: int) -> None:
        barrier.wait()
        try:
            results[place] = works[place]()
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=(place,)) for place in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


def status(person: Person, path: str, body: Any) -> Callable[[], int]:
    client = Client(raise_request_exception=False)
    client.force_login(person.user)
    return lambda: client.post(f"/api/v1/{path}", body, "application/json").status_code


def test_two_approvals_at_once_both_count() -> None:
    story = Story()
    it = story.asked(rule={"approvals": 2})
    here = f"review-requests/{it['id']}"
    approve = {"verdict": "approve", "revision": it["head"]["id"]}
    assert at_once(
        status(story.rob, f"{here}/submissions", approve), status(story.mia, f"{here}/submissions", approve)
    ) == [201, 201]
    now = story.ann.get(here)
    assert (now["state"], now["version"]) == ("approved", it["version"] + 2)
    assert Submission.objects.count() == 2


def test_an_approval_against_a_head_that_moves_meanwhile_never_counts_for_the_new_one() -> None:
    story = Story()
    it = story.asked()
    here = f"review-requests/{it['id']}"
    head = it["head"]["id"]
    said, pushed = at_once(
        status(story.rob, f"{here}/submissions", {"verdict": "approve", "revision": head}),
        status(story.ann, f"{here}/revisions", {"source": KERNEL, "base_revision": head}),
    )
    assert pushed == 201
    assert said in (201, 409)
    now = story.ann.get(here)
    assert now["state"] == "open"
    states = [reviewer["state"] for reviewer in now["reviewers"]]
    assert states == (["stale"] if said == 201 else [])


def test_of_two_edits_of_the_same_head_one_is_told_that_the_code_moved() -> None:
    story = Story()
    it = story.asked()
    push = [{"source": f"int n{number};\n", "base_revision": it["head"]["id"]} for number in range(2)]
    path = f"review-requests/{it['id']}/revisions"
    assert sorted(at_once(*[status(story.ann, path, body) for body in push])) == [201, 409]
    assert RequestRevision.objects.filter(request=it["id"]).count() == 2


def test_merged_once_and_numbered_without_gaps() -> None:
    story = Story()
    it = story.asked()
    here = f"review-requests/{it['id']}"
    story.rob.post(f"{here}/submissions", {"verdict": "approve", "revision": it["head"]["id"]}, 201)
    assert sorted(at_once(*[status(story.mia, f"{here}/merge", {}) for _ in range(3)])) == [200, 409, 409]
    assert LibraryEntry.objects.count() == 1
    body = {"run": str(story.run.pk), "title": "At once"}
    assert at_once(*[status(story.ann, "review-requests", body) for _ in range(3)]) == [201] * 3
    assert sorted(ReviewRequest.objects.values_list("number", flat=True)) == [1, 2, 3, 4]


async def test_whoever_looks_is_told_the_version_and_strangers_nothing() -> None:
    def begin() -> tuple[Story, Any, Person, Person]:
        story = Story()
        viewer = Person(story.workspace, "viewer", Role.VIEWER)
        return story, story.asked(), viewer, Person(story.workspace, "stranger", None)

    story, it, viewer, stranger = await database_sync_to_async(begin)()
    here = f"/ws/reviews/{it['id']}"
    async with socket(here, viewer.client) as looking:
        assert await looking.connect()
        assert await looking.hear() == {"type": "changed", "version": it["version"]}
        approve = {"verdict": "approve", "revision": it["head"]["id"]}
        path = f"review-requests/{it['id']}/submissions"
        await database_sync_to_async(story.rob.post)(path, approve, 201)
        assert await looking.hear() == {"type": "changed", "version": it["version"] + 1}
        assert await looking.is_silent()
    for client, address, code in (
        (stranger.client, here, 4404),
        (None, here, 4401),
        (viewer.client, f"/ws/reviews/{uuid4()}", 4404),
    ):
        async with socket(address, client) as refused:
            await refused.connect()
            assert await refused.closed_with() == code
