"""REST of runs."""

from __future__ import annotations

import re
from functools import partial
from pathlib import PurePath
from typing import Any, ClassVar
from uuid import UUID

from django.http import HttpResponse, StreamingHttpResponse
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from webapp.accounts.selectors import signed_in
from webapp.common import idempotency
from webapp.common.authentication import still_signed_in
from webapp.common.bodies import JsonRenderer
from webapp.common.errors import ProblemError
from webapp.common.pagination import LIMIT, NewestFirst
from webapp.live.resources import EventPage, ProblemDocument, RunCreate, RunDetail, RunPage
from webapp.runs import selectors, serializers, services, streams
from webapp.runs.models import AgentRun
from webapp.workspaces.access import require
from webapp.workspaces.selectors import workspace_visible_to

EVENTS_MAX = 1000
TAGS = ["runs"]
PROBLEM = OpenApiResponse(ProblemDocument, description="What is wrong and what to do")
NOT_FOUND = {404: OpenApiResponse(ProblemDocument, description="No such run, or not for you")}
DENIED = {403: OpenApiResponse(ProblemDocument, description="Above your role, or outside the token's scopes")}


def _number(minimum: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": minimum, "maximum": 2**31 - 1}


class RunsApi(APIView):
    actions: ClassVar = {"GET": "run.view", "POST": "run.create"}

    @extend_schema(
        operation_id="runs_list",
        tags=TAGS,
        parameters=[
            OpenApiParameter("cursor", str, description="From `next` of the page before"),
            LIMIT,
            OpenApiParameter("workspace", str, description="Whose runs; without it your own workspace's"),
        ],
        responses={200: RunPage, 404: OpenApiResponse(ProblemDocument, description="No such workspace")},
    )
    def get(self, request: Request) -> Response:
        """A workspace's runs, newest first."""
        paginator = NewestFirst()
        workspace = workspace_visible_to(request.user, request.query_params.get("workspace"))
        runs = paginator.paginate_queryset(selectors.runs_listed(request.user, workspace), request, self)
        page = RunPage(
            results=serializers.run_summaries(runs or []),
            next=paginator.get_next_link(),
            previous=paginator.get_previous_link(),
        )
        return Response(page)

    @extend_schema(
        operation_id="runs_create",
        tags=TAGS,
        parameters=[idempotency.PARAMETER],
        request=RunCreate,
        responses={
            202: RunDetail,
            400: PROBLEM,
            409: PROBLEM,
            413: PROBLEM,
            429: PROBLEM,
            503: PROBLEM,
            **DENIED,
            **NOT_FOUND,
        },
    )
    def post(self, request: Request) -> Response:
        """Starts a run. Answers at once; follow it by its events or by the websocket `/ws/runs/{id}`."""
        run, created = services.agent_run_create(
            user=signed_in(request.user),
            request=serializers.run_request(request.data, signed_in(request.user)),
            idempotency_key=idempotency.key_of(request),
        )
        return _accepted(run, created)


class RunApi(APIView):
    actions: ClassVar = {"GET": "run.view", "DELETE": "run.delete"}

    @extend_schema(operation_id="runs_get", tags=TAGS, responses={200: RunDetail, **NOT_FOUND})
    def get(self, request: Request, run_id: UUID) -> Response:
        """One run, with what it was asked and what its turns came to."""
        return Response(serializers.run_detail(selectors.run_visible_to(request.user, run_id)))

    @extend_schema(
        operation_id="runs_delete", tags=TAGS, responses={204: None, 409: PROBLEM, **DENIED, **NOT_FOUND}
    )
    def delete(self, request: Request, run_id: UUID) -> Response:
        """Deletes a run that has ended, with its events."""
        user, run = signed_in(request.user), selectors.run_visible_to(request.user, run_id)
        require(user, "run.delete", run)
        services.agent_run_delete(user=user, run=run)
        return Response(status=204)


class RunEventsApi(APIView):
    actions: ClassVar = {"GET": "run.view"}
    renderer_classes = (JsonRenderer, streams.EventStreamRenderer)

    @extend_schema(
        operation_id="runs_events",
        tags=TAGS,
        parameters=[
            OpenApiParameter("after_seq", _number(0), description="Only events after this number; 0: all"),
            OpenApiParameter(
                "limit",
                _number(1),
                description=f"At most {EVENTS_MAX}, the default; not of a stream",
            ),
            OpenApiParameter(
                "Last-Event-ID",
                _number(0),
                OpenApiParameter.HEADER,
                description="Of a stream: the last event the client has; instead of after_seq",
            ),
        ],
        responses={
            (200, "application/json"): EventPage,
            (200, "text/event-stream"): streams.MESSAGE_SCHEMA,
            **NOT_FOUND,
        },
    )
    def get(self, request: Request, run_id: UUID) -> Response | StreamingHttpResponse:
        """A run's events, in order: a page of them, or with `Accept: text/event-stream` all, as they come.

        Each message of the stream has one frame of the websocket as its data, and the event's number as id.
        """
        run = selectors.run_visible_to(request.user, run_id)
        after_seq = _integer(request, "after_seq", default=0, low=0, high=2**31 - 1)
        last = _number_in("Last-Event-ID", request.headers.get("Last-Event-ID"))
        if getattr(request, "accepted_media_type", "").startswith(streams.MEDIA_TYPE):
            return streams.stream(
                run, after_seq if last is None else last, partial(_may_still_see, request, run_id)
            )
        limit = _integer(request, "limit", default=EVENTS_MAX, low=1, high=EVENTS_MAX)
        return Response(serializers.event_page(run, selectors.events_after(run.pk, after_seq, limit)))


class RunCancelApi(APIView):
    actions: ClassVar = {"POST": "run.cancel"}

    @extend_schema(
        operation_id="runs_cancel", tags=TAGS, request=None, responses={200: RunDetail, **DENIED, **NOT_FOUND}
    )
    def post(self, request: Request, run_id: UUID) -> Response:
        """Stops a run with all its processes. Does nothing to a run that has ended."""
        run = selectors.run_visible_to(request.user, run_id)
        run = services.agent_run_cancel(user=signed_in(request.user), run=run)
        return Response(serializers.run_detail(run))


class RunRerunApi(APIView):
    actions: ClassVar = {"POST": "run.create"}

    @extend_schema(
        operation_id="runs_rerun",
        tags=TAGS,
        parameters=[idempotency.PARAMETER],
        request=None,
        responses={202: RunDetail, 429: PROBLEM, 503: PROBLEM, **DENIED, **NOT_FOUND},
    )
    def post(self, request: Request, run_id: UUID) -> Response:
        """Starts a new run of the same request."""
        run = selectors.run_visible_to(request.user, run_id)
        again, created = services.agent_run_rerun(
            user=signed_in(request.user), run=run, idempotency_key=idempotency.key_of(request)
        )
        return _accepted(again, created)


class RunResumeApi(APIView):
    actions: ClassVar = {"POST": "run.create"}

    @extend_schema(
        operation_id="runs_resume",
        tags=TAGS,
        parameters=[idempotency.PARAMETER],
        request=None,
        responses={202: RunDetail, 409: PROBLEM, 429: PROBLEM, 503: PROBLEM, **NOT_FOUND},
    )
    def post(self, request: Request, run_id: UUID) -> Response:
        """Goes on where a model's run was broken off: a new run that begins with its judged turns."""
        run = selectors.run_visible_to(request.user, run_id)
        resumed, created = services.agent_run_resume(
            user=signed_in(request.user), run=run, idempotency_key=idempotency.key_of(request)
        )
        return _accepted(resumed, created)


class RunCandidateApi(APIView):
    actions: ClassVar = {"GET": "run.view"}

    @extend_schema(
        operation_id="runs_candidate",
        tags=TAGS,
        parameters=[
            OpenApiParameter("turn", _number(1), description="Which turn's; without it the best one's")
        ],
        responses={(200, "text/x-cuda"): OpenApiTypes.STR, **NOT_FOUND},
    )
    def get(self, request: Request, run_id: UUID) -> HttpResponse:
        """A turn's CUDA source, as a file."""
        run = selectors.run_visible_to(request.user, run_id)
        wanted = _integer(request, "turn", default=0, low=1, high=1000) or None
        found = selectors.run_candidate(run, wanted)
        if found is None:
            detail = (
                f"Turn {wanted} has no candidate."
                if wanted
                else "No turn has passed yet, so there is no best candidate; name one by ?turn="
            )
            raise ProblemError(404, "no-candidate", detail)
        turn, source = found
        stem = re.sub(r"[^A-Za-z0-9._-]+", "_", PurePath(run.title).stem).strip("._") or "kernel"
        return HttpResponse(
            source,
            content_type="text/x-cuda; charset=utf-8",
            headers={
                "Content-Disposition": f'attachment; filename="{stem}-turn{turn}.cu"',
                "X-Content-Type-Options": "nosniff",
            },
        )


def _accepted(run: AgentRun, created: bool) -> Response:
    if run.state == AgentRun.State.FAILED and run.problem and run.problem["kind"] == "queue_unavailable":
        raise ProblemError(503, "queue-unavailable", run.message, headers={"Retry-After": "10"})
    address = reverse("api:run", kwargs={"run_id": run.pk})
    headers = {"Location": address} | ({} if created else {"Idempotency-Replayed": "true"})
    return Response(serializers.run_detail(run), status=202, headers=headers)


def _integer(request: Request, name: str, *, default: int, low: int, high: int) -> int:
    """A number of the query string, held to its upper bound. Raises ProblemError for what is none."""
    number = _number_in(name, request.query_params.get(name), low)
    return default if number is None else min(high, number)


def _number_in(name: str, text: str | None, low: int = 0) -> int | None:
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,12}", text, re.ASCII) or int(text) < low:
        raise ProblemError(400, "invalid", f"{name}: {text!r} is not a number from {low} on")
    return int(text)


def _may_still_see(request: Request, run_id: UUID) -> bool:
    """Who asked, as the session or token stands now."""
    user = still_signed_in(request)
    return user is not None and selectors.runs_visible_to(user).filter(pk=run_id).exists()
