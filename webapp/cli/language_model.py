"""Options that name a language model, and the record of a run that it drove."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from pydantic import SecretStr, ValidationError

from agent.events import Event, TurnEnded
from agent.search.options import SearchOptions, Strategy
from agent.trajectory import Trajectory
from agent.translate import TranslateRequest
from sandbox.errors import TaskProblem
from sandbox.types import Problem
from webapp.cli.common import read_bytes

if TYPE_CHECKING:
    from agent.llm.endpoint import Endpoint
    from agent.llm.record import Exchange, Recording

#: A run with a model waits for it: more turns and more time than the built-in policy needs.
TURNS, SECONDS = 12, 3600.0
_ADDRESS, _MODEL = "KERNELWRIGHT_LLM_BASE_URL", "KERNELWRIGHT_LLM_MODEL"
_KEY = "KERNELWRIGHT_LLM_API_KEY"
_INSTALL = "pip install 'kernelwright[llm]'"
_ALLOW = "KERNELWRIGHT_LLM_ALLOW"


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("language model (--policy llm)", "anything that speaks the OpenAI API")
    group.add_argument(
        "--base-url", default=os.environ.get(_ADDRESS), metavar="URL", help=f"default: {_ADDRESS}"
    )
    group.add_argument("--model", default=os.environ.get(_MODEL), metavar="NAME", help=f"default: {_MODEL}")
    group.add_argument(
        "--protocol",
        choices=["rewrite", "tools"],
        default="rewrite",
        help="a whole source per turn (default), or tool calls in a scratch folder",
    )
    group.add_argument(
        "--key-env",
        default=_KEY,
        metavar="NAME",
        help="environment variable with the key (default: %(default)s)",
    )
    allowed = os.environ.get(_ALLOW, "").split(",")
    for name, where in (("loopback", "on this machine"), ("private", "in a private network")):
        group.add_argument(
            f"--allow-{name}",
            action="store_true",
            default=name in allowed,
            help=f"the model may be {where} (or {_ALLOW}={name})",
        )
    group.add_argument("--temperature", type=float, metavar="T")
    group.add_argument("--context-tokens", type=int, metavar="N", help="prompt and answer together")
    group.add_argument("--answer-tokens", type=int, metavar="N", help="the most an answer may have")
    group.add_argument(
        "--price",
        metavar="IN,OUT",
        help="of a million prompt and a million answer tokens, for --cost and the books",
    )
    group.add_argument(
        "--strategy",
        choices=get_args(Strategy),
        default="single",
        help="one trajectory (default), or a search over several: docs/language-model.md",
    )
    group.add_argument("--samples", type=int, metavar="N", help="first candidates of a search (default 4)")
    group.add_argument("--parallel", type=int, metavar="N", help="turns of a search at a time (default 4)")
    group.add_argument("--tokens", type=int, metavar="N", help="limit of the run")
    group.add_argument("--cost", type=float, metavar="X", help="limit of the run; needs --price")


def endpoint_of(options: argparse.Namespace) -> Endpoint:
    """Raises TaskProblem with what is missing or wrong."""
    if find_spec("httpx2") is None:
        raise _wrong("no_client", "asking a language model needs httpx2", f"get it: {_INSTALL}")
    from agent.llm.endpoint import Endpoint

    if not options.base_url or not options.model:
        missing = "--base-url" if not options.base_url else "--model"
        variable = _ADDRESS if not options.base_url else _MODEL
        raise _wrong(
            "no_model", f"no language model is named: {missing} is missing", f"give it, or set {variable}"
        )
    key = os.environ.get(options.key_env)
    if key is None and options.key_env != _KEY:
        raise _wrong(
            "no_key", f"the environment has no variable {options.key_env}", "export it, or name another"
        )
    settings: dict[str, Any] = {
        "base_url": options.base_url,
        "model": options.model,
        "key": SecretStr(key) if key else None,
        "allow_loopback": options.allow_loopback,
        "allow_private": options.allow_private,
        "price": _price(options.price),
    }
    chosen = ("temperature", "context_tokens", "answer_tokens")
    settings |= {name: getattr(options, name) for name in chosen if getattr(options, name) is not None}
    try:
        return Endpoint.model_validate(settings)
    except ValidationError as error:
        first = error.errors()[0]
        option = "--" + str(first["loc"][0]).replace("_", "-")
        raise _wrong("bad_option", f"{option}: {first['msg'].lower()}", "see --help") from error


def search_of(options: argparse.Namespace) -> SearchOptions:
    """Raises TaskProblem for numbers out of range."""
    chosen = {"strategy": options.strategy, "samples": options.samples, "parallel": options.parallel}
    try:
        return SearchOptions.model_validate({k: v for k, v in chosen.items() if v is not None})
    except ValidationError as error:
        first = error.errors()[0]
        raise _wrong("bad_option", f"--{first['loc'][0]}: {first['msg'].lower()}", "see --help") from error


def examine() -> tuple[bool, str, str]:
    """For `doctor`: is a language model set up and served? (ok, what was found, what to do)."""
    base_url, model = os.environ.get(_ADDRESS), os.environ.get(_MODEL)
    if not base_url:
        return False, "none is named", f"set {_ADDRESS} and {_MODEL}: docs/language-model.md"
    if find_spec("httpx2") is None:
        return False, base_url, _INSTALL
    from agent.llm.client import EndpointFailed, served_models
    from agent.llm.endpoint import Endpoint

    allowed, key = os.environ.get(_ALLOW, "").split(","), os.environ.get(_KEY)
    endpoint = Endpoint(
        base_url=base_url,
        model=model or "",
        key=SecretStr(key) if key else None,
        allow_loopback="loopback" in allowed,
        allow_private="private" in allowed,
    )
    try:
        served = served_models(endpoint)
    except EndpointFailed as error:
        return False, f"{base_url}: {error}", f"start it, or set {_ADDRESS}, {_ALLOW} and {_KEY}"
    if model not in served:
        return False, f"{base_url} serves {', '.join(served) or 'nothing'}", f"set {_MODEL} to one of them"
    return True, f"{model} at {base_url}", ""


def _price(text: str | None) -> dict[str, float] | None:
    if text is None:
        return None
    try:
        prompt, completion = (float(part) for part in text.split(","))
    except ValueError as error:
        raise _wrong("bad_option", f"--price is {text!r}", "give two numbers: 0.5,1.5") from error
    return {"prompt": prompt, "completion": completion}


@contextmanager
def recording(
    path: Path | None, request: TranslateRequest, endpoint: Endpoint | None, earlier: Recording | None
) -> Iterator[tuple[Callable[[Event], None], Callable[[Exchange], None]]]:
    """Where the run's events and exchanges go: a file of JSON lines, or nowhere. What was exchanged in the
    judged turns of an `earlier` part of the run is part of its record."""
    if path is None:
        yield lambda event: None, lambda exchange: None
        return
    from agent.llm.record import Head, Recorder

    with path.open("w", encoding="utf-8") as out:
        recorder = Recorder(out)
        recorder.head(
            Head(
                kernelwright=version("kernelwright"),
                request=request.model_dump(mode="json"),
                model=endpoint.model_dump(mode="json", exclude={"key"}) if endpoint else None,
            )
        )
        if earlier is not None:
            judged = {event.turn for event in earlier.events if isinstance(event, TurnEnded)}
            for exchange in earlier.exchanges:
                if exchange.turn in judged:
                    recorder.exchange(exchange)
        yield recorder.event, recorder.exchange


def read_recording(path: Path) -> Recording:
    """Raises TaskProblem for what is no recording."""
    from agent.llm.record import BadRecord, read

    try:
        return read(read_bytes(path).decode().splitlines(keepends=True))
    except (BadRecord, UnicodeDecodeError) as error:
        hint = "it must be what translate --record or --events wrote"
        raise _wrong("bad_record", f"{path} cannot be read: {error}", hint) from error


def usage(trajectory: Trajectory) -> dict[str, Any]:
    """What the model's answers took, all together."""
    answers = [answer for turn in trajectory.turns for answer in turn.answers]
    costs = [answer.cost for answer in answers]
    return {
        "answers": len(answers),
        "prompt_tokens": sum(answer.prompt_tokens for answer in answers),
        "completion_tokens": sum(answer.completion_tokens for answer in answers),
        "estimated": any(answer.estimated for answer in answers),
        "cost": sum(cost for cost in costs if cost is not None) if costs and None not in costs else None,
        "seconds": sum(answer.seconds for answer in answers),
    }


def _wrong(kind: str, message: str, hint: str) -> TaskProblem:
    return TaskProblem(Problem(kind=kind, message=message, hint=hint))
