"""An OpenID provider on this machine, with real RS256 signatures; what it says can be made wrong."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT, SECRET = "kernelwright", "the client's secret"


class IdentityProvider:
    """Discovery, authorization code with PKCE, userinfo, keys."""

    def __init__(self) -> None:
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.signing_key: Any = self.key  # another one: a forged signature
        self.algorithm = "RS256"
        self.key_id: str | None = "k1"
        self.claims: dict[str, Any] = {}  # in place of what the ID token would say
        self.person: dict[str, Any] = {
            "sub": "subject-1",
            "email": "ada@example.com",
            "email_verified": True,
            "preferred_username": "ada.l",
            "given_name": "Ada",
            "family_name": "Lovelace",
        }
        self.userinfo: dict[str, Any] = {}  # in place of the person's
        self.codes: dict[str, dict[str, str]] = {}
        self.address = ""

    def discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.address,
            "authorization_endpoint": f"{self.address}/authorize",
            "token_endpoint": f"{self.address}/token",
            "userinfo_endpoint": f"{self.address}/userinfo",
            "jwks_uri": f"{self.address}/keys",
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
        }

    def keys(self) -> dict[str, Any]:
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        return {"keys": [{**public, "kid": "k1", "use": "sig", "alg": "RS256"}]}

    def authorize(self, query: dict[str, str]) -> str:
        """Where the browser is sent with the code; the person agrees at once."""
        code = secrets.token_urlsafe()
        self.codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def token(self, form: dict[str, str]) -> dict[str, Any] | None:
        """None for what a provider refuses: another client, a code used before, PKCE that does not fit."""
        asked = self.codes.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if (
            asked is None
            or (form.get("client_id"), form.get("client_secret")) != (CLIENT, SECRET)
            or asked.get("code_challenge_method") != "S256"
            or asked.get("code_challenge") != challenge
            or asked.get("redirect_uri") != form.get("redirect_uri")
        ):
            return None
        now = int(time.time())
        claims = {"iss": self.address, "aud": CLIENT, "iat": now, "exp": now + 300, **self.person}
        claims |= self.claims
        claims = {name: value for name, value in claims.items() if value is not None}
        headers = {"kid": self.key_id} if self.key_id else {}
        token = jwt.encode(claims, self.signing_key, algorithm=self.algorithm, headers=headers)
        return {"access_token": "access", "token_type": "Bearer", "expires_in": 300, "id_token": token}


@contextmanager
def running() -> Iterator[IdentityProvider]:
    provider = IdentityProvider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            address = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(address.query).items()}
            match address.path:
                case "/.well-known/openid-configuration":
                    self.answer(200, provider.discovery())
                case "/keys":
                    self.answer(200, provider.keys())
                case "/authorize":
                    self.send_response(302)
                    self.send_header("Location", provider.authorize(query))
                    self.end_headers()
                case "/userinfo" if self.headers["Authorization"] == "Bearer access":
                    self.answer(200, {**provider.person, **provider.userinfo})
                case _:
                    self.answer(404, {})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            answer = provider.token(form) if self.path == "/token" else None
            self.answer(400 if answer is None else 200, answer or {"error": "invalid_grant"})

        def answer(self, status: int, document: dict[str, Any]) -> None:
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        provider.address = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield provider
        finally:
            server.shutdown()
            thread.join()
