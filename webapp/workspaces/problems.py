"""What becomes of an error of the API: a problem document, and of a denial an entry in the audit log."""

from __future__ import annotations

from typing import Any

from rest_framework.response import Response

from webapp.common import problems
from webapp.workspaces.access import Denied


def exception_handler(error: Exception, context: dict[str, Any]) -> Response:
    """DRF's hook."""
    response = problems.exception_handler(error, context)
    if isinstance(error, Denied):
        error.record()
    return response
