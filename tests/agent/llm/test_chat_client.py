"""The client against a real server on loopback: what is tried again, what is not, and how each way ends."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from chat_server import (
    Play,
    calls,
    delta,
    drops_connection,
    endless,
    raw_events,
    says,
    serving,
    silent,
    status,
    whole,
)
from pydantic import SecretStr

from agent.llm.client import ChatClient, DeadlinePassed, EndpointFailed, Piece, Waiting, served_models
from agent.llm.endpoint import Endpoint
from agent.llm.wire import Answer, Message, Request, Usage
from sandbox.cancellation import Cancellation
from sandbox.errors import Cancelled

ASK = Request([Message(role="user", content="What is a warp?")], answer_tokens=100)


@dataclass
class Heard:
    answer: Answer
    text: str = ""
    thought: str = ""
    waits: list[Waiting] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    spent: Usage = field(default_factory=Usage)


def ask(*plays: Play, seconds: float = 30.0, request: Request = ASK, **settings: Any) -> Heard:
    """One question to a server that answers with these plays."""
    with serving(plays) as server:
        client = ChatClient(server.endpoint(**settings), cancel=Cancellation())
        said: list[Piece | Waiting] = []
        asking = client.ask(request, deadline=time.monotonic() + seconds)
        try:
            while True:
                said.append(next(asking))
        except StopIteration as stop:
            pieces = [p for p in said if isinstance(p, Piece)]
            return Heard(
                answer=stop.value,
                text="".join(p.text for p in pieces if not p.thought),
                thought="".join(p.text for p in pieces if p.thought),
                waits=[w for w in said if isinstance(w, Waiting)],
                requests=server.requests,
                spent=client.spent,
            )
        finally:
            client.close()


def test_an_answer_comes_in_pieces_and_is_counted() -> None:
    heard = ask(says("A warp is 32 threads in step."), temperature=0.5, seed=7, extra={"top_k": 20})
    assert heard.text == heard.answer.text == "A warp is 32 threads in step."
    assert heard.answer.usage == Usage(prompt_tokens=100, completion_tokens=20)
    assert heard.answer.finish_reason == "stop"
    assert heard.answer.first_token_seconds is not None
    assert heard.answer.first_token_seconds <= heard.answer.seconds
    [body] = heard.requests
    assert body["messages"] == [{"role": "user", "content": "What is a warp?"}]
    assert (body["max_tokens"], body["temperature"], body["seed"], body["top_k"]) == (100, 0.5, 7, 20)


def test_thoughts_are_told_from_text_and_refusals_from_both() -> None:
    heard = ask(says("Yes.", reasoning_content="Hm, let me see."))
    assert (heard.text, heard.thought) == ("Yes.", "Hm, let me see.")
    heard = ask(says("", refusal="I would rather not."))
    assert heard.answer.refusal == "I would rather not."


def test_the_probability_of_each_token_is_kept_where_it_was_asked_for() -> None:
    def piece(text: str, logprob: float) -> str:
        chunk = delta(content=text)
        chunk["choices"][0]["logprobs"] = {
            "content": [{"token": text, "logprob": logprob, "top_logprobs": []}]
        }
        return json.dumps(chunk)

    heard = ask(raw_events(piece("A ", -0.25), piece("warp", -1.5), json.dumps(delta("stop"))), logprobs=True)
    assert [(token.text, token.logprob) for token in heard.answer.tokens] == [("A ", -0.25), ("warp", -1.5)]
    assert heard.requests[0]["logprobs"] is True
    assert ask(says("x")).answer.tokens == []


def test_tool_calls_are_put_together_from_their_pieces() -> None:
    heard = ask(calls(("read_file", {"name": "kernel.cu"}), ("compile", {})))
    assert [(c.id, c.name, json.loads(c.arguments)) for c in heard.answer.tool_calls] == [
        ("c0", "read_file", {"name": "kernel.cu"}),
        ("c1", "compile", {}),
    ]
    assert heard.answer.finish_reason == "tool_calls"


def test_a_server_that_does_not_stream_is_understood() -> None:
    reply = {
        "choices": [{"index": 0, "message": {"content": "All at once."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4},
    }
    heard = ask(whole(json.dumps(reply)))
    assert heard.text == "All at once."
    assert heard.answer.usage.completion_tokens == 4


def test_tokens_that_the_server_does_not_count_are_estimated_and_said_to_be() -> None:
    usage = ask(says("word " * 40, usage=None)).answer.usage
    assert usage.estimated
    assert 30 < usage.completion_tokens < 90


GOOD = says("good")
PART = json.dumps(delta(content="half an ans"))


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (status(500, "worker died"), "HTTP 500: worker died"),
        (status(503, "loading the model"), "HTTP 503"),
        (status(429, "slow down"), "HTTP 429: slow down"),
        (raw_events(PART), "broke off before its end"),
        (raw_events(PART, '{"choices": [{"del'), "not JSON"),
        (raw_events(PART, '{"error": {"message": "out of memory"}}'), "out of memory"),
        (raw_events("[1, 2]"), "no JSON object"),
        (drops_connection(PART), "the connection broke"),
        (whole("<html>gateway</html>", "text/html"), "not JSON"),
        (whole(""), "not JSON"),
    ],
)
def test_trouble_that_may_pass_is_tried_again(trouble: Play, words: str) -> None:
    heard = ask(trouble, trouble, GOOD)
    assert heard.answer.text == "good"  # and nothing of the broken attempts
    assert heard.answer.attempts == 3
    assert [(w.attempt, w.of) for w in heard.waits] == [(1, 5), (2, 5)]
    assert all(words in w.why for w in heard.waits)


def test_waits_grow_and_differ() -> None:
    heard = ask(*[status(500, "no")] * 4, GOOD, backoff_seconds=0.02)
    for n, wait in enumerate(heard.waits):
        assert 0.01 * 2**n <= wait.seconds <= 0.02 * 2**n
    assert len({wait.seconds / 2**n for n, wait in enumerate(heard.waits)}) == 4


def test_what_broken_attempts_cost_is_counted() -> None:
    heard = ask(raw_events(PART), GOOD)
    assert heard.spent.estimated
    assert heard.spent.completion_tokens > heard.answer.usage.completion_tokens


def test_the_time_a_server_asks_for_is_waited() -> None:
    heard = ask(status(429, "busy", Retry_After="0.3"), GOOD)
    assert heard.waits[0].seconds >= 0.3
    with pytest.raises(EndpointFailed, match="asks to wait 999 s, longer than the 1 s"):
        ask(status(429, "busy", Retry_After="999"), GOOD, longest_wait_seconds=1.0)


@pytest.mark.parametrize(
    ("code", "message"),
    [(400, "context length exceeded"), (401, "bad key"), (404, "no such model"), (422, "x")],
)
def test_trouble_that_stays_is_said_at_once(code: int, message: str) -> None:
    with pytest.raises(EndpointFailed, match=f"HTTP {code}: {message}$"):
        ask(status(code, message), GOOD)


def test_redirects_are_not_followed() -> None:
    with pytest.raises(EndpointFailed, match="redirects are not followed"):
        ask(status(307, "there", Location="http://169.254.169.254/latest"), GOOD)


def test_a_model_that_stays_away_is_given_up_on() -> None:
    with pytest.raises(EndpointFailed, match="HTTP 500: no, after 3 attempts"):
        ask(*[status(500, "no")] * 9, attempts=3)


def test_nobody_listening_is_said_as_that() -> None:
    with serving([]) as server:
        endpoint = server.endpoint(attempts=2)
    client = ChatClient(endpoint, cancel=Cancellation())
    with pytest.raises(EndpointFailed, match="no connection"):
        list(client.ask(ASK, deadline=time.monotonic() + 30))
    client.close()


def test_an_answer_without_end_is_cut() -> None:
    heard = ask(endless())
    assert heard.answer.finish_reason == "cut"
    assert 800 < len(heard.answer.text) < 900  # eight characters for each of the hundred tokens asked for


def test_an_answer_that_takes_too_long_is_cut() -> None:
    heard = ask(endless("x", pause=0.02), answer_seconds=0.5)
    assert heard.answer.finish_reason == "cut"
    assert 0.4 < heard.answer.seconds < 2.0


def test_a_silent_server_is_given_up_on() -> None:
    with pytest.raises(EndpointFailed, match="silent for 0 s, after 2 attempts"):
        ask(silent(2.0), silent(2.0), silence_seconds=0.2, attempts=2)


@pytest.mark.parametrize(
    "play", [endless("x", pause=0.01), silent(5.0), status(429, "busy", Retry_After="30")]
)
def test_a_run_whose_time_is_up_waits_for_nobody(play: Play) -> None:
    began = time.monotonic()
    with pytest.raises(DeadlinePassed):
        ask(play, seconds=0.4)
    assert time.monotonic() - began < 2.0


@pytest.mark.parametrize(
    "play", [endless("x", pause=0.01), silent(5.0), status(429, "busy", Retry_After="30")]
)
def test_a_cancelled_request_ends_at_once(play: Play) -> None:
    cancel = Cancellation()
    with serving([play]) as server:
        client = ChatClient(server.endpoint(), cancel=cancel)
        threading.Timer(0.3, cancel.set).start()
        began = time.monotonic()
        with pytest.raises(Cancelled):
            list(client.ask(ASK, deadline=time.monotonic() + 90))
        assert time.monotonic() - began < 1.5
        client.close()


def test_a_server_sees_that_nobody_listens_any_more() -> None:
    cancel = Cancellation()
    with serving([endless("x", pause=0.005)]) as server:
        client = ChatClient(server.endpoint(), cancel=cancel)
        asking = client.ask(ASK, deadline=time.monotonic() + 30)
        next(asking)
        cancel.set()
        with pytest.raises(Cancelled):
            list(asking)
        assert server.hung_up.wait(3.0)
        client.close()


def test_a_caller_who_goes_away_closes_the_answer() -> None:
    with serving([endless("x", pause=0.005), GOOD]) as server:
        client = ChatClient(server.endpoint(), cancel=Cancellation())
        asking = client.ask(ASK, deadline=time.monotonic() + 30)
        next(asking)
        asking.close()
        assert server.hung_up.wait(3.0)
        assert [p.text for p in client.ask(ASK, deadline=time.monotonic() + 30) if isinstance(p, Piece)] == [
            "good"
        ]
        client.close()


def test_requests_keep_the_pace_asked_for() -> None:
    with serving([GOOD] * 3) as server:
        for _ in range(3):  # clients of different runs share it
            client = ChatClient(server.endpoint(requests_per_minute=300), cancel=Cancellation())
            list(client.ask(ASK, deadline=time.monotonic() + 30))
            client.close()
        gaps = [b - a for a, b in zip(server.times, server.times[1:], strict=False)]
    assert all(gap >= 0.15 for gap in gaps)


def test_the_key_is_sent_and_never_shown() -> None:
    with serving([status(401, "sk-very-secret is no key of ours"), GOOD]) as server:
        endpoint = server.endpoint(key=SecretStr("sk-very-secret"))
        client = ChatClient(endpoint, cancel=Cancellation())
        with pytest.raises(EndpointFailed) as caught:
            list(client.ask(ASK, deadline=time.monotonic() + 30))
        client.close()
    assert server.headers[0]["authorization"] == "Bearer sk-very-secret"
    assert server.paths == ["/v1/chat/completions"]
    for shown in (str(caught.value), repr(endpoint), endpoint.model_dump_json(), str(server.requests)):
        assert "very-secret" not in shown


def test_models_are_listed_also_inside_an_event_loop() -> None:
    async def inside(endpoint: Endpoint) -> list[str]:
        return served_models(endpoint)

    with serving([]) as server, ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: asyncio.run(inside(server.endpoint()))).result() == ["scripted"]


def test_an_endpoint_says_which_models_it_serves() -> None:
    with serving([]) as server:
        assert served_models(server.endpoint()) == ["scripted"]
        assert server.paths == ["/v1/models"]
        with pytest.raises(EndpointFailed, match="this machine itself"):
            served_models(server.endpoint(allow_loopback=False))
        gone = server.endpoint()
    with pytest.raises(EndpointFailed, match="no connection"):
        served_models(gone)
