"""REST of evaluations."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from pydantic import BaseModel
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from webapp.accounts.selectors import signed_in
from webapp.common import idempotency
from webapp.common.errors import ProblemError
from webapp.common.pagination import LIMIT, NewestFirst
from webapp.evaluations import selectors, serializers, services
from webapp.live.resources import (
    EvaluationBatch,
    EvaluationBatchCreate,
    EvaluationCreate,
    EvaluationDetail,
    EvaluationPage,
    ProblemDocument,
)
from webapp.workspaces.selectors import workspace_visible_to

TAGS = ["evaluations"]
PROBLEM = OpenApiResponse(ProblemDocument, description="What is wrong and what to do")
NOT_FOUND = {404: OpenApiResponse(ProblemDocument, description="No such evaluation, or not for you")}
DENIED = {403: OpenApiResponse(ProblemDocument, description="Above your role, or outside the token's scopes")}
REFUSED: dict[int, Any] = {
    400: PROBLEM,
    403: PROBLEM,
    404: PROBLEM,
    409: PROBLEM,
    413: PROBLEM,
    429: PROBLEM,
    503: PROBLEM,
}


class EvaluationsApi(APIView):
    actions: ClassVar = {"GET": "evaluation.view", "POST": "evaluation.create"}

    @extend_schema(
        operation_id="evaluations_list",
        tags=TAGS,
        parameters=[
            OpenApiParameter("cursor", str, description="From `next` of the page before"),
            LIMIT,
            OpenApiParameter("workspace", str, description="Whose; without it your own workspace's"),
        ],
        responses={200: EvaluationPage, 404: PROBLEM},
    )
    def get(self, request: Request) -> Response:
        """A workspace's evaluations, newest first."""
        paginator = NewestFirst()
        workspace = workspace_visible_to(request.user, request.query_params.get("workspace"))
        listed = selectors.evaluations_listed(request.user, workspace)
        records = paginator.paginate_queryset(listed, request, self)
        page = EvaluationPage(
            results=serializers.evaluation_summaries(records or []),
            next=paginator.get_next_link(),
            previous=paginator.get_previous_link(),
        )
        return Response(page)

    @extend_schema(
        operation_id="evaluations_create",
        tags=TAGS,
        parameters=[idempotency.PARAMETER],
        request=EvaluationCreate,
        responses={202: EvaluationDetail, **REFUSED},
    )
    def post(self, request: Request) -> Response:
        """Judges a candidate, without an agent. Answers at once; ask the address in Location for the result.

        The evaluation has the form that `kernelwright evaluate --json` prints.
        """
        record, created = services.evaluation_create(
            user=signed_in(request.user),
            request=serializers.evaluation_request(request.data),
            idempotency_key=idempotency.key_of(request),
        )
        if record.problem and record.problem["kind"] == "queue_unavailable":
            raise _queue_away()
        address = reverse("api:evaluation", kwargs={"evaluation_id": record.pk})
        return _accepted(serializers.evaluation_detail(record), address, created)


class EvaluationApi(APIView):
    actions: ClassVar = {"GET": "evaluation.view", "DELETE": "evaluation.delete"}

    @extend_schema(operation_id="evaluations_get", tags=TAGS, responses={200: EvaluationDetail, **NOT_FOUND})
    def get(self, request: Request, evaluation_id: UUID) -> Response:
        """One evaluation, with what was asked and what the judge found out."""
        record = selectors.evaluation_visible_to(request.user, evaluation_id)
        return Response(serializers.evaluation_detail(record))

    @extend_schema(
        operation_id="evaluations_delete",
        tags=TAGS,
        responses={204: None, 409: PROBLEM, **DENIED, **NOT_FOUND},
    )
    def delete(self, request: Request, evaluation_id: UUID) -> Response:
        """Deletes an evaluation that has ended."""
        user = signed_in(request.user)
        record = selectors.evaluation_visible_to(user, evaluation_id)
        services.evaluation_delete(user=user, record=record)
        return Response(status=204)


class EvaluationCancelApi(APIView):
    actions: ClassVar = {"POST": "evaluation.cancel"}

    @extend_schema(
        operation_id="evaluations_cancel",
        tags=TAGS,
        request=None,
        responses={200: EvaluationDetail, **DENIED, **NOT_FOUND},
    )
    def post(self, request: Request, evaluation_id: UUID) -> Response:
        """Stops a judgement with all its processes. Does nothing to one that has ended."""
        record = selectors.evaluation_visible_to(request.user, evaluation_id)
        record = services.evaluation_cancel(user=signed_in(request.user), record=record)
        return Response(serializers.evaluation_detail(record))


class EvaluationBatchesApi(APIView):
    actions: ClassVar = {"POST": "evaluation.create"}

    @extend_schema(
        operation_id="evaluation_batches_create",
        tags=TAGS,
        parameters=[idempotency.PARAMETER],
        request=EvaluationBatchCreate,
        responses={202: EvaluationBatch, **REFUSED},
    )
    def post(self, request: Request) -> Response:
        """Judges up to 100 candidates, for the same or for different tasks: all are accepted, or none."""
        batch, created = services.evaluation_batch_create(
            user=signed_in(request.user),
            request=serializers.batch_request(request.data),
            idempotency_key=idempotency.key_of(request),
        )
        document = serializers.batch_detail(batch)
        if any(result.message == services.QUEUE_AWAY for result in document.results):
            raise _queue_away()
        address = reverse("api:evaluation-batch", kwargs={"batch_id": batch.pk})
        return _accepted(document, address, created)


class EvaluationBatchApi(APIView):
    actions: ClassVar = {"GET": "evaluation.view"}

    @extend_schema(
        operation_id="evaluation_batches_get", tags=TAGS, responses={200: EvaluationBatch, **NOT_FOUND}
    )
    def get(self, request: Request, batch_id: UUID) -> Response:
        """How a batch stands; each evaluation's result is at its own address."""
        return Response(serializers.batch_detail(selectors.batch_visible_to(request.user, batch_id)))


class EvaluationBatchCancelApi(APIView):
    actions: ClassVar = {"POST": "evaluation.cancel"}

    @extend_schema(
        operation_id="evaluation_batches_cancel",
        tags=TAGS,
        request=None,
        responses={200: EvaluationBatch, **DENIED, **NOT_FOUND},
    )
    def post(self, request: Request, batch_id: UUID) -> Response:
        """Stops all of a batch that has not ended."""
        batch = selectors.batch_visible_to(request.user, batch_id)
        services.evaluation_batch_cancel(user=signed_in(request.user), batch=batch)
        return Response(serializers.batch_detail(batch))


def _queue_away() -> ProblemError:
    return ProblemError(503, "queue-unavailable", services.QUEUE_AWAY, headers={"Retry-After": "10"})


def _accepted(document: BaseModel, address: str, created: bool) -> Response:
    headers = {"Location": address} | ({} if created else {"Idempotency-Replayed": "true"})
    return Response(document, status=202, headers=headers)
