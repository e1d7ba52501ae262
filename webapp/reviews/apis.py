"""REST of review requests and their revisions."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from webapp.accounts.selectors import signed_in
from webapp.common import idempotency
from webapp.common.bodies import parsed
from webapp.common.errors import ProblemError
from webapp.common.pagination import NewestFirst
from webapp.live import resources_reviews as resources
from webapp.reviews import requests, revisions, selectors, serializers, suggestions
from webapp.reviews.apis_common import (
    CHANGES,
    DENIED,
    IF_MATCH,
    NOT_FOUND,
    PAGED,
    PROBLEM,
    TAGS,
    WORKSPACE,
    page_of,
    version_matched,
)
from webapp.reviews.models import ReviewRequest
from webapp.workspaces.access import require
from webapp.workspaces.selectors import workspace_visible_to

STATES = [state.value for state in ReviewRequest.State]


def detail(request: Request, record: ReviewRequest, *, status: int = 200) -> Response:
    """The request as it stands now, with its ETag."""
    user = signed_in(request.user)
    document = serializers.request_detail(selectors.request_visible_to(user, record.pk), user)
    return Response(document, status=status, headers={"ETag": f'"{document.version}"'})


class ReviewRequestsApi(APIView):
    actions: ClassVar = {"GET": "review.view", "POST": "review.create"}

    @extend_schema(
        operation_id="review_requests_list",
        tags=TAGS,
        parameters=[
            *PAGED,
            WORKSPACE,
            OpenApiParameter("state", str, enum=STATES),
            OpenApiParameter("author", str, description="Only those that this user asked for, by name"),
        ],
        responses={200: resources.ReviewRequestPage, 400: PROBLEM, **NOT_FOUND},
    )
    def get(self, request: Request) -> Response:
        """A workspace's review requests, newest first."""
        workspace = workspace_visible_to(request.user, request.query_params.get("workspace"))
        listed = selectors.requests_listed(request.user, workspace)
        if (state := request.query_params.get("state")) is not None:
            if state not in STATES:
                raise ProblemError(400, "invalid", f"state: choose one of {', '.join(STATES)}")
            listed = listed.filter(state=state)
        if (author := request.query_params.get("author")) is not None:
            if "\x00" in author:
                raise ProblemError(400, "invalid", "author: is no name of a user")
            listed = listed.filter(author__username=author)
        records, links = page_of(NewestFirst(), listed, request, self)
        return Response(resources.ReviewRequestPage(results=serializers.request_summaries(records), **links))

    @extend_schema(
        operation_id="review_requests_create",
        tags=TAGS,
        parameters=[idempotency.PARAMETER],
        request=resources.ReviewRequestCreate,
        responses={201: resources.ReviewRequestDetail, **CHANGES},
    )
    def post(self, request: Request) -> Response:
        """Asks for a review of a revision, or of a run's turn (without one: the best)."""
        user = signed_in(request.user)
        body = parsed(resources.ReviewRequestCreate, request.data)
        made, created = idempotency.created_once(
            user=user,
            key=idempotency.key_of(request),
            what="review requests",
            body=body,
            create=lambda: requests.review_request_create(user=user, request=body),
            find=lambda key: selectors.requests_visible_to(user).filter(pk=key).first(),
        )
        response = detail(request, made, status=201)
        response["Location"] = reverse("api:review-request", kwargs={"request_id": made.pk})
        if not created:
            response["Idempotency-Replayed"] = "true"
        return response


class InboxApi(APIView):
    actions: ClassVar = {"GET": "account.view"}

    @extend_schema(
        operation_id="review_inbox", tags=TAGS, parameters=PAGED, responses=resources.ReviewRequestPage
    )
    def get(self, request: Request) -> Response:
        """What waits on you, over all your workspaces: reviews asked of you, and your own requests that have
        changes requested or are approved."""
        waiting = selectors.waiting_on(signed_in(request.user))
        records, links = page_of(NewestFirst(), waiting, request, self)
        return Response(resources.ReviewRequestPage(results=serializers.request_summaries(records), **links))


class ReviewRequestApi(APIView):
    actions: ClassVar = {"GET": "review.view", "PATCH": "review.edit"}

    @extend_schema(
        operation_id="review_requests_get",
        tags=TAGS,
        responses={200: resources.ReviewRequestDetail, **NOT_FOUND},
    )
    def get(self, request: Request, request_id: UUID) -> Response:
        """One request with its head, its checklist and what you may do. The ETag is its version."""
        return detail(request, selectors.request_visible_to(request.user, request_id))

    @extend_schema(
        operation_id="review_requests_patch",
        tags=TAGS,
        parameters=[IF_MATCH],
        request=resources.ReviewRequestPatch,
        responses={200: resources.ReviewRequestDetail, 412: PROBLEM, 428: PROBLEM, **CHANGES},
    )
    def patch(self, request: Request, request_id: UUID) -> Response:
        """Changes title, description, tags, reviewers or the approval rule."""
        record = selectors.request_visible_to(request.user, request_id)
        changed = requests.review_request_patch(
            user=signed_in(request.user),
            request=record,
            patch=parsed(resources.ReviewRequestPatch, request.data),
            version=version_matched(request),
        )
        return detail(request, changed)


class ReviewRequestCloseApi(APIView):
    actions: ClassVar = {"POST": "review.edit"}

    @extend_schema(
        operation_id="review_requests_close",
        tags=TAGS,
        request=None,
        responses={200: resources.ReviewRequestDetail, **CHANGES},
    )
    def post(self, request: Request, request_id: UUID) -> Response:
        """Closes a request without merging. Does nothing to one that is closed."""
        record = selectors.request_visible_to(request.user, request_id)
        return detail(request, requests.review_request_close(user=signed_in(request.user), request=record))


class ReviewRequestReopenApi(APIView):
    actions: ClassVar = {"POST": "review.edit"}

    @extend_schema(
        operation_id="review_requests_reopen",
        tags=TAGS,
        request=None,
        responses={200: resources.ReviewRequestDetail, **CHANGES},
    )
    def post(self, request: Request, request_id: UUID) -> Response:
        """Reopens a closed request. Does nothing to an open one."""
        record = selectors.request_visible_to(request.user, request_id)
        return detail(request, requests.review_request_reopen(user=signed_in(request.user), request=record))


class ReviewRequestMergeApi(APIView):
    actions: ClassVar = {"POST": "library.approve"}

    @extend_schema(
        operation_id="review_requests_merge",
        tags=TAGS,
        request=resources.MergeInput,
        responses={200: resources.ReviewRequestDetail, **CHANGES},
    )
    def post(self, request: Request, request_id: UUID) -> Response:
        """Into the library, once everything on the checklist is there."""
        record = selectors.request_visible_to(request.user, request_id)
        body = parsed(resources.MergeInput, request.data)
        requests.review_request_merge(user=signed_in(request.user), request=record, head=body.revision)
        return detail(request, record)


class ReviewRevisionsApi(APIView):
    actions: ClassVar = {"POST": "review.push"}

    @extend_schema(
        operation_id="review_requests_push",
        tags=TAGS,
        request=resources.RevisionPush,
        responses={201: resources.Revision, 413: PROBLEM, 429: PROBLEM, **CHANGES},
    )
    def post(self, request: Request, request_id: UUID) -> Response:
        """A new head: an edited source, which is judged next, or a turn of another run for the same task."""
        record = selectors.request_visible_to(request.user, request_id)
        made = requests.review_request_push(
            user=signed_in(request.user),
            request=record,
            push=parsed(resources.RevisionPush, request.data),
        )
        return _made(request, made.pk)


class SuggestionsApplyApi(APIView):
    actions: ClassVar = {"POST": "review.push"}

    @extend_schema(
        operation_id="review_requests_apply_suggestions",
        tags=TAGS,
        request=resources.SuggestionsApply,
        responses={201: resources.Revision, 429: PROBLEM, **CHANGES},
    )
    def post(self, request: Request, request_id: UUID) -> Response:
        """Applies suggested changes, all or none: a new head, credited to who made them, judged again."""
        record = selectors.request_visible_to(request.user, request_id)
        body = parsed(resources.SuggestionsApply, request.data)
        made = suggestions.suggestions_apply(
            user=signed_in(request.user), request=record, comments=body.comments
        )
        return _made(request, made.pk)


class RevisionApi(APIView):
    actions: ClassVar = {"GET": "review.view"}

    @extend_schema(operation_id="revisions_get", tags=TAGS, responses={200: resources.Revision, **NOT_FOUND})
    def get(self, request: Request, revision_id: UUID) -> Response:
        """One revision with its source and its evaluation."""
        revision = selectors.revision_visible_to(request.user, revision_id)
        return Response(serializers.revision_detail(revision))


class RevisionJudgeApi(APIView):
    actions: ClassVar = {"POST": "review.push"}

    @extend_schema(
        operation_id="revisions_judge",
        tags=TAGS,
        request=None,
        responses={202: resources.Revision, 429: PROBLEM, **DENIED, **NOT_FOUND},
    )
    def post(self, request: Request, revision_id: UUID) -> Response:
        """Judges a revision whose judgement did not come to an end. Does nothing to one with a verdict."""
        user = signed_in(request.user)
        revision = selectors.revision_visible_to(user, revision_id)
        require(user, "review.push", revision)
        revisions.revision_judge_again(revision, user=user)
        revision = selectors.revision_visible_to(user, revision_id)
        return Response(serializers.revision_detail(revision), status=202)


class ReviewDiffApi(APIView):
    actions: ClassVar = {"GET": "review.view"}

    @extend_schema(
        operation_id="review_requests_diff",
        tags=TAGS,
        parameters=[
            OpenApiParameter("from", UUID, description="Absent: the base, or nothing"),
            OpenApiParameter("to", UUID, description="Absent: the head"),
            OpenApiParameter("whitespace", str, enum=["show", "ignore"]),
            OpenApiParameter(
                "context", str, description='Lines around each change, 0 to 100000, or "all"; 3'
            ),
        ],
        responses={200: resources.RevisionDiff, 400: PROBLEM, **NOT_FOUND},
    )
    def get(self, request: Request, request_id: UUID) -> Response:
        """What differs between any two of the request's revisions, with what it did to the numbers."""
        record = selectors.request_visible_to(request.user, request_id)
        query = request.query_params
        whitespace = query.get("whitespace", "show")
        if whitespace not in ("show", "ignore"):
            raise ProblemError(400, "invalid", "whitespace: show or ignore")
        old = record.base if "from" not in query else selectors.beside(record, query["from"])
        new = record.head if "to" not in query else selectors.beside(record, query["to"])
        return Response(
            serializers.revision_diff(
                old,
                new,
                whitespace=whitespace,  # type: ignore[arg-type]
                context=_context(query.get("context", "3")),
            )
        )


def _context(text: str) -> int | None:
    if text == "all":
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 6:
        raise ProblemError(400, "invalid", 'context: a number of lines, or "all"')
    return int(text)


def _made(request: Request, revision_id: UUID) -> Response:
    made = selectors.revision_visible_to(request.user, revision_id)
    address = reverse("api:revision", kwargs={"revision_id": revision_id})
    return Response(serializers.revision_detail(made), status=201, headers={"Location": address})
