"""The IDE's shell."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from webapp.accounts.selectors import session_of, signed_in
from webapp.ide.build import find_build
from webapp.reviews.selectors import request_visible_to
from webapp.runs.selectors import run_visible_to


@never_cache
@require_safe
@login_required
def ide(request: HttpRequest, run_id: UUID | None = None, review_id: UUID | None = None) -> HttpResponse:
    """The shell, whichever of its pages the address is of. Raises Http404 for what the user cannot see."""
    if run_id is not None:
        run_visible_to(request.user, run_id)
    if review_id is not None:
        request_visible_to(request.user, review_id)
    build = find_build()
    if build is None:
        return render(request, "not_built.html", status=503)
    session = session_of(signed_in(request.user), get_token(request))
    bootstrap: dict[str, Any] = session.model_dump(mode="json")
    bootstrap["run_id"] = None if run_id is None else str(run_id)
    return render(request, "ide.html", {"build": build, "bootstrap": bootstrap})
