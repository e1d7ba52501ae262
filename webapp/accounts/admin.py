"""Accounts in Django's admin. Sign-in links are not shown: nothing in them is of use to a person."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin

from webapp.accounts.models import User

admin.site.register(User, UserAdmin)
admin.site.site_header = "Kernelwright"
admin.site.site_title = "Kernelwright"
