"""JSON in and out: bounded on the way in, frozen data on the way out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from django.conf import settings
from pydantic import BaseModel, ValidationError
from rest_framework.parsers import BaseParser
from rest_framework.renderers import JSONRenderer

from webapp.common.errors import ProblemError
from webapp.live.resources import FieldProblem

Model = TypeVar("Model", bound=BaseModel)


class JsonParser(BaseParser):
    """Reads at most `API_BODY_BYTES_MAX` bytes of UTF-8 JSON."""

    media_type = "application/json"

    def parse(
        self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        limit = settings.API_BODY_BYTES_MAX
        body = stream.read(limit + 1)
        if len(body) > limit:
            raise ProblemError(413, "too-large", f"The request is larger than {limit} bytes.")
        try:
            return json.loads(body.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise ProblemError(400, "not-text", f"The request is not UTF-8 at byte {error.start}.") from None
        except json.JSONDecodeError as error:
            raise ProblemError(
                400,
                "not-json",
                f"The request is not JSON: {error.msg} in line {error.lineno}, column {error.colno}.",
            ) from None
        except RecursionError:
            raise ProblemError(400, "not-json", "The request's JSON is nested too deeply.") from None


class JsonRenderer(JSONRenderer):
    """Renders pydantic models by their own rules (numbers that are not finite become strings)."""

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        if isinstance(data, BaseModel):
            return data.model_dump_json().encode()
        rendered: bytes = super().render(data, accepted_media_type, renderer_context)
        return rendered


def parsed(model: type[Model], data: Any) -> Model:
    """`data` as `model`. Raises ProblemError that names every field which is wrong."""
    if not isinstance(data, dict):
        raise ProblemError(400, "invalid", "The request must be a JSON object.")
    try:
        return model.model_validate(data)
    except ValidationError as error:
        fields = [
            FieldProblem(field=".".join(str(part) for part in item["loc"]), message=item["msg"])
            for item in error.errors(include_url=False, include_input=False, include_context=False)
        ]
        detail = "; ".join(f"{field.field}: {field.message}" for field in fields)
        raise ProblemError(400, "invalid", detail, errors=fields) from None
