"""REST of agent profiles."""

from __future__ import annotations

import re
from typing import ClassVar

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from webapp.accounts.selectors import signed_in
from webapp.common.bodies import parsed
from webapp.common.errors import ProblemError
from webapp.live.resources import ProblemDocument
from webapp.live.resources_profiles import ProfileDetail, ProfileList, ProfileSettings
from webapp.profiles import selectors, services
from webapp.workspaces.access import require
from webapp.workspaces.models import Workspace
from webapp.workspaces.selectors import workspace_visible_to

TAGS = ["profiles"]
PROBLEM = OpenApiResponse(ProblemDocument, description="What is wrong and what to do")
NOT_FOUND = {
    404: OpenApiResponse(ProblemDocument, description="No such workspace or profile, or not for you")
}
DENIED = {403: OpenApiResponse(ProblemDocument, description="Above your role, or outside the token's scopes")}
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,47}")


class ProfilesApi(APIView):
    actions: ClassVar = {"GET": "profile.view"}

    @extend_schema(
        operation_id="profiles_list",
        tags=TAGS,
        parameters=[OpenApiParameter("workspace", str, description="Only of this one; else of all of yours")],
        responses={200: ProfileList, **NOT_FOUND},
    )
    def get(self, request: Request) -> Response:
        """The newest version of each agent profile that you can use."""
        user, slug = signed_in(request.user), request.query_params.get("workspace")
        if slug is None:
            versions = selectors.newest_versions_for(user)
        else:
            workspace = workspace_visible_to(user, slug)
            require(user, "profile.view", workspace)
            versions = selectors.newest_versions([workspace])
        return Response(ProfileList(results=[selectors.version_data(version) for version in versions]))


class ProfileApi(APIView):
    actions: ClassVar = {"GET": "profile.view", "PUT": "profile.edit", "DELETE": "profile.edit"}

    @extend_schema(
        operation_id="profiles_get",
        tags=TAGS,
        parameters=[OpenApiParameter("version", int, description="Without it the newest")],
        responses={200: ProfileDetail, **NOT_FOUND},
    )
    def get(self, request: Request, slug: str, name: str) -> Response:
        """One profile: the newest version, or the one named."""
        profile = selectors.profile_of(_workspace(request, slug, "profile.view"), name)
        number = request.query_params.get("version")
        if number is not None and not re.fullmatch(r"[0-9]{1,9}", number):
            raise ProblemError(400, "invalid", f"version: {number!r} is not a number")
        return Response(selectors.profile_detail(profile, None if number is None else int(number)))

    @extend_schema(
        operation_id="profiles_save",
        tags=TAGS,
        request=ProfileSettings,
        responses={200: ProfileDetail, 201: ProfileDetail, 400: PROBLEM, 409: PROBLEM, **DENIED, **NOT_FOUND},
    )
    def put(self, request: Request, slug: str, name: str) -> Response:
        """Makes a new version, of a new profile where there is none (201). Earlier ones stay."""
        workspace = _workspace(request, slug, "profile.edit")
        if not _NAME.fullmatch(name):
            raise ProblemError(
                400, "invalid", "name: lower-case letters, digits and dashes, at most 48 characters"
            )
        version, is_new = services.profile_save(
            user=signed_in(request.user),
            workspace=workspace,
            name=name,
            wanted=parsed(ProfileSettings, request.data),
        )
        return Response(selectors.profile_detail(version.profile), status=201 if is_new else 200)

    @extend_schema(operation_id="profiles_archive", tags=TAGS, responses={204: None, **DENIED, **NOT_FOUND})
    def delete(self, request: Request, slug: str, name: str) -> Response:
        """Offers it no more. What was made with it still says so."""
        workspace = _workspace(request, slug, "profile.edit")
        services.profile_archive(user=signed_in(request.user), profile=selectors.profile_of(workspace, name))
        return Response(status=204)


def _workspace(request: Request, slug: str, action: str) -> Workspace:
    user = signed_in(request.user)
    workspace = workspace_visible_to(user, slug)
    require(user, action, workspace)
    return workspace
