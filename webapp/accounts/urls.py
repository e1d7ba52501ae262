"""Addresses of accounts."""

from __future__ import annotations

from django.urls import path

from webapp.accounts import apis, oidc, pages

pages_urlpatterns = [
    path("enter/<str:token>", pages.enter, name="enter"),
    path("sign-in", pages.sign_in, name="sign-in"),
    path("sign-in/<slug:provider_id>", oidc.login, name="openid_connect_login"),
    path("sign-in/<slug:provider_id>/callback", oidc.callback, name="openid_connect_callback"),
    path("admin/login/", pages.admin_sign_in),
    path("sign-out", pages.sign_out, name="sign-out"),
]
api_urlpatterns = [path("session", apis.SessionApi.as_view(), name="session")]
