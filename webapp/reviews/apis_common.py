"""What every view of reviews shares: the documented answers, pages, the versions that If-Match names."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.views import APIView

from webapp.common.errors import ProblemError
from webapp.common.pagination import LIMIT, NewestFirst
from webapp.live.resources import ProblemDocument

TAGS = ["reviews"]
PROBLEM = OpenApiResponse(ProblemDocument, description="What is wrong and what to do")
NOT_FOUND = {404: OpenApiResponse(ProblemDocument, description="No such object, or not for you")}
DENIED = {403: OpenApiResponse(ProblemDocument, description="Above your role, or outside the token's scopes")}
CHANGES: dict[int, Any] = {400: PROBLEM, 409: PROBLEM, **DENIED, **NOT_FOUND}
WORKSPACE = OpenApiParameter("workspace", str, description="Whose; without it your own workspace's")
CURSOR = OpenApiParameter("cursor", str, description="From `next` of the page before")
PAGED = [CURSOR, LIMIT]
IF_MATCH = OpenApiParameter(
    "If-Match",
    {"type": "string", "pattern": r'^"[0-9]{1,9}"$'},
    OpenApiParameter.HEADER,
    required=True,
    description="The ETag of the review request: its version in quotes",
)

Record = TypeVar("Record", bound=Model)


class OldestFirst(NewestFirst):
    ordering = ("created_at", "id")


def page_of(
    paginator: CursorPagination, records: QuerySet[Record], request: Request, view: APIView
) -> tuple[list[Record], dict[str, str | None]]:
    """The records of one page, and the addresses of its neighbours."""
    found = paginator.paginate_queryset(records, request, view)
    return list(found or []), {"next": paginator.get_next_link(), "previous": paginator.get_previous_link()}


def version_matched(request: Request) -> int:
    """What If-Match says. Raises ProblemError 428 without it, 412 for what was never an ETag of ours."""
    given = request.headers.get("If-Match", "").strip()
    if not given:
        detail = "Send the review request's ETag as If-Match, so that nobody's change is overwritten."
        raise ProblemError(428, "if-match-missing", detail)
    version = re.fullmatch(r'(?:W/)?"(\d{1,9})"', given)
    if version is None:
        raise ProblemError(412, "changed-meanwhile", "If-Match is no ETag of this request. Get it again.")
    return int(version[1])
