"""The one error that becomes a response."""

from __future__ import annotations

from webapp.live.resources import FieldProblem
from webapp.live.resources_reviews import CodeMoved


class ProblemError(Exception):
    """Raised anywhere below an API view: becomes the response."""

    def __init__(
        self,
        status: int,
        slug: str,
        detail: str,
        *,
        errors: list[FieldProblem] | None = None,
        headers: dict[str, str] | None = None,
        code_moved: CodeMoved | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.slug = slug
        self.detail = detail
        self.errors = errors or []
        self.headers = headers or {}
        self.code_moved = code_moved
