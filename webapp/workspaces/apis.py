"""REST of workspaces: settings, members, invitations, usage and quotas."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, ClassVar
from uuid import UUID

from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from webapp.accounts.selectors import signed_in
from webapp.common.bodies import parsed
from webapp.common.errors import ProblemError
from webapp.live import resources_workspaces as resources
from webapp.live.resources import ProblemDocument
from webapp.workspaces import invitations, quotas, selectors, serializers, services
from webapp.workspaces.access import require
from webapp.workspaces.models import Workspace
from webapp.workspaces.roles import Role

TAGS = ["workspaces"]
PROBLEM = OpenApiResponse(ProblemDocument, description="What is wrong and what to do")
NOT_FOUND = {404: OpenApiResponse(ProblemDocument, description="No such workspace or object, or not for you")}
DENIED = {403: OpenApiResponse(ProblemDocument, description="Above your role, or outside the token's scopes")}
IF_MATCH = OpenApiParameter(
    "If-Match", str, OpenApiParameter.HEADER, required=True, description="The ETag of the workspace"
)


def workspace_for(request: Request, slug: str, action: str) -> Workspace:
    """The workspace of the address, when the user may do this there. Raises Http404, Denied."""
    user = signed_in(request.user)
    workspace = selectors.workspace_visible_to(user, slug)
    require(user, action, workspace)
    return workspace


class WorkspacesApi(APIView):
    actions: ClassVar = {"GET": "account.view", "POST": "workspace.create"}

    @extend_schema(operation_id="workspaces_list", tags=TAGS, responses=resources.WorkspaceList)
    def get(self, request: Request) -> Response:
        """The workspaces you are a member of, with your role in each."""
        mine = selectors.memberships_visible_to(signed_in(request.user))
        return Response(
            resources.WorkspaceList(
                results=[serializers.workspace_summary(it.workspace, it.role) for it in mine]
            )
        )

    @extend_schema(
        operation_id="workspaces_create",
        tags=TAGS,
        request=resources.WorkspaceCreate,
        responses={201: resources.WorkspaceDetail, 400: PROBLEM, 409: PROBLEM, **DENIED},
    )
    def post(self, request: Request) -> Response:
        """Makes a workspace for a team, with you as its admin."""
        wanted = parsed(resources.WorkspaceCreate, request.data)
        user = signed_in(request.user)
        if user.token is not None and user.token.workspace_id is not None:
            raise ProblemError(403, "not-allowed", "This token acts in one workspace, and makes no other.")
        workspace = services.workspace_create(user=user, slug=wanted.slug, name=wanted.name)
        response = _workspace_response(workspace, Role.ADMIN, status=201)
        response["Location"] = reverse("api:workspace", kwargs={"slug": workspace.slug})
        return response


class WorkspaceApi(APIView):
    actions: ClassVar = {"GET": "workspace.view", "PATCH": "workspace.edit"}

    @extend_schema(
        operation_id="workspaces_get", tags=TAGS, responses={200: resources.WorkspaceDetail, **NOT_FOUND}
    )
    def get(self, request: Request, slug: str) -> Response:
        """One workspace, and what you may do in it."""
        workspace = workspace_for(request, slug, "workspace.view")
        return _workspace_response(workspace, _role(request, workspace))

    @extend_schema(
        operation_id="workspaces_edit",
        tags=TAGS,
        parameters=[IF_MATCH],
        request=resources.WorkspaceEdit,
        responses={
            200: resources.WorkspaceDetail,
            400: PROBLEM,
            409: PROBLEM,
            412: PROBLEM,
            428: PROBLEM,
            **DENIED,
            **NOT_FOUND,
        },
    )
    def patch(self, request: Request, slug: str) -> Response:
        """Changes a workspace's name, or its name in addresses."""
        workspace = workspace_for(request, slug, "workspace.edit")
        wanted = parsed(resources.WorkspaceEdit, request.data)
        workspace = services.workspace_edit(
            user=signed_in(request.user),
            workspace=workspace,
            version=_version(request),
            slug=wanted.slug,
            name=wanted.name,
        )
        return _workspace_response(workspace, _role(request, workspace))


class MembersApi(APIView):
    actions: ClassVar = {"GET": "member.view"}

    @extend_schema(operation_id="members_list", tags=TAGS, responses={200: resources.MemberList, **NOT_FOUND})
    def get(self, request: Request, slug: str) -> Response:
        """Who is a member, and as what."""
        members = selectors.members_of(workspace_for(request, slug, "member.view"))
        return Response(resources.MemberList(results=[serializers.member(it) for it in members]))


class MemberApi(APIView):
    actions: ClassVar = {"PATCH": "member.edit", "DELETE": "member.remove"}

    @extend_schema(
        operation_id="members_edit",
        tags=TAGS,
        request=resources.MemberEdit,
        responses={200: resources.Member, 400: PROBLEM, 409: PROBLEM, **DENIED, **NOT_FOUND},
    )
    def patch(self, request: Request, slug: str, user_id: int) -> Response:
        """Gives a member another role."""
        workspace = workspace_for(request, slug, "member.edit")
        role = Role(parsed(resources.MemberEdit, request.data).role)
        member = services.member_role_set(
            user=signed_in(request.user), member=selectors.member_of(workspace, user_id), role=role
        )
        return Response(serializers.member(member))

    @extend_schema(
        operation_id="members_remove",
        tags=TAGS,
        responses={204: None, 409: PROBLEM, **DENIED, **NOT_FOUND},
    )
    def delete(self, request: Request, slug: str, user_id: int) -> Response:
        """Takes a member out; anybody may leave."""
        user = signed_in(request.user)
        member = selectors.member_of(selectors.workspace_visible_to(user, slug), user_id)
        require(user, "member.remove", member)
        services.member_remove(user=user, member=member)
        return Response(status=204)


class InvitationsApi(APIView):
    actions: ClassVar = {"GET": "invitation.view", "POST": "invitation.create"}

    @extend_schema(
        operation_id="invitations_list",
        tags=TAGS,
        responses={200: resources.InvitationList, **DENIED, **NOT_FOUND},
    )
    def get(self, request: Request, slug: str) -> Response:
        """The last 200 invitations, also those that have ended, newest first."""
        found = selectors.invitations_of(workspace_for(request, slug, "invitation.view"))[:200]
        return Response(resources.InvitationList(results=[serializers.invitation(it) for it in found]))

    @extend_schema(
        operation_id="invitations_create",
        tags=TAGS,
        request=resources.InvitationCreate,
        responses={201: resources.InvitationCreated, 400: PROBLEM, 409: PROBLEM, **DENIED, **NOT_FOUND},
    )
    def post(self, request: Request, slug: str) -> Response:
        """Invites somebody. The link is in this answer, this once, unless it went out by mail."""
        workspace = workspace_for(request, slug, "invitation.create")
        wanted = parsed(resources.InvitationCreate, request.data)
        user = signed_in(request.user)
        invitation, token = invitations.invitation_create(
            user=user,
            workspace=workspace,
            email=serializers.email_address(wanted.email),
            role=Role(wanted.role),
            lifetime=timedelta(days=wanted.days),
        )
        link = request.build_absolute_uri(reverse("invitation", kwargs={"token": token}))
        mail = invitations.invitation_mail(invitation=invitation, link=link, sender=user.get_username())
        created = resources.InvitationCreated(
            **serializers.invitation_fields(invitation), mail=mail, link=None if mail == "sent" else link
        )
        return Response(created, status=201, headers={"Cache-Control": "no-store"})


class InvitationApi(APIView):
    actions: ClassVar = {"DELETE": "invitation.revoke"}

    @extend_schema(
        operation_id="invitations_revoke",
        tags=TAGS,
        responses={204: None, 409: PROBLEM, **DENIED, **NOT_FOUND},
    )
    def delete(self, request: Request, slug: str, invitation_id: UUID) -> Response:
        """Takes an invitation back: its link stops working."""
        workspace = workspace_for(request, slug, "invitation.revoke")
        invitation = selectors.invitation_of(workspace, invitation_id)
        invitations.invitation_revoke(user=signed_in(request.user), invitation=invitation)
        return Response(status=204)


class InvitationAcceptApi(APIView):
    actions: ClassVar = {"POST": "invitation.accept"}

    @extend_schema(
        operation_id="invitations_accept",
        tags=TAGS,
        request=resources.InvitationAccept,
        responses={200: resources.WorkspaceSummary, 400: PROBLEM, 409: PROBLEM, 410: PROBLEM, **DENIED},
    )
    def post(self, request: Request) -> Response:
        """Makes you a member, by the token of an invitation's link. It works once."""
        token = parsed(resources.InvitationAccept, request.data).token
        member = invitations.invitation_accept(user=signed_in(request.user), token=token)
        return Response(serializers.workspace_summary(member.workspace, member.role))


class UsageApi(APIView):
    actions: ClassVar = {"GET": "usage.view"}

    @extend_schema(operation_id="usage_get", tags=TAGS, responses={200: resources.UsageReport, **NOT_FOUND})
    def get(self, request: Request, slug: str) -> Response:
        """What is used and what remains, of the workspace and of yourself; also in RateLimit headers."""
        workspace = workspace_for(request, slug, "usage.view")
        uses = quotas.quota_uses(user=signed_in(request.user), workspace=workspace)
        return Response(serializers.usage_report(uses), headers=quotas.headers(uses))


class QuotasApi(APIView):
    actions: ClassVar = {"GET": "usage.view", "PUT": "quota.edit"}

    @extend_schema(
        operation_id="quotas_get", tags=TAGS, responses={200: resources.QuotaSettings, **NOT_FOUND}
    )
    def get(self, request: Request, slug: str) -> Response:
        """The limits that the workspace's admins have set."""
        workspace = workspace_for(request, slug, "usage.view")
        settings = serializers.quota_settings(quotas.settings_of(workspace))
        return Response(settings, headers={"ETag": _etag(workspace)})

    @extend_schema(
        operation_id="quotas_set",
        tags=TAGS,
        parameters=[IF_MATCH],
        request=resources.QuotaSettings,
        responses={
            200: resources.QuotaSettings,
            400: PROBLEM,
            412: PROBLEM,
            428: PROBLEM,
            **DENIED,
            **NOT_FOUND,
        },
    )
    def put(self, request: Request, slug: str) -> Response:
        """Sets exactly these limits; what is not named has none of the workspace's own."""
        workspace = workspace_for(request, slug, "quota.edit")
        wanted = serializers.settings_wanted(parsed(resources.QuotaSettings, request.data))
        quotas.settings_replace(
            user=signed_in(request.user), workspace=workspace, version=_version(request), wanted=wanted
        )
        settings = serializers.quota_settings(quotas.settings_of(workspace))
        return Response(settings, headers={"ETag": _etag(workspace)})


def _role(request: Request, workspace: Workspace) -> Role:
    role = selectors.role_of(signed_in(request.user), workspace.pk)
    assert role is not None  # it was required before
    return role


def _workspace_response(workspace: Workspace, role: Role, **kwargs: Any) -> Response:
    return Response(
        serializers.workspace_detail(workspace, role), headers={"ETag": _etag(workspace)}, **kwargs
    )


def _etag(workspace: Workspace) -> str:
    return f'"{workspace.version}"'


def _version(request: Request) -> int:
    """What If-Match says. Raises ProblemError 428 without it, 412 for what was never an ETag of ours."""
    given = request.headers.get("If-Match", "").strip()
    if not given:
        detail = "Send the workspace's ETag as If-Match, so that nobody's change is overwritten."
        raise ProblemError(428, "if-match-missing", detail)
    version = re.fullmatch(r'(?:W/)?"(\d{1,9})"', given)
    if version is None:
        raise ProblemError(412, "changed-meanwhile", "If-Match is no ETag of this workspace. Get it again.")
    return int(version[1])
