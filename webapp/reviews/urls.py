"""Addresses of reviews."""

from __future__ import annotations

from django.urls import path

from webapp.reviews import apis, apis_notifications, apis_threads

_REQUEST, _THREAD = "review-requests/<uuid:request_id>", "threads/<uuid:thread_id>"

api_urlpatterns = [
    path("inbox", apis.InboxApi.as_view(), name="inbox"),
    path("review-requests", apis.ReviewRequestsApi.as_view(), name="review-requests"),
    path(_REQUEST, apis.ReviewRequestApi.as_view(), name="review-request"),
    path(f"{_REQUEST}/close", apis.ReviewRequestCloseApi.as_view(), name="review-request-close"),
    path(f"{_REQUEST}/reopen", apis.ReviewRequestReopenApi.as_view(), name="review-request-reopen"),
    path(f"{_REQUEST}/merge", apis.ReviewRequestMergeApi.as_view(), name="review-request-merge"),
    path(f"{_REQUEST}/revisions", apis.ReviewRevisionsApi.as_view(), name="review-request-revisions"),
    path(f"{_REQUEST}/suggestions/apply", apis.SuggestionsApplyApi.as_view(), name="suggestions-apply"),
    path(f"{_REQUEST}/diff", apis.ReviewDiffApi.as_view(), name="review-request-diff"),
    path(f"{_REQUEST}/threads", apis_threads.ReviewThreadsApi.as_view(), name="review-threads"),
    path(f"{_REQUEST}/submissions", apis_threads.SubmissionsApi.as_view(), name="review-submissions"),
    path("revisions/<uuid:revision_id>", apis.RevisionApi.as_view(), name="revision"),
    path("revisions/<uuid:revision_id>/judge", apis.RevisionJudgeApi.as_view(), name="revision-judge"),
    path(_THREAD, apis_threads.ReviewThreadApi.as_view(), name="review-thread"),
    path(f"{_THREAD}/comments", apis_threads.ThreadCommentsApi.as_view(), name="review-comments"),
    path(f"{_THREAD}/resolve", apis_threads.ThreadResolveApi.as_view(), name="review-thread-resolve"),
    path(f"{_THREAD}/reopen", apis_threads.ThreadReopenApi.as_view(), name="review-thread-reopen"),
    path(f"{_THREAD}/send-to-agent", apis_threads.SendToAgentApi.as_view(), name="send-to-agent"),
    path("review-rules", apis_notifications.ReviewRulesApi.as_view(), name="review-rules"),
    path("review-rules/<int:rule_id>", apis_notifications.ReviewRuleApi.as_view(), name="review-rule"),
    path("notifications", apis_notifications.NotificationsApi.as_view(), name="notifications"),
    path("notifications/read", apis_notifications.NotificationsReadApi.as_view(), name="notifications-read"),
    path(
        "notifications/settings",
        apis_notifications.NotificationSettingsApi.as_view(),
        name="notification-settings",
    ),
    path("comments/<uuid:comment_id>", apis_threads.CommentApi.as_view(), name="review-comment"),
]
