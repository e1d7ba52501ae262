"""What all operations of the OpenAPI document have in common, said once: problems, headers, links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}}
_METHODS = ("get", "post", "put", "patch", "delete")
_TEXTS = {
    400: "Something in the request is not as it should be; `errors` names the fields",
    401: "Not signed in, or the token is not valid (any more)",
    403: "Signed in, but this may not be done; or the CSRF token is missing",
    404: "No such thing, or not for you",
    406: "What Accept asks for is not offered",
    409: "Not as things stand; or the Idempotency-Key was used with another request",
    413: "Larger than is taken",
    415: "The body is not application/json",
    429: "Too many requests, or too much unfinished work: Retry-After says how long to wait",
}
_HEADERS = {
    "X-Request-ID": {"description": "Also in problems and in the log", "schema": {"type": "string"}},
    "API-Version": {"description": "The version of this API", "schema": {"type": "string"}},
}
_LIMITED = {
    "RateLimit": {
        "description": 'What is left of the policy: `"read";r=599;t=42`, for t seconds',
        "schema": {"type": "string"},
    },
    "RateLimit-Policy": {
        "description": 'Requests (q) in a window of seconds (w): `"read";q=600;w=60`',
        "schema": {"type": "string"},
    },
}
_RETRY = {"Retry-After": {"description": "Seconds to wait", "schema": {"type": "integer", "minimum": 0}}}
_LOCATION = {"Location": {"description": "Where what was made is", "schema": {"type": "string"}}}


_TASK = {
    "filename": "scale.c",
    "source": "void scale(int n, float *x) { for (int i = 0; i < n; i++) x[i] *= 2; }",
}
_CANDIDATE = {**_TASK, "candidate": "// your CUDA"}
#: A body for each of these to start from, for people who read the document and programs that try it.
_EXAMPLES: dict[str, Any] = {
    "runs_create": {**_TASK, "turns": 3},
    "evaluations_create": _CANDIDATE,
    "evaluation_batches_create": {"items": [_CANDIDATE, _CANDIDATE]},
}


def complete(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """A hook of drf-spectacular: the document, with what its views need not say each."""
    for path, method, operation in _operations(result):
        if (example := _EXAMPLES.get(operation["operationId"])) is not None:
            operation["requestBody"]["content"]["application/json"]["example"] = example
        responses = operation["responses"]
        for status in _possible(path, operation):
            responses.setdefault(str(status), {"description": _TEXTS[status]})
        for status, response in responses.items():
            headers = response.setdefault("headers", {})
            headers.update(_HEADERS)
            if status.isdigit() and int(status) >= 400:
                response["content"] = _PROBLEM
            else:
                headers.update(_LIMITED)
            if status in ("429", "503"):
                headers.update(_RETRY)
            if status == "202" or (status == "201" and method == "post"):
                headers.update(_LOCATION)
        operation["responses"] = dict(sorted(responses.items()))
    for path, method, operation in _operations(result):
        if method == "post" and (made := _made(operation)) is not None:
            made["links"] = _links(result, path)
    return result


def _operations(result: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in result["paths"].items():
        for method in _METHODS:
            if method in methods:
                yield path, method, methods[method]


def _possible(path: str, operation: dict[str, Any]) -> Iterator[int]:
    open_to_all = operation.get("security") in ([], [{}])
    yield from (400, 406) if open_to_all else (400, 401, 403, 406, 429)
    if "{" in path or "requestBody" in operation:  # a body may name what is not there
        yield 404
    if "requestBody" in operation:
        yield from (413, 415)
    if any(it["name"] == "Idempotency-Key" for it in operation.get("parameters", ())):
        yield 409


def _made(operation: dict[str, Any]) -> dict[str, Any] | None:
    """The response that tells of something new."""
    responses: dict[str, dict[str, Any]] = operation["responses"]
    return responses.get("202") or responses.get("201")


def _links(result: dict[str, Any], path: str) -> dict[str, Any]:
    """What can be done with the id that `POST path` answers: everything at `path/{id}` and below.

    Of `POST path/{id}/again` too, whose answer is one more of `path`.
    """
    family = path.partition("/{")[0]
    links: dict[str, Any] = {}
    for other, _, operation in _operations(result):
        found = re.fullmatch(rf"{re.escape(family)}/{{(\w+)}}(/\w+)?", other)
        if found is not None:
            parameters = {found[1]: "$response.body#/id"}
            links[operation["operationId"]] = {
                "operationId": operation["operationId"],
                "parameters": parameters,
            }
    return links
