"""The ASGI application: HTTP to Django, websockets to the consumers, after the token, or the
origin and the session."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
http = get_asgi_application()

# Only now are the models loaded that these import.
from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402

import webapp.celery  # noqa: E402, F401  (the default app, through which tasks are sent)
from webapp.common.origins import SameOrigin  # noqa: E402
from webapp.reviews.routing import websocket_urlpatterns as reviews_websockets  # noqa: E402
from webapp.runs.routing import websocket_urlpatterns as runs_websockets  # noqa: E402
from webapp.workspaces.authentication import TokenOrBrowser  # noqa: E402

websockets = URLRouter([*runs_websockets, *reviews_websockets])

application = ProtocolTypeRouter(
    {
        "http": http,
        "websocket": TokenOrBrowser(websockets, SameOrigin(AuthMiddlewareStack(websockets))),
    }
)
