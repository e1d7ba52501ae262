"""REST of what users are told, and of the rules by which reviewers are asked."""

from __future__ import annotations

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from webapp.accounts.selectors import signed_in
from webapp.common.bodies import parsed
from webapp.common.pagination import NewestFirst
from webapp.live import resources_reviews as resources
from webapp.reviews import notifications, rules, selectors, serializers
from webapp.reviews.apis_common import CHANGES, DENIED, NOT_FOUND, PAGED, PROBLEM, TAGS, WORKSPACE, page_of
from webapp.workspaces.selectors import workspace_visible_to


class NotificationsApi(APIView):
    actions: ClassVar = {"GET": "account.view"}

    @extend_schema(
        operation_id="notifications_list",
        tags=TAGS,
        parameters=PAGED,
        responses=resources.NotificationPage,
    )
    def get(self, request: Request) -> Response:
        """What you were told, newest first, over all your workspaces."""
        mine = selectors.notifications_of(signed_in(request.user))
        records, links = page_of(NewestFirst(), mine, request, self)
        results = [serializers.notification_item(it) for it in records]
        unread = mine.filter(read_at=None).count()
        return Response(resources.NotificationPage(results=results, unread=unread, **links))


class NotificationsReadApi(APIView):
    actions: ClassVar = {"POST": "notification.edit"}

    @extend_schema(
        operation_id="notifications_read",
        tags=TAGS,
        request=resources.NotificationsRead,
        responses={204: None, 400: PROBLEM},
    )
    def post(self, request: Request) -> Response:
        """Marks these as read; without `ids` all."""
        body = parsed(resources.NotificationsRead, request.data)
        notifications.notifications_read(user=signed_in(request.user), ids=body.ids)
        return Response(status=204)


class NotificationSettingsApi(APIView):
    actions: ClassVar = {"GET": "account.view", "PUT": "notification.edit"}

    @extend_schema(operation_id="notifications_settings", tags=TAGS, responses=resources.NotificationSettings)
    def get(self, request: Request) -> Response:
        """How you are told by mail: each, a digest a day, or none."""
        setting = notifications.setting_of(signed_in(request.user))
        return Response(resources.NotificationSettings(mail=setting.mail))

    @extend_schema(
        operation_id="notifications_settings_set",
        tags=TAGS,
        request=resources.NotificationSettings,
        responses={200: resources.NotificationSettings, 400: PROBLEM},
    )
    def put(self, request: Request) -> Response:
        """Sets it."""
        body = parsed(resources.NotificationSettings, request.data)
        setting = notifications.setting_save(user=signed_in(request.user), mail=body.mail)
        return Response(resources.NotificationSettings(mail=setting.mail))


class ReviewRulesApi(APIView):
    actions: ClassVar = {"GET": "review.view", "POST": "review_rule.edit"}

    @extend_schema(
        operation_id="review_rules_list",
        tags=TAGS,
        parameters=[WORKSPACE],
        responses={200: resources.ReviewRuleList, **NOT_FOUND},
    )
    def get(self, request: Request) -> Response:
        """Who is asked for which requests of a workspace."""
        workspace = workspace_visible_to(request.user, request.query_params.get("workspace"))
        results = [serializers.rule_item(it) for it in selectors.rules_of(workspace)]
        return Response(resources.ReviewRuleList(results=results, next=None, previous=None))

    @extend_schema(
        operation_id="review_rules_create",
        tags=TAGS,
        parameters=[WORKSPACE],
        request=resources.ReviewRuleWrite,
        responses={201: resources.ReviewRuleItem, **CHANGES},
    )
    def post(self, request: Request) -> Response:
        """Asks people for every new request whose file's name and tags fit."""
        user = signed_in(request.user)
        workspace = workspace_visible_to(user, request.query_params.get("workspace"))
        body = parsed(resources.ReviewRuleWrite, request.data)
        made = rules.rule_create(user=user, workspace=workspace, rule=body)
        return Response(serializers.rule_item(made), status=201)


class ReviewRuleApi(APIView):
    actions: ClassVar = {"DELETE": "review_rule.edit"}

    @extend_schema(
        operation_id="review_rules_delete", tags=TAGS, responses={204: None, **DENIED, **NOT_FOUND}
    )
    def delete(self, request: Request, rule_id: int) -> Response:
        """Takes a rule back. Whom it asked stays asked."""
        rule = selectors.rule_visible_to(request.user, rule_id)
        rules.rule_delete(user=signed_in(request.user), rule=rule)
        return Response(status=204)
