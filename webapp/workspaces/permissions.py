"""Who gets to a view of the API at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from webapp.accounts.models import User
from webapp.workspaces.access import Denied, unscoped
from webapp.workspaces.models import Workspace
from webapp.workspaces.roles import ACTIONS
from webapp.workspaces.selectors import has_scope, workspaces_visible_to

if TYPE_CHECKING:  # it asks for this module itself, by the settings
    from rest_framework.views import APIView


class Allowed(BasePermission):
    """Before a view: that somebody is signed in, and that the token is good for the view's action.

    The view says by `actions` which action of the table each of its methods is; what that needs of the role
    only the view can ask, by `require`, when it knows the object.
    """

    def has_permission(self, request: Request, view: APIView) -> bool:
        user = request.user
        if not isinstance(user, User) or not user.is_authenticated:
            return False
        method = "GET" if request.method == "HEAD" else request.method
        if not hasattr(view, (method or "").lower()) or method == "OPTIONS":
            return True  # answered with 405, or with what the view accepts
        action: str = view.actions[method]  # type: ignore[attr-defined]
        if not has_scope(user, action):
            raise unscoped(user, action, _workspace_meant(user, view), None)
        staff = ACTIONS[action].staff
        if staff and not (user.is_staff and user.has_perm(staff)):
            detail = f"{ACTIONS[action].words.capitalize()} is for administrators of the server."
            raise Denied(
                detail, action=action, actor=user, workspace_id=_workspace_meant(user, view), thing=None
            )
        return True


def _workspace_meant(user: User, view: APIView) -> int | None:
    """In whose log a refused token belongs: the address's workspace, the token's, the user's own."""
    slug = view.kwargs.get("slug")
    if slug is not None:
        return workspaces_visible_to(user).filter(slug=slug).values_list("pk", flat=True).first()
    if user.token is not None and user.token.workspace_id is not None:
        return user.token.workspace_id
    return Workspace.objects.filter(personal_of=user).values_list("pk", flat=True).first()
