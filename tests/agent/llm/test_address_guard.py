"""Where a model may not be asked: addresses, names that lead to them, and names that change their mind."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import pytest
from chat_server import says, serving
from pydantic import SecretStr

from agent.llm.client import ChatClient, EndpointFailed
from agent.llm.endpoint import Endpoint
from agent.llm.guard import AddressRefused, check_address, check_url
from agent.llm.wire import Message, Request
from sandbox.cancellation import Cancellation

PRIVATE = [
    "10.0.0.1",
    "172.16.5.4",
    "192.168.1.1",
    "100.64.0.1",
    "fd00::1",
    "::ffff:10.0.0.1",
    "64:ff9b::a00:1",
]
LOOPBACK = ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::1"]
NEVER = [
    "169.254.169.254",
    "fe80::1",
    "fe80::1%eth0",
    "0.0.0.0",
    "::",
    "224.0.0.1",
    "ff02::1",
    "::ffff:169.254.169.254",
]
PUBLIC = ["1.1.1.1", "2606:4700:4700::1111"]


def refused(address: str, *, loopback: bool = False, private: bool = False) -> bool:
    try:
        check_address(address, allow_loopback=loopback, allow_private=private)
    except AddressRefused:
        return True
    return False


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_need_leave(address: str) -> None:
    assert refused(address)
    assert refused(address, loopback=True)
    assert not refused(address, private=True)


@pytest.mark.parametrize("address", LOOPBACK)
def test_loopback_needs_a_leave_of_its_own(address: str) -> None:
    assert refused(address)
    assert refused(address, private=True)
    assert not refused(address, loopback=True, private=True)


@pytest.mark.parametrize("address", NEVER)
def test_where_clouds_keep_credentials_nobody_goes(address: str) -> None:
    assert refused(address, loopback=True, private=True)


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_need_no_leave(address: str) -> None:
    assert not refused(address)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://host/v1", "http"),
        ("file:///etc/passwd", "http"),
        ("host/v1", "http"),
        ("http://", "host"),
        ("https://user:secret@host/v1", "user or password"),
        ("https://host/v1?x=1", "no \\?"),
        ("https://host:70000/v1", "port"),
    ],
)
def test_base_urls_of_the_wrong_form(url: str, words: str) -> None:
    with pytest.raises(AddressRefused, match=words) as caught:
        check_url(url)
    assert "secret" not in str(caught.value)


def ask(endpoint: Endpoint, *answers: Sequence[str]) -> list[tuple[str, int]]:
    """Asks with a name server that gives these answers in turn; returns what it was asked."""
    asked: list[tuple[str, int]] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append((host, port))
        return answers[min(len(asked), len(answers)) - 1]

    client = ChatClient(endpoint, cancel=Cancellation(), resolve=resolve)
    try:
        list(client.ask(Request([Message(role="user", content="?")]), deadline=time.monotonic() + 10))
    finally:
        client.close()
    return asked


def test_one_refused_address_among_a_names_addresses_is_enough() -> None:
    with serving([says("stolen")]) as server:
        port = server.base_url.rsplit(":", 1)[1]
        endpoint = Endpoint(base_url=f"http://model.example:{port}", model="m")
        with pytest.raises(EndpointFailed, match=r"127\.0\.0\.1 is this machine itself"):
            ask(endpoint, ["1.1.1.1", "127.0.0.1"])
        assert server.requests == []


def test_the_address_that_was_looked_at_is_the_one_that_is_asked() -> None:
    with serving([says("ok")]) as server:
        port = server.base_url.split(":")[2].split("/")[0]
        endpoint = Endpoint(base_url=f"http://model.example:{port}/v1", model="m", allow_loopback=True)
        assert ask(endpoint, ["127.0.0.1"], ["169.254.169.254"]) == [("model.example", int(port))]
        assert server.headers[0]["host"] == f"model.example:{port}"


def test_the_names_next_address_is_tried_where_the_first_does_not_answer() -> None:
    with serving([says("ok")]) as server:
        port = server.base_url.split(":")[2].split("/")[0]
        endpoint = Endpoint(base_url=f"http://model.example:{port}/v1", model="m", allow_loopback=True)
        ask(endpoint, ["::1", "127.0.0.1"])
        assert len(server.requests) == 1


def test_a_name_of_this_machine_is_refused_by_the_systems_own_resolver() -> None:
    with serving([says("stolen")]) as server:
        endpoint = Endpoint(base_url=server.base_url.replace("127.0.0.1", "localhost"), model="m")
        client = ChatClient(endpoint, cancel=Cancellation())
        with pytest.raises(EndpointFailed, match="this machine itself"):
            list(client.ask(Request([Message(role="user", content="?")]), deadline=time.monotonic() + 10))
        client.close()
        assert server.requests == []


def test_a_key_does_not_travel_in_clear_to_the_public() -> None:
    endpoint = Endpoint(base_url="http://model.example/v1", model="m", key=SecretStr("sk-1"))
    with pytest.raises(EndpointFailed, match="only sent there over https"):
        ask(endpoint, ["1.1.1.1"])


def test_a_name_server_that_does_not_answer_is_not_waited_for() -> None:
    async def never(host: str, port: int) -> Sequence[str]:
        await asyncio.sleep(60)
        return []

    endpoint = Endpoint(base_url="https://model.example/v1", model="m", connect_seconds=0.2, attempts=1)
    client = ChatClient(endpoint, cancel=Cancellation(), resolve=never)
    with pytest.raises(EndpointFailed, match="no connection within"):
        list(client.ask(Request([Message(role="user", content="?")]), deadline=time.monotonic() + 10))
    client.close()
