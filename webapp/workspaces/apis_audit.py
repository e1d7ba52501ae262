"""REST of the audit log: pages with filters, and a file."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import ClassVar

from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from django.utils.dateparse import parse_datetime
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from webapp.common.errors import ProblemError
from webapp.common.pagination import NewestFirst
from webapp.live import resources_workspaces as resources
from webapp.workspaces import selectors, serializers
from webapp.workspaces.apis import DENIED, NOT_FOUND, PROBLEM, TAGS, workspace_for
from webapp.workspaces.models import AuditEntry

#: A file holds at most so many entries, the newest; `until` gets the ones before.
CSV_ROWS_MAX = 100_000
FILTERS = [
    OpenApiParameter("actor", str, description="Only of this user name"),
    OpenApiParameter("action", str, description="Only this action, or (`run.`) those that begin so"),
    OpenApiParameter("object", str, description="Only about the object with this id"),
    OpenApiParameter("denied", bool, description="Only what was denied, or only what was not"),
    OpenApiParameter("since", OpenApiTypes.DATETIME, description="From this time on"),
    OpenApiParameter("until", OpenApiTypes.DATETIME, description="Before this time"),
]


class AuditApi(APIView):
    actions: ClassVar = {"GET": "audit.view"}

    @extend_schema(
        operation_id="audit_list",
        tags=TAGS,
        parameters=[
            *FILTERS,
            OpenApiParameter("cursor", str, description="From `next` of the page before"),
            OpenApiParameter("limit", int, description="Entries on a page, at most 200"),
        ],
        responses={200: resources.AuditPage, 400: PROBLEM, **DENIED, **NOT_FOUND},
    )
    def get(self, request: Request, slug: str) -> Response:
        """Who did what in the workspace, and what was denied, newest first."""
        entries = _filtered(request, selectors.audit_of(workspace_for(request, slug, "audit.view")))
        paginator = NewestFirst()
        page = paginator.paginate_queryset(entries, request, self) or []
        return Response(
            resources.AuditPage(
                results=[serializers.audit_item(it) for it in page],
                next=paginator.get_next_link(),
                previous=paginator.get_previous_link(),
            )
        )


class AuditFileApi(APIView):
    actions: ClassVar = {"GET": "audit.view"}

    @extend_schema(
        operation_id="audit_file",
        tags=TAGS,
        parameters=FILTERS,
        responses={(200, "text/csv"): OpenApiTypes.STR, 400: PROBLEM, **DENIED, **NOT_FOUND},
    )
    def get(self, request: Request, slug: str) -> StreamingHttpResponse:
        """The same as a file, at most 100,000 entries."""
        workspace = workspace_for(request, slug, "audit.view")
        entries = _filtered(request, selectors.audit_of(workspace))[:CSV_ROWS_MAX]
        return StreamingHttpResponse(
            serializers.audit_csv(entries.iterator(chunk_size=1000)),
            content_type="text/csv; charset=utf-8",
            headers={
                "Content-Disposition": f'attachment; filename="audit-{workspace.slug}.csv"',
                "X-Content-Type-Options": "nosniff",
            },
        )


def _filtered(request: Request, entries: QuerySet[AuditEntry]) -> QuerySet[AuditEntry]:
    """Raises ProblemError for what is no filter."""
    asked = request.query_params
    if actor := asked.get("actor"):
        entries = entries.filter(actor_name=_plain("actor", actor))
    if action := asked.get("action"):
        _plain("action", action)
        prefix = action.endswith(".")
        entries = entries.filter(action__startswith=action) if prefix else entries.filter(action=action)
    if thing := asked.get("object"):
        entries = entries.filter(object_id=_plain("object", thing))
    if (denied := asked.get("denied")) is not None:
        if denied not in ("true", "false"):
            raise ProblemError(400, "invalid", f"denied: is true or false, not {denied!r}")
        entries = entries.filter(denied=denied == "true")
    if (since := asked.get("since")) is not None:
        entries = entries.filter(created_at__gte=_time("since", since))
    if (until := asked.get("until")) is not None:
        entries = entries.filter(created_at__lt=_time("until", until))
    return entries


def _plain(name: str, text: str) -> str:
    if "\x00" in text:
        raise ProblemError(400, "invalid", f"{name}: holds a NUL character")
    return text


def _time(name: str, text: str) -> datetime:
    """ISO 8601; UTC where it does not say."""
    try:
        time = parse_datetime(text)
    except ValueError:
        time = None
    if time is None:
        raise ProblemError(400, "invalid", f"{name}: {text!r} is no time like 2026-01-31T12:00:00Z")
    return time if time.tzinfo else time.replace(tzinfo=UTC)
