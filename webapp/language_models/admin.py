"""Language models in Django's admin: keys go in and never come out."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from webapp.language_models import services
from webapp.language_models.models import LanguageModel
from webapp.language_models.selectors import model_info
from webapp.language_models.serializers import environment_shown

_SECTIONS: Any = (
    (None, {"fields": ("name", "source", "enabled", "is_default")}),
    (
        "Where it is",
        {"fields": ("base_url", "model", "key", "remove_key", "allow_loopback", "allow_private")},
    ),
    ("How it is asked", {"fields": ("protocol", "temperature", "top_p", "context_tokens", "answer_tokens")}),
    ("What it costs", {"fields": ("price_prompt", "price_completion")}),
    (
        "Patience and pace",
        {
            "fields": (
                *("attempts", "backoff_seconds", "connect_seconds", "silence_seconds", "answer_seconds"),
                *("requests_per_minute", "requests_at_once"),
            )
        },
    ),
    ("What was found out", {"fields": ("state", "calls_tools", "served", "tried_at")}),
)


class LanguageModelForm(forms.ModelForm):  # type: ignore[type-arg]
    key = forms.CharField(
        required=False,
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "new-password"}),
        help_text="Kept encrypted, and only for this scheme, host and port. Empty: as it is.",
    )
    remove_key = forms.BooleanField(required=False)

    class Meta:
        model = LanguageModel
        fields = "__all__"


@admin.register(LanguageModel)
class LanguageModelAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    form = LanguageModelForm
    fieldsets = _SECTIONS
    list_display = ("name", "asked", "enabled", "is_default", "has_key", "state", "tried_at")
    readonly_fields = ("source", "state", "calls_tools", "served", "tried_at")
    actions = ("try_it",)

    @admin.display(description="model")
    def asked(self, model: LanguageModel) -> str:
        return model_info(model).model

    @admin.display(description="set up by")
    def source(self, model: LanguageModel) -> str:
        if model.origin != LanguageModel.Origin.ENVIRONMENT:
            return model.get_origin_display()
        shown = environment_shown(model)
        key = "with a key" if shown.get("has_key") else "without a key"
        return f"{model.get_origin_display()}: {shown.get('base_url', 'not set')}, {key}"

    @admin.display(boolean=True, description="key")
    def has_key(self, model: LanguageModel) -> bool:
        return bool(environment_shown(model).get("has_key")) or model.has_key

    @admin.display(description="can be asked")
    def state(self, model: LanguageModel) -> str:
        return model_info(model).reason or "yes" if model.pk else ""

    def get_readonly_fields(self, request: HttpRequest, obj: LanguageModel | None = None) -> tuple[str, ...]:
        fixed = tuple(self.readonly_fields)
        if obj is not None:
            fixed += ("name",)
            if obj.origin != LanguageModel.Origin.ADMIN:
                fixed += services.GIVEN
        return fixed

    def get_fieldsets(self, request: HttpRequest, obj: LanguageModel | None = None) -> Any:
        if obj is None or obj.origin == LanguageModel.Origin.ADMIN:
            return _SECTIONS
        hidden = {"key", "remove_key"}
        return [
            (title, {"fields": tuple(name for name in options["fields"] if name not in hidden)})
            for title, options in _SECTIONS
        ]

    def save_model(self, request: HttpRequest, obj: LanguageModel, form: Any, change: bool) -> None:
        # What the form has put into `obj` is applied again on the stored one, so that the service sees both.
        stored = LanguageModel.objects.get(pk=obj.pk) if change else LanguageModel()
        own = {field.name for field in LanguageModel._meta.fields}
        values = {name: value for name, value in form.cleaned_data.items() if name in own}
        key = "" if form.cleaned_data.get("remove_key") else form.cleaned_data.get("key") or None
        if services.language_model_save(model=stored, values=values, key=key, actor=request.user):
            messages.warning(request, services.DROPPED)
        obj.pk, obj.sealed_key = stored.pk, stored.sealed_key

    def delete_model(self, request: HttpRequest, obj: LanguageModel) -> None:
        services.language_model_delete(model=obj, actor=request.user)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[LanguageModel]) -> None:
        for model in queryset:
            services.language_model_delete(model=model, actor=request.user)

    @admin.action(description="Try it: ask for one word", permissions=["change"])
    def try_it(self, request: HttpRequest, queryset: QuerySet[LanguageModel]) -> None:
        for model in queryset:
            found = services.language_model_try(model=model)
            level = messages.SUCCESS if found.ok else messages.ERROR
            self.message_user(request, f"{model.name}: {found.detail}", level)
