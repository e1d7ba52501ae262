"""Sign-in by OpenID Connect, with a real provider on this machine that signs by RS256."""

from __future__ import annotations

import copy
import http.client
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.socialaccount.models import SocialAccount
from cryptography.hazmat.primitives.asymmetric import rsa
from django.test import Client

from tests.webapp import identity_provider
from tests.webapp.identity_provider import CLIENT, SECRET, IdentityProvider
from webapp import environment
from webapp.accounts.models import User
from webapp.workspaces.models import AuditEntry, Workspace

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def running() -> Iterator[IdentityProvider]:
    with identity_provider.running() as it:
        yield it


@pytest.fixture
def provider(running: IdentityProvider, settings: Any) -> Iterator[IdentityProvider]:
    before = copy.copy(running.__dict__)
    running.person = dict(running.person)
    settings.OIDC = {**settings.OIDC, "issuer": running.address, "name": "Example SSO"}
    apps = copy.deepcopy(settings.SOCIALACCOUNT_PROVIDERS)
    apps["openid_connect"]["APPS"][0] |= {
        "client_id": CLIENT,
        "secret": SECRET,
        "settings": {"server_url": running.address},
    }
    settings.SOCIALACCOUNT_PROVIDERS = apps
    yield running
    running.__dict__.update(before)


def go_there(client: Client, query: str = "") -> str:
    """To the provider and back, as a browser is sent; the address of the callback."""
    response = client.get(f"/sign-in/oidc{query}")
    assert response.status_code == 302, response.content
    there = urlsplit(response["Location"])
    connection = http.client.HTTPConnection(there.netloc, timeout=10)
    connection.request("GET", f"{there.path}?{there.query}")
    back = urlsplit(connection.getresponse().headers["Location"])
    connection.close()
    assert (back.netloc, back.path) == ("testserver", "/sign-in/oidc/callback")
    return f"{back.path}?{back.query}"


def sign_in(client: Client, query: str = "") -> Any:
    return client.get(go_there(client, query))


def test_there_is_a_button_only_where_a_provider_is_configured(client: Client) -> None:
    assert "Sign in with" not in client.get("/sign-in").content.decode()
    assert client.get("/sign-in/oidc").status_code == 404
    assert client.get("/sign-in/oidc/callback?code=x&state=y").status_code == 404


def test_who_is_known_to_the_provider_gets_an_account_once(provider: IdentityProvider) -> None:
    client = Client()
    page = client.get("/sign-in?next=/account").content.decode()
    assert "Sign in with Example SSO" in page
    assert "/sign-in/oidc?next=/account" in page
    response = sign_in(client, "?next=/account")
    assert (response.status_code, response["Location"]) == (302, "/account")
    user = User.objects.get()
    assert (user.username, user.email, user.first_name) == ("ada.l", "ada@example.com", "Ada")
    assert not user.has_usable_password()
    assert Workspace.objects.get(personal_of=user).slug == "adal"
    assert client.get("/api/v1/session").json()["user"]["username"] == "ada.l"
    assert "You can sign in with Example SSO" in client.get("/account").content.decode()
    assert AuditEntry.objects.filter(action="sign-in", actor=user, denied=False).count() == 1
    # Another browser, and the name at the provider is another by now.
    provider.person |= {"preferred_username": "countess", "email": "countess@example.com"}
    again = Client()
    assert sign_in(again)["Location"] == "/"
    assert User.objects.get() == user


@pytest.mark.parametrize(
    "wrong",
    [
        {"signing_key": "another"},
        {"algorithm": "HS256", "signing_key": "the client's secret, long enough for HMAC"},
        {"algorithm": "none", "signing_key": None},
        {"key_id": "unknown"},
        {"key_id": None},
        {"claims": {"iss": "https://evil.example"}},
        {"claims": {"aud": "another client"}},
        {"claims": {"exp": 1_000_000_000}},
        {"claims": {"exp": None}},
        {"claims": {"sub": None}},
        {"userinfo": {"sub": "somebody else"}},
    ],
    ids=lambda wrong: " ".join(f"{name}={value}"[:40] for name, value in wrong.items()),
)
def test_what_cannot_be_relied_on_signs_nobody_in(provider: IdentityProvider, wrong: dict[str, Any]) -> None:
    if wrong.get("signing_key") == "another":
        wrong = {"signing_key": rsa.generate_private_key(public_exponent=65537, key_size=2048)}
    provider.__dict__.update(wrong)
    client = Client()
    response = sign_in(client)
    assert response.status_code == 403
    assert "cannot be relied on" in response.content.decode()
    assert client.get("/api/v1/session").status_code == 401
    assert not User.objects.exists()


def test_an_answer_is_for_the_browser_that_asked_and_for_once(provider: IdentityProvider) -> None:
    client, thief = Client(), Client()
    callback = go_there(client)
    assert thief.get(callback).status_code == 403
    assert client.get(callback).status_code == 302
    assert client.get(callback).status_code == 403
    state = parse_qs(urlsplit(go_there(thief)).query)["state"][0]
    cancelled = thief.get(f"/sign-in/oidc/callback?error=access_denied&state={state}")
    assert (cancelled.status_code, "was cancelled" in cancelled.content.decode()) == (403, True)
    # A code of somebody else's, which PKCE keeps from being of use here.
    others = parse_qs(urlsplit(go_there(Client())).query)["code"][0]
    state = parse_qs(urlsplit(go_there(thief)).query)["state"][0]
    assert thief.get(f"/sign-in/oidc/callback?code={others}&state={state}").status_code == 403
    assert thief.get("/api/v1/session").status_code == 401


def test_only_verified_addresses_of_the_domains_are_let_in(provider: IdentityProvider, settings: Any) -> None:
    settings.OIDC["domains"] = ["example.com"]
    for email, verified in (
        ("ada@evil.example", True),
        ("ada@example.com", False),
        ("ada@example.com.evil.example", True),
        ("", True),
    ):
        provider.person |= {"email": email, "email_verified": verified}
        response = sign_in(Client())
        assert response.status_code == 403, (email, verified)
        assert "verified addresses of example.com" in response.content.decode()
    provider.person |= {"email": "ada@EXAMPLE.com", "email_verified": True}
    assert sign_in(Client()).status_code == 302
    assert User.objects.count() == 1


def test_no_account_is_taken_over_by_its_address_but_connected_by_its_user(
    provider: IdentityProvider, browser: Client, user: User
) -> None:
    User.objects.filter(pk=user.pk).update(email="Ada@example.com")
    refused = sign_in(Client())
    assert refused.status_code == 403
    assert "Sign in to it as before, then connect it" in refused.content.decode()
    assert "Connect this account" in browser.get("/account").content.decode()
    connected = sign_in(browser, "?process=connect")
    assert (connected.status_code, connected["Location"]) == (302, "/account")
    assert SocialAccount.objects.get().user == user
    client = Client()
    assert sign_in(client).status_code == 302
    assert client.get("/api/v1/session").json()["user"]["username"] == "ada"
    User.objects.update(is_active=False)
    off = sign_in(Client())
    assert (off.status_code, "switched off" in off.content.decode()) == (403, True)


def test_a_name_that_is_taken_becomes_another(provider: IdentityProvider, user: User) -> None:
    provider.person["preferred_username"] = "ada"
    assert sign_in(Client()).status_code == 302
    names = set(User.objects.values_list("username", flat=True))
    assert len(names) == 2
    assert "ada" in names


def test_no_way_leads_to_another_site(provider: IdentityProvider) -> None:
    assert sign_in(Client(), "?next=https://evil.example/")["Location"] == "/"


def test_a_provider_that_is_away_is_said(provider: IdentityProvider, settings: Any) -> None:
    settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"][0]["settings"] = {
        "server_url": "http://127.0.0.1:1"
    }
    began = time.monotonic()
    response = Client().get("/sign-in/oidc")
    assert (response.status_code, "cannot be reached" in response.content.decode()) == (503, True)
    assert time.monotonic() - began < 5


def test_a_providers_address_is_https_but_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, taken in (
        ("", True),
        ("https://sso.example/realms/a/", True),
        ("http://127.0.0.1:8080", True),
        ("http://sso.example", False),
        ("sso.example", False),
    ):
        monkeypatch.setenv("X_ISSUER", text)
        if taken:
            assert environment.issuer("X_ISSUER") == text.rstrip("/")
        else:
            with pytest.raises(ValueError, match="https://"):
                environment.issuer("X_ISSUER")
