"""Language models as an administrator sets them up, by REST and in the admin; keys never come out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from tests.chat_server import calls, says, serving, status
from webapp.accounts.models import User
from webapp.language_models.apps import language_models_found
from webapp.language_models.keys import KeyUnreadable, seal, unseal
from webapp.language_models.models import LanguageModel
from webapp.language_models.selectors import ModelUnusable, endpoint_named
from webapp.language_models.services import environment_model_ensure, keys_seal_again
from webapp.workspaces.models import AuditEntry

MODELS = "/api/v1/models"
SECRET = "sk-very-secret-indeed"


@pytest.fixture
def admin(db: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root", password="a long enough one"))
    return client


def send(client: Client, method: str, address: str, body: Any = None) -> Any:
    return client.generic(method, address, json.dumps(body or {}), content_type="application/json")


def added(admin: Client, **fields: Any) -> dict[str, Any]:
    body = {
        "name": "coder",
        "model": "coder-7b",
        "base_url": "https://models.example/v1",
        "key": SECRET,
        **fields,
    }
    response = send(admin, "POST", MODELS, body)
    assert response.status_code == 201, response.content
    document: dict[str, Any] = response.json()
    return document


def test_a_key_goes_in_and_never_comes_out(admin: Client) -> None:
    model = added(admin)
    assert model["has_key"]
    stored = LanguageModel.objects.get(pk=model["id"])
    assert SECRET not in stored.sealed_key
    for address in (
        MODELS,
        f"{MODELS}/{model['id']}",
        f"/admin/language_models/languagemodel/{model['id']}/change/",
    ):
        assert SECRET not in admin.get(address).content.decode()
    key = endpoint_named("coder").key
    assert key is not None
    assert key.get_secret_value() == SECRET


@pytest.mark.parametrize(
    ("base_url", "kept"),
    [
        ("https://models.example/other/v1", True),
        ("https://MODELS.example:443/v1", True),
        ("https://elsewhere.example/v1", False),
        ("https://models.example:8443/v1", False),
        ("http://models.example/v1", False),
    ],
)
def test_a_key_is_dropped_where_the_address_changes(admin: Client, base_url: str, kept: bool) -> None:
    model = added(admin)
    changed = send(admin, "PATCH", f"{MODELS}/{model['id']}", {"base_url": base_url}).json()
    assert changed["has_key"] is kept
    assert ("key" in changed["notice"]) is not kept


def test_a_sealed_key_is_of_no_use_for_another_address() -> None:
    sealed = seal(SECRET, "https://models.example/v1")
    assert unseal(sealed, "https://models.example/v2") == SECRET
    with pytest.raises(KeyUnreadable):
        unseal(sealed, "https://evil.example/v1")


def test_keys_outlive_a_change_of_the_secret_key(admin: Client, settings: Any) -> None:
    added(admin)
    before, settings.SECRET_KEY = settings.SECRET_KEY, "a new one"
    with pytest.raises(ModelUnusable, match="enter the key again"):
        endpoint_named("coder")
    assert keys_seal_again() == 0
    settings.SECRET_KEY_FALLBACKS = [before]
    endpoint_named("coder")
    assert keys_seal_again() == 1
    settings.SECRET_KEY_FALLBACKS = []
    endpoint_named("coder")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"base_url": "ftp://x"}, "http"),
        ({"base_url": "https://me:pass@x/v1"}, "password"),
        ({"model": ""}, "model"),
        ({"name": "two words"}, "name"),
        ({"answer_tokens": 30000}, "half of the context"),
        ({"price_prompt": 1.0}, "both prices"),
        ({"temperature": -1}, "temperature"),
        ({"nonsense": 1}, "nonsense"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_stored(
    admin: Client, fields: dict[str, Any], words: str
) -> None:
    body = {"name": "m", "model": "m", "base_url": "https://models.example/v1", **fields}
    response = send(admin, "POST", MODELS, body)
    assert response.status_code == 400
    assert words in response.json()["detail"]
    assert not LanguageModel.objects.exists()


def test_only_one_is_the_default(admin: Client) -> None:
    added(admin, is_default=True)
    added(admin, name="other", is_default=True)
    assert [model["name"] for model in admin.get(MODELS).json() if model["is_default"]] == ["other"]


def test_users_see_models_and_nothing_more(admin: Client, browser: Client) -> None:
    model = added(admin)
    added(admin, name="off", enabled=False)
    assert [each["name"] for each in browser.get(MODELS).json()] == ["coder"]
    assert "models.example" not in browser.get(MODELS).content.decode()
    assert browser.get(f"{MODELS}/{model['id']}").status_code == 403
    for method, address in (
        ("POST", MODELS),
        ("PATCH", f"{MODELS}/{model['id']}"),
        ("DELETE", f"{MODELS}/{model['id']}"),
        ("POST", f"{MODELS}/{model['id']}/try"),
    ):
        assert send(browser, method, address).status_code == 403
    assert Client().get(MODELS).status_code == 401


def test_a_try_really_asks(admin: Client) -> None:
    with serving([says("ready"), calls(("report_ready", {"ready": True}))]) as server:
        model = added(admin, base_url=server.base_url, model="scripted", allow_loopback=True)
        found = send(admin, "POST", f"{MODELS}/{model['id']}/try").json()
        assert found["ok"], found
        assert found["first_token_seconds"] > 0
        assert (found["calls_tools"], found["served"]) == (True, ["scripted"])
        assert server.headers[-1]["authorization"] == f"Bearer {SECRET}"
    assert admin.get(f"{MODELS}/{model['id']}").json()["protocol"] == "tools"


def test_a_try_says_why_it_cannot_be_asked(admin: Client) -> None:
    with serving([status(401, f"{SECRET} is no key of ours")]) as server:
        model = added(admin, base_url=server.base_url, model="scripted")
        address = f"{MODELS}/{model['id']}"
        found = send(admin, "POST", f"{address}/try").json()
        assert not found["ok"]
        assert "allow_loopback" in found["detail"]
        send(admin, "PATCH", address, {"allow_loopback": True})
        found = send(admin, "POST", f"{address}/try").json()
        assert "HTTP 401" in found["detail"]
        assert SECRET not in found["detail"]


def test_the_admin_page_adds_tries_and_drops(admin: Client) -> None:
    with serving([says("ready"), says("no tools here")]) as server:
        form = {
            "name": "mine",
            "model": "scripted",
            "base_url": server.base_url,
            "key": SECRET,
            "protocol": "auto",
            "context_tokens": 32768,
            "answer_tokens": 4096,
            "attempts": 5,
            "backoff_seconds": 1,
            "connect_seconds": 10,
            "silence_seconds": 120,
            "answer_seconds": 600,
            "allow_loopback": "on",
            "enabled": "on",
            "is_default": "on",
        }
        page = "/admin/language_models/languagemodel"
        added_page = admin.post(f"{page}/add/", form, follow=True)
        model = LanguageModel.objects.get(name="mine")
        assert model.is_default, added_page.content.decode()
        body = {"action": "try_it", "_selected_action": [model.pk]}
        tried = admin.post(f"{page}/", body, follow=True).content.decode()
        assert "first token after" in tried
        assert "no tools" in tried
    moved = admin.post(
        f"{page}/{model.pk}/change/", {**form, "key": "", "base_url": "https://else.example/v1"}, follow=True
    )
    assert "removed" in moved.content.decode()
    assert not LanguageModel.objects.get(pk=model.pk).has_key


def test_the_environment_names_the_first_one(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELWRIGHT_LLM_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("KERNELWRIGHT_LLM_MODEL", "local-7b")
    monkeypatch.setenv("KERNELWRIGHT_LLM_API_KEY", SECRET)
    monkeypatch.setenv("KERNELWRIGHT_LLM_ALLOW", "loopback")
    environment_model_ensure()
    environment_model_ensure()
    endpoint = endpoint_named("environment")
    assert (endpoint.model, endpoint.allow_loopback, endpoint.allow_private) == ("local-7b", True, False)
    stored = LanguageModel.objects.get()
    assert (stored.base_url, stored.sealed_key, stored.is_default) == ("", "", True)
    # Read when it is asked: no restart, nothing stored.
    monkeypatch.setenv("KERNELWRIGHT_LLM_MODEL", "local-9b")
    assert admin.get(MODELS).json()[0]["model"] == "local-9b"
    response = send(admin, "PATCH", f"{MODELS}/{stored.pk}", {"base_url": "https://x.example/v1"})
    assert response.status_code == 400
    assert "environment" in response.json()["detail"]
    page = admin.get(f"/admin/language_models/languagemodel/{stored.pk}/change/").content.decode()
    assert "http://127.0.0.1:9/v1" in page
    assert SECRET not in page
    monkeypatch.delenv("KERNELWRIGHT_LLM_MODEL")
    assert "KERNELWRIGHT_LLM_MODEL" in admin.get(MODELS).json()[0]["reason"]


def test_doctor_asks_each_model(admin: Client) -> None:
    assert "none is set up" in language_models_found()[0].detail
    with serving([]) as server:
        there = {"base_url": server.base_url, "allow_loopback": True}
        added(admin, **there, model="scripted")
        added(admin, **there, name="wrong", model="other")
        added(admin, name="refused", base_url="http://127.0.0.1:9/v1")
        found = {finding.name: finding for finding in language_models_found()}
    assert found["model coder"].ok
    assert "serves scripted" in found["model wrong"].detail
    assert "allow_loopback" in found["model refused"].detail


def test_changes_are_in_the_audit_log_without_the_key(admin: Client) -> None:
    model = added(admin)
    send(admin, "PATCH", f"{MODELS}/{model['id']}", {"temperature": 0.5})
    send(admin, "DELETE", f"{MODELS}/{model['id']}")
    entries = list(AuditEntry.objects.filter(action="model.edit").order_by("id"))
    assert [entry.actor_name for entry in entries] == ["root"] * 3
    assert (entries[0].detail["key"], entries[1].detail["changed"]) == ("given", ["temperature"])
    assert SECRET not in str([entry.detail for entry in entries])


def test_the_admin_page_moves_the_default(admin: Client) -> None:
    added(admin, is_default=True)
    other = added(admin, name="other")
    page = f"/admin/language_models/languagemodel/{other['id']}/change/"
    shown = {
        name: value
        for name, value in admin.get(page).context["adminform"].form.initial.items()
        if value not in (None, False, [])
    }
    saved = admin.post(page, {**shown, "is_default": "on"}, follow=True)
    defaults = list(LanguageModel.objects.filter(is_default=True).values_list("name", flat=True))
    assert defaults == ["other"], saved.content.decode()
    assert LanguageModel.objects.get(name="other").has_key
