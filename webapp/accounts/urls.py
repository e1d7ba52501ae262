"""Addresses of accounts."""

from __future__ import annotations

from django.urls import path

from webapp.accounts import apis, pages

pages_urlpatterns = [
    path("enter/<str:token>", pages.enter, name="enter"),
    path("sign-in", pages.sign_in, name="sign-in"),
    path("admin/login/", pages.admin_sign_in),
    path("sign-out", pages.sign_out, name="sign-out"),
]
api_urlpatterns = [path("session", apis.SessionApi.as_view(), name="session")]
