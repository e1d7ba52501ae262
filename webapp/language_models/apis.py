"""REST of language models: everybody sees which there are, administrators set them up."""

from __future__ import annotations

from typing import ClassVar

from django.core.exceptions import ValidationError
from django.http import Http404
from django.urls import reverse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from pydantic import RootModel
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from webapp.common.errors import ProblemError
from webapp.language_models import serializers, services
from webapp.language_models.models import LanguageModel
from webapp.language_models.selectors import language_models, model_info
from webapp.live.resources import (
    FieldProblem,
    ModelInfo,
    ModelSettings,
    ModelTried,
    ModelWrite,
    ProblemDocument,
)

TAGS = ["models"]
PROBLEM = OpenApiResponse(ProblemDocument, description="What is wrong and what to do")


class ModelList(RootModel[list[ModelInfo]]):
    """The default first."""


class ModelsApi(APIView):
    actions: ClassVar = {"GET": "model.view", "POST": "model.edit"}

    @extend_schema(operation_id="models_list", tags=TAGS, responses=ModelList)
    def get(self, request: Request) -> Response:
        """The language models that runs can be asked for with; administrators see those switched off too."""
        shown = language_models() if request.user.is_staff else language_models().filter(enabled=True)
        return Response(ModelList([model_info(model) for model in shown]))

    @extend_schema(
        operation_id="models_create",
        tags=TAGS,
        request=ModelWrite,
        responses={201: ModelSettings, 400: PROBLEM},
    )
    def post(self, request: Request) -> Response:
        """Sets one up (administrators)."""
        model = LanguageModel()
        settings = _saved(model, request)
        address = reverse("api:model", kwargs={"model_id": model.pk})
        return Response(settings, status=201, headers={"Location": address})


class ModelApi(APIView):
    actions: ClassVar = {"GET": "model.edit", "PATCH": "model.edit", "DELETE": "model.edit"}

    @extend_schema(operation_id="models_get", tags=TAGS, responses=ModelSettings)
    def get(self, request: Request, model_id: int) -> Response:
        """One with all its settings but the key (administrators)."""
        return Response(serializers.model_settings(_model(model_id)))

    @extend_schema(
        operation_id="models_change",
        tags=TAGS,
        request=ModelWrite,
        responses={200: ModelSettings, 400: PROBLEM},
    )
    def patch(self, request: Request, model_id: int) -> Response:
        """Changes what is given (administrators). Another address drops the key."""
        return Response(_saved(_model(model_id), request))

    @extend_schema(operation_id="models_delete", tags=TAGS, responses={204: None})
    def delete(self, request: Request, model_id: int) -> Response:
        """Removes one (administrators). Its runs and what they took stay."""
        services.language_model_delete(model=_model(model_id), actor=request.user)
        return Response(status=204)


class ModelTryApi(APIView):
    actions: ClassVar = {"POST": "model.edit"}

    @extend_schema(operation_id="models_try", tags=TAGS, request=None, responses=ModelTried)
    def post(self, request: Request, model_id: int) -> Response:
        """Asks it for one word and one tool call: how fast it is, or why it cannot be asked."""
        return Response(services.language_model_try(model=_model(model_id)))


def _model(model_id: int) -> LanguageModel:
    model = language_models().filter(pk=model_id).first()
    if model is None:
        raise Http404
    return model


def _saved(model: LanguageModel, request: Request) -> ModelSettings:
    values, key = serializers.model_values(request.data, model)
    try:
        dropped = services.language_model_save(model=model, values=values, key=key, actor=request.user)
    except ValidationError as error:
        fields = [
            FieldProblem(field=field, message=" ".join(messages))
            for field, messages in error.message_dict.items()
        ]
        detail = "; ".join(f"{field.field}: {field.message}" for field in fields)
        raise ProblemError(400, "invalid", detail, errors=fields) from None
    return serializers.model_settings(model, services.DROPPED if dropped else "")
