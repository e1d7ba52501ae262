"""Addresses of workspaces and accounts."""

from __future__ import annotations

from django.urls import path

from webapp.workspaces import apis, apis_account, apis_audit, pages

pages_urlpatterns = [
    path("account", pages.account, name="account"),
    path("invitations/<str:token>", pages.invitation, name="invitation"),
]

_workspace = "workspaces/<slug:slug>"
api_urlpatterns = [
    path("workspaces", apis.WorkspacesApi.as_view(), name="workspaces"),
    path(_workspace, apis.WorkspaceApi.as_view(), name="workspace"),
    path(f"{_workspace}/members", apis.MembersApi.as_view(), name="members"),
    path(f"{_workspace}/members/<int:user_id>", apis.MemberApi.as_view(), name="member"),
    path(f"{_workspace}/invitations", apis.InvitationsApi.as_view(), name="invitations"),
    path(
        f"{_workspace}/invitations/<uuid:invitation_id>",
        apis.InvitationApi.as_view(),
        name="workspace-invitation",
    ),
    path(f"{_workspace}/usage", apis.UsageApi.as_view(), name="usage"),
    path(f"{_workspace}/quotas", apis.QuotasApi.as_view(), name="quotas"),
    path(f"{_workspace}/tokens", apis_account.MemberTokensApi.as_view(), name="member-tokens"),
    path(f"{_workspace}/tokens/<uuid:token_id>", apis_account.MemberTokenApi.as_view(), name="member-token"),
    path(f"{_workspace}/audit", apis_audit.AuditApi.as_view(), name="audit"),
    path(f"{_workspace}/audit.csv", apis_audit.AuditFileApi.as_view(), name="audit-file"),
    path("invitations/accept", apis.InvitationAcceptApi.as_view(), name="invitation-accept"),
    path("tokens", apis_account.TokensApi.as_view(), name="tokens"),
    path("tokens/<uuid:token_id>", apis_account.TokenApi.as_view(), name="token"),
    path("me/sessions", apis_account.SessionsApi.as_view(), name="sessions"),
    path("me/sessions/<uuid:session_id>", apis_account.BrowserSessionApi.as_view(), name="browser-session"),
]
