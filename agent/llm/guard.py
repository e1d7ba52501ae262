"""Which addresses a model may be asked at: a base URL is a user's input, the server's network is not theirs.

The host is resolved, every address it has must be allowed, and the connection goes to an address that was
looked at, so that a second answer of the name server changes nothing. Redirects are not followed and proxies
of the environment not used: both would choose another address.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

import httpx2

Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

_NAT64 = IPv6Network("64:ff9b::/96")


class AddressRefused(Exception):
    """The message says which address and what would allow it."""


def check_url(base_url: str) -> str:
    """The base URL without a slash at its end. Only its form is looked at; addresses, when connecting."""
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise AddressRefused(f"{base_url!r} is no address: it must begin with http:// or https:// and a host")
    if parts.username is not None or parts.password is not None:
        raise AddressRefused("the base URL holds a user or password; give the key on its own")
    if parts.query or parts.fragment:
        raise AddressRefused("the base URL must end with its path: no ? and no #")
    try:
        parts.port  # noqa: B018  parsed when asked for
    except ValueError as error:
        raise AddressRefused(f"{base_url!r} has no valid port") from error
    return base_url.rstrip("/")


def check_address(text: str, *, allow_loopback: bool, allow_private: bool) -> None:
    """Raises AddressRefused. Link-local addresses (where clouds keep their credentials) are never allowed."""
    address = ip_address(text.partition("%")[0])
    for each in (address, *_inside(address)):
        if each.is_loopback:
            if not allow_loopback:
                raise AddressRefused(f"{text} is this machine itself; it must be allowed (allow_loopback)")
        elif each.is_link_local or each.is_unspecified or each.is_multicast:
            raise AddressRefused(f"{text} is never asked: it is link-local, unspecified or multicast")
        elif not each.is_global and not allow_private:
            raise AddressRefused(f"{text} is in a private network; it must be allowed (allow_private)")


def _inside(address: Address) -> list[IPv4Address]:
    """IPv4 addresses that an IPv6 address leads to."""
    if isinstance(address, IPv4Address):
        return []
    found = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in _NAT64:
        found.append(IPv4Address(int(address) & 0xFFFFFFFF))
    return [each for each in found if each is not None]


async def resolve(host: str, port: int) -> Sequence[str]:
    """All addresses of a host, in the order of the system's resolver."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Connects only to addresses that `check_address` allows."""

    def __init__(self, *, allow_loopback: bool, allow_private: bool, resolve: Resolve = resolve) -> None:
        self._inner = httpx2.AsyncHTTPTransport(trust_env=False)
        self._allow_loopback = allow_loopback
        self._allow_private = allow_private
        self._resolve = resolve

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url, host = request.url, request.url.host
        port = url.port or (443 if url.scheme == "https" else 80)
        addresses = await self._addresses(request, host, port)
        in_clear = url.scheme == "http" and "authorization" in request.headers
        if in_clear and any(ip_address(address.partition("%")[0]).is_global for address in addresses):
            raise AddressRefused(f"{host} is a public address: a key is only sent there over https")
        failed: httpx2.ConnectError | None = None
        for address in addresses:
            # The Host header and the name in the certificate stay those of the URL.
            direct = httpx2.Request(
                request.method,
                url.copy_with(host=address),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": host},
            )
            try:
                return await self._inner.handle_async_request(direct)
            except httpx2.ConnectError as error:
                failed = error
        raise failed or httpx2.ConnectError(f"{host} has no address")

    async def _addresses(self, request: httpx2.Request, host: str, port: int) -> Sequence[str]:
        try:
            addresses: Sequence[str] = [str(ip_address(host))]
        except ValueError:
            patience = request.extensions.get("timeout", {}).get("connect")
            try:
                async with asyncio.timeout(patience):
                    addresses = await self._resolve(host, port)
            except TimeoutError as error:
                raise httpx2.ConnectTimeout(f"{host} cannot be found in time") from error
            except OSError as error:
                raise httpx2.ConnectError(f"{host} cannot be found: {error}") from error
        for address in addresses:
            check_address(address, allow_loopback=self._allow_loopback, allow_private=self._allow_private)
        return addresses

    async def aclose(self) -> None:
        await self._inner.aclose()
