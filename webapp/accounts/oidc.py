"""Sign-in by OpenID Connect: django-allauth's, and stricter where that leaves a choice.

The ID token's signature is verified always, also when the token came straight from the provider; what the
provider says of the user besides must be of the same subject; state and PKCE tie the answer to this browser.
An account is never taken over by its mail address: who has one already signs in to it first, and connects it.
"""

from __future__ import annotations

import logging
from typing import Any, NoReturn

import jwt
from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.internal import jwtkit
from allauth.socialaccount.providers.base.constants import AuthError
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView, OAuth2LoginView
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from webapp.accounts.models import User

logger = logging.getLogger(__name__)

#: With a key that only the provider has; never a shared secret, never none.
ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"})


class VerifiedAdapter(OpenIDConnectOAuth2Adapter):
    """What the provider says, once it is known to say it."""

    def complete_login(self, request: HttpRequest, app: Any, token: Any, **kwargs: Any) -> Any:
        text = kwargs["response"].get("id_token")
        if not text:
            raise OAuth2Error("the provider sent no ID token")
        claims = self._decode_id_token(app, text)
        data = {"id_token": claims}
        if "userinfo_endpoint" in self.openid_config:
            data["userinfo"] = self._fetch_user_info(token.token)
            if data["userinfo"].get("sub") != claims.get("sub"):
                raise OAuth2Error("the provider's userinfo is about somebody else")
        return self.get_provider().sociallogin_from_response(request, data)

    def _decode_id_token(self, app: Any, id_token: str) -> dict[str, Any]:
        try:
            algorithm = jwt.get_unverified_header(id_token).get("alg")
            if algorithm not in ALGORITHMS:
                raise OAuth2Error(f"the ID token is signed by {algorithm!r}")
            issuer = self.openid_config["issuer"]
            if issuer.rstrip("/") != settings.OIDC["issuer"]:
                raise OAuth2Error(f"the provider calls itself {issuer}")
            claims: dict[str, Any] = jwtkit.verify_and_decode(
                credential=id_token,
                keys_url=self.openid_config["jwks_uri"],
                issuer=issuer,
                audience=app.client_id,
                lookup_kid=jwtkit.lookup_kid_jwk,
            )
        except (KeyError, TypeError, ValueError, jwt.PyJWTError) as error:
            raise OAuth2Error(f"the ID token cannot be read: {error}") from error
        if not claims.get("sub") or "exp" not in claims:
            raise OAuth2Error("the ID token does not say whose it is, or until when")
        return claims


class SocialAdapter(DefaultSocialAccountAdapter):
    """Who may sign in this way. allauth asks it by the settings."""

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        address = next((it for it in sociallogin.email_addresses if it.verified), None)
        domains = settings.OIDC["domains"]
        if domains and (address is None or address.email.rpartition("@")[2].lower() not in domains):
            _refuse(request, f"Only verified addresses of {' and '.join(domains)} may sign in here.")
        if sociallogin.is_existing:
            if not sociallogin.user.is_active:
                _refuse(request, "This account has been switched off. Ask an administrator.")
            return
        if sociallogin.state.get("process") == "connect":
            return
        email = sociallogin.user.email
        if email and User.objects.filter(email__iexact=email).exists():
            message = (
                "There is an account with your mail address already. Sign in to it as before, "
                "then connect it on your account page."
            )
            _refuse(request, message)

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: Any,
        error: Any = None,
        exception: Exception | None = None,
        extra_context: Any = None,
    ) -> NoReturn:
        if error == AuthError.CANCELLED:
            _refuse(request, "Signing in was cancelled.")
        logger.warning("sign-in by OpenID Connect failed: %s", exception or error)
        message = (
            "What the identity provider answered cannot be relied on, or is too old. Try again; the server's "
            "log has the details."
        )
        _refuse(request, message)

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        return True  # whoever the provider lets in, within the domains

    def get_connect_redirect_url(self, request: HttpRequest, socialaccount: Any) -> str:
        return reverse("account")


class AccountAdapter(DefaultAccountAdapter):
    def add_message(self, *_: Any, **__: Any) -> None:
        """allauth's messages ("signed in as ...") have no place on our pages."""


@never_cache
@require_GET
def login(request: HttpRequest, provider_id: str) -> HttpResponse:
    return _view(OAuth2LoginView, request, provider_id)


@never_cache
@require_GET
def callback(request: HttpRequest, provider_id: str) -> HttpResponse:
    return _view(OAuth2CallbackView, request, provider_id)


def _view(view: Any, request: HttpRequest, provider_id: str) -> HttpResponse:
    if not settings.OIDC["issuer"] or provider_id != settings.OIDC["provider_id"]:
        raise Http404
    try:
        response: HttpResponse = view.adapter_view(VerifiedAdapter(request, provider_id))(request)
    except OSError as error:  # of requests: the provider cannot be reached, or answers with an error
        logger.warning("the identity provider cannot be asked: %s", error)
        context = {"title": "Not signed in", "message": "The identity provider cannot be reached. Try again."}
        return render(request, "message.html", context, status=503)
    return response


def _refuse(request: HttpRequest, message: str) -> NoReturn:
    context = {"title": "Not signed in", "message": message}
    raise ImmediateHttpResponse(render(request, "message.html", context, status=403))
