"""Pages that stay right while new rows arrive."""

from __future__ import annotations

import re

from django.utils.dateparse import parse_datetime
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import NotFound
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request

from webapp.common.errors import ProblemError

PAGE_MAX = 200
LIMIT = OpenApiParameter(
    "limit", {"type": "integer", "minimum": 1}, description=f"How many on a page, at most {PAGE_MAX}"
)


class NewestFirst(CursorPagination):
    """A wrong cursor or limit is said, instead of answering something else than was asked for."""

    page_size = 50
    page_size_query_param = "limit"
    max_page_size = PAGE_MAX
    ordering = ("-created_at", "-id")

    def get_page_size(self, request: Request) -> int | None:
        text = request.query_params.get("limit")
        if text is not None and (not re.fullmatch(r"\d{1,9}", text, re.ASCII) or int(text) < 1):
            raise ProblemError(400, "invalid", f"limit: {text!r} is not a number from 1 to {PAGE_MAX}")
        return super().get_page_size(request)

    def decode_cursor(self, request: Request) -> Cursor | None:
        wrong = ProblemError(400, "invalid", "cursor: take it from `next` of the page before")
        try:
            cursor = super().decode_cursor(request)
            if cursor is not None:
                position = cursor.position
                if position is None and not (cursor.offset or cursor.reverse):
                    raise wrong
                if position is not None and parse_datetime(str(position)) is None:
                    raise wrong
        except (NotFound, ValueError):
            raise wrong from None
        return cursor
