"""REST of what is said: threads, comments, reviews."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from webapp.accounts.selectors import signed_in
from webapp.common.bodies import parsed
from webapp.common.errors import ProblemError
from webapp.common.pagination import NewestFirst
from webapp.live import resources_reviews as resources
from webapp.reviews import agent, selectors, serializers, submissions, threads
from webapp.reviews.apis_common import CHANGES, NOT_FOUND, PAGED, PROBLEM, TAGS, OldestFirst, page_of
from webapp.reviews.models import Thread


def thread_answer(request: Request, thread: Thread, *, status: int = 200) -> Response:
    found = selectors.thread_visible_to(request.user, thread.pk)
    record = selectors.request_visible_to(request.user, found.request_id)
    headers = {"Location": reverse("api:review-thread", kwargs={"thread_id": thread.pk})}
    return Response(
        serializers.thread_detail(record, found), status=status, headers=headers if status == 201 else None
    )


class ReviewThreadsApi(APIView):
    actions: ClassVar = {"GET": "review.view", "POST": "review.comment"}

    @extend_schema(
        operation_id="review_threads_list",
        tags=TAGS,
        parameters=[
            *PAGED,
            OpenApiParameter("resolved", bool, description="Only those that are, or are not"),
        ],
        responses={200: resources.ReviewThreadList, 400: PROBLEM, **NOT_FOUND},
    )
    def get(self, request: Request, request_id: UUID) -> Response:
        """A request's threads, oldest first, each with where it is on the head; your own drafts too."""
        record = selectors.request_visible_to(request.user, request_id)
        found = selectors.threads_visible_to(request.user).filter(request=record)
        if (resolved := request.query_params.get("resolved")) is not None:
            if resolved not in ("true", "false"):
                raise ProblemError(400, "invalid", "resolved: true or false")
            found = found.filter(resolved=resolved == "true")
        records, links = page_of(OldestFirst(), found, request, self)
        results = [serializers.thread_detail(record, it) for it in records]
        return Response(resources.ReviewThreadList(results=results, **links))

    @extend_schema(
        operation_id="review_threads_create",
        tags=TAGS,
        request=resources.ThreadCreate,
        responses={201: resources.ReviewThread, **CHANGES},
    )
    def post(self, request: Request, request_id: UUID) -> Response:
        """Begins a thread at lines of a revision. 409 "code-moved" when the head has them elsewhere or not at
        all: `code_moved` says where; send it again for the head, or with `carry`."""
        record = selectors.request_visible_to(request.user, request_id)
        body = parsed(resources.ThreadCreate, request.data)
        thread = threads.thread_create(user=signed_in(request.user), request=record, data=body)
        return thread_answer(request, thread, status=201)


class ReviewThreadApi(APIView):
    actions: ClassVar = {"GET": "review.view"}

    @extend_schema(
        operation_id="review_threads_get", tags=TAGS, responses={200: resources.ReviewThread, **NOT_FOUND}
    )
    def get(self, request: Request, thread_id: UUID) -> Response:
        """One thread."""
        return thread_answer(request, selectors.thread_visible_to(request.user, thread_id))


class ThreadCommentsApi(APIView):
    actions: ClassVar = {"POST": "review.comment"}

    @extend_schema(
        operation_id="review_comments_create",
        tags=TAGS,
        request=resources.CommentCreate,
        responses={201: resources.ReviewComment, **CHANGES},
    )
    def post(self, request: Request, thread_id: UUID) -> Response:
        """Answers in a thread; a suggestion's lines are the head's."""
        thread = selectors.thread_visible_to(request.user, thread_id)
        body = parsed(resources.CommentCreate, request.data)
        made = threads.comment_create(user=signed_in(request.user), thread=thread, data=body)
        return Response(serializers.comment_detail(made), status=201)


class ThreadResolveApi(APIView):
    actions: ClassVar = {"POST": "review.comment"}

    @extend_schema(
        operation_id="review_threads_resolve",
        tags=TAGS,
        request=None,
        responses={200: resources.ReviewThread, **CHANGES},
    )
    def post(self, request: Request, thread_id: UUID) -> Response:
        """Marks a thread as resolved."""
        thread = selectors.thread_visible_to(request.user, thread_id)
        return thread_answer(
            request, threads.thread_resolve(user=signed_in(request.user), thread=thread, resolved=True)
        )


class ThreadReopenApi(APIView):
    actions: ClassVar = {"POST": "review.comment"}

    @extend_schema(
        operation_id="review_threads_reopen",
        tags=TAGS,
        request=None,
        responses={200: resources.ReviewThread, **CHANGES},
    )
    def post(self, request: Request, thread_id: UUID) -> Response:
        """Takes a resolved thread up again."""
        thread = selectors.thread_visible_to(request.user, thread_id)
        return thread_answer(
            request, threads.thread_resolve(user=signed_in(request.user), thread=thread, resolved=False)
        )


class SendToAgentApi(APIView):
    actions: ClassVar = {"POST": "run.create"}

    @extend_schema(
        operation_id="review_threads_send_to_agent",
        tags=TAGS,
        request=resources.AgentAsk,
        responses={202: resources.AgentAsked, 429: PROBLEM, 503: PROBLEM, **CHANGES},
    )
    def post(self, request: Request, thread_id: UUID) -> Response:
        """Starts a run from the head that is told what the thread says; what comes of it is said there.

        Push its turn to take it in. The built-in policy says that it cannot follow words."""
        user = signed_in(request.user)
        thread = selectors.thread_visible_to(user, thread_id)
        ask = parsed(resources.AgentAsk, request.data)
        run, follows, detail = agent.thread_send_to_agent(user=user, thread=thread, ask=ask)
        address = reverse("api:run", kwargs={"run_id": run.pk})
        answer = resources.AgentAsked(run=run.pk, follows_words=follows, detail=detail)
        return Response(answer, status=202, headers={"Location": address})


class CommentApi(APIView):
    actions: ClassVar = {"PATCH": "review.comment", "DELETE": "review.comment"}

    @extend_schema(
        operation_id="review_comments_patch",
        tags=TAGS,
        request=resources.CommentPatch,
        responses={200: resources.ReviewComment, **CHANGES},
    )
    def patch(self, request: Request, comment_id: UUID) -> Response:
        """Changes your own comment."""
        comment = selectors.comment_visible_to(request.user, comment_id)
        body = parsed(resources.CommentPatch, request.data)
        changed = threads.comment_patch(user=signed_in(request.user), comment=comment, patch=body)
        return Response(serializers.comment_detail(changed))

    @extend_schema(operation_id="review_comments_delete", tags=TAGS, responses={204: None, **CHANGES})
    def delete(self, request: Request, comment_id: UUID) -> Response:
        """Deletes your own comment. Of one that others have read a trace stays."""
        comment = selectors.comment_visible_to(request.user, comment_id)
        threads.comment_delete(user=signed_in(request.user), comment=comment)
        return Response(status=204)


class SubmissionsApi(APIView):
    actions: ClassVar = {"GET": "review.view", "POST": "review.comment"}

    @extend_schema(
        operation_id="review_submissions_list",
        tags=TAGS,
        parameters=PAGED,
        responses={200: resources.ReviewSubmissionList, **NOT_FOUND},
    )
    def get(self, request: Request, request_id: UUID) -> Response:
        """The reviews that were sent, newest first."""
        record = selectors.request_visible_to(request.user, request_id)
        records, links = page_of(NewestFirst(), selectors.submissions_of(record), request, self)
        results = [serializers.submission_detail(it, record.head) for it in records]
        return Response(resources.ReviewSubmissionList(results=results, **links))

    @extend_schema(
        operation_id="review_submissions_create",
        tags=TAGS,
        request=resources.SubmissionCreate,
        responses={201: resources.ReviewSubmission, **CHANGES},
    )
    def post(self, request: Request, request_id: UUID) -> Response:
        """Sends your drafts as one review, with a verdict on the head that you looked at."""
        record = selectors.request_visible_to(request.user, request_id)
        body = parsed(resources.SubmissionCreate, request.data)
        made = submissions.submission_create(user=signed_in(request.user), request=record, data=body)
        record = selectors.request_visible_to(request.user, request_id)
        said = selectors.submissions_of(record).get(pk=made.pk)
        return Response(serializers.submission_detail(said, record.head), status=201)
