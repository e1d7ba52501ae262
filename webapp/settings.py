"""Django's settings, entirely from the environment (the names: docs/deployment.md).

Without any: SQLite in the data folder, channel layer and task queue inside the server's process.
"""

from __future__ import annotations

import importlib.metadata
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import dj_database_url
from csp.constants import NONE, SELF, UNSAFE_INLINE

from sandbox.home import home
from sandbox.targets import DEFAULT_TARGET
from webapp import environment

PACKAGE = Path(__file__).resolve().parent
HOME = home()
VERSION = importlib.metadata.version("kernelwright")

SECRET_KEY = environment.secret_key(HOME)
#: Earlier secret keys, so that sessions and the keys of language models outlive a change.
SECRET_KEY_FALLBACKS = environment.words("KERNELWRIGHT_SECRET_KEY_FALLBACKS")
DEBUG = environment.flag("KERNELWRIGHT_DEBUG")
#: Host names under which the server may be addressed. `serve --host` adds its own.
ALLOWED_HOSTS = environment.words("KERNELWRIGHT_HOSTS", "localhost,127.0.0.1,[::1]")
#: Full origins ("https://kernels.example") of a proxy in front, for CSRF and websockets.
CSRF_TRUSTED_ORIGINS = environment.words("KERNELWRIGHT_ORIGINS")

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "csp",
    "channels",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "webapp.common",
    "webapp.language_models",
    "webapp.accounts",
    "webapp.cards",
    "webapp.workspaces",
    "webapp.profiles",
    "webapp.runs",
    "webapp.evaluations",
    "webapp.library",
    "webapp.reviews",
    "webapp.gallery",
    "webapp.ide",
]

MIDDLEWARE = [
    "webapp.common.requests.RequestIdMiddleware",
    "webapp.common.headers.ApiHeadersMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "webapp.workspaces.sessions.SeenMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "webapp.urls"
ASGI_APPLICATION = "webapp.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [PACKAGE / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

# --- Database -----------------------------------------------------------------------------------------------


def _database() -> dict[str, Any]:
    address = environment.url("KERNELWRIGHT_DATABASE_URL") or f"sqlite:///{HOME / 'kernelwright.sqlite3'}"
    database: dict[str, Any] = dict(dj_database_url.parse(address))
    if database["ENGINE"].endswith("sqlite3"):
        database["OPTIONS"] = {
            # Writers queue for the lock from their first statement, instead of failing in the middle.
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        }
        # A file, since the server's threads must see the same data.
        database["TEST"] = {
            "NAME": str(Path(tempfile.gettempdir()) / f"kernelwright-test-{os.getpid()}.sqlite3")
        }
    return database


DATABASES = {"default": _database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- Channel layer ------------------------------------------------------------------------------------------

CHANNEL_URL = environment.url("KERNELWRIGHT_CHANNEL_URL")
CHANNEL_LAYERS: dict[str, Any] = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
if CHANNEL_URL:
    CHANNEL_LAYERS["default"] = {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [CHANNEL_URL], "prefix": "kernelwright"},
    }

# --- Task queue ---------------------------------------------------------------------------------------------

BROKER_URL = environment.url("KERNELWRIGHT_BROKER_URL")
#: Whether this server runs the tasks itself, in threads of its own process.
WORKER_IN_PROCESS = not BROKER_URL
#: How many runs at once in one worker.
WORKER_CONCURRENCY = int(os.environ.get("KERNELWRIGHT_WORKERS", "2"))

CELERY_BROKER_URL = BROKER_URL or "memory://localhost"
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, Any] = (
    {"visibility_timeout": 3600} if BROKER_URL else {"polling_interval": 0.02}
)
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_SERIALIZER = "json"
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "kernelwright"
# Threads: a run waits on jailed processes, and stopping the worker must reach the run's cancellation.
CELERY_WORKER_POOL = "threads"
CELERY_WORKER_CONCURRENCY = WORKER_CONCURRENCY
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False

# --- Cards of other machines --------------------------------------------------------------------------------

#: Where workers reach the server; empty for those that share its data folder.
SERVER_URL = environment.url("KERNELWRIGHT_SERVER_URL")
#: The secret by which the server knows workers; without one no worker of another machine is let in.
WORKER_TOKEN = os.environ.get("KERNELWRIGHT_WORKER_TOKEN", "").strip()
WORKER_TOKEN_CHARACTERS_MIN = 32
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    "artifacts": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": HOME / "artifacts", "directory_permissions_mode": 0o700},
    },
}

# --- Sign-in ------------------------------------------------------------------------------------------------

AUTH_USER_MODEL = "accounts.User"
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "ide"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

#: OpenID Connect, where an issuer is set: who people sign in with, and of which mail domains (all, if none).
OIDC: dict[str, Any] = {
    "provider_id": "oidc",
    "issuer": environment.issuer("KERNELWRIGHT_OIDC_ISSUER"),
    "name": os.environ.get("KERNELWRIGHT_OIDC_NAME", "").strip() or "your organisation",
    "domains": [domain.lower() for domain in environment.words("KERNELWRIGHT_OIDC_DOMAINS")],
}
SOCIALACCOUNT_PROVIDERS: dict[str, Any] = {
    "openid_connect": {
        "OAUTH_PKCE_ENABLED": True,
        "APPS": [
            {
                "provider_id": OIDC["provider_id"],
                "name": OIDC["name"],
                "client_id": os.environ.get("KERNELWRIGHT_OIDC_CLIENT_ID", "").strip(),
                "secret": os.environ.get("KERNELWRIGHT_OIDC_CLIENT_SECRET", "").strip(),
                "settings": {"server_url": OIDC["issuer"]},
            }
        ],
    }
}
SOCIALACCOUNT_ADAPTER = "webapp.accounts.oidc.SocialAdapter"
# A link, not a form: the content security policy lets no form lead to another site.
SOCIALACCOUNT_LOGIN_ON_GET = True
SOCIALACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_ADAPTER = "webapp.accounts.oidc.AccountAdapter"
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "email"]

# --- Mail ---------------------------------------------------------------------------------------------------

_mail = environment.mail("KERNELWRIGHT_MAIL_URL")
#: Whether mail leaves this machine; else it is written into files, and whoever invites hands the link over.
MAIL_CONFIGURED = _mail is not None
EMAIL_BACKEND = f"django.core.mail.backends.{'smtp' if _mail else 'filebased'}.EmailBackend"
EMAIL_FILE_PATH = HOME / "mail"
EMAIL_HOST, EMAIL_PORT, EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _mail.server if _mail else ("", 0, "", "")
EMAIL_USE_TLS = _mail is not None and _mail.security == "starttls"
EMAIL_USE_SSL = _mail is not None and _mail.security == "tls"
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = os.environ.get("KERNELWRIGHT_MAIL_FROM", "").strip() or "kernelwright@localhost"

# --- What a browser is told ---------------------------------------------------------------------------------

_behind_tls = bool(CSRF_TRUSTED_ORIGINS) and all(o.startswith("https://") for o in CSRF_TRUSTED_ORIGINS)
# Cookies are shared by all ports of a host, hence a name of our own.
SESSION_COOKIE_NAME = "kernelwright_session"
SESSION_COOKIE_SECURE = _behind_tls
SESSION_COOKIE_AGE = 30 * 24 * 3600
# The page reads its token from Django's own cookie name (or from the bootstrap block, or GET session).
CSRF_COOKIE_SECURE = _behind_tls
CSRF_FAILURE_VIEW = "webapp.common.pages.csrf_failure"
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        # Monaco writes style attributes and style elements; nothing else needs this.
        "style-src": [SELF, UNSAFE_INLINE],
        "img-src": [SELF, "data:"],
        "font-src": [SELF, "data:"],
        "connect-src": [SELF],
        "worker-src": [SELF],
        "manifest-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
        "object-src": [NONE],
    }
}

STATIC_URL = "/static/"
STATICFILES_DIRS = [PACKAGE / "static"]
# Only for `collectstatic`, where another server hands out the files; ours finds them where they are.
STATIC_ROOT = environment.url("KERNELWRIGHT_STATIC_ROOT") or None
WHITENOISE_USE_FINDERS = True
WHITENOISE_ALLOW_ALL_ORIGINS = False
# Read at every request only where someone rebuilds the page while the server runs.
WHITENOISE_AUTOREFRESH = DEBUG
WHITENOISE_IMMUTABLE_FILE_TEST = r"^/static/ide/assets/.+[-.][0-9A-Za-z_-]{8}\.[a-z0-9]+$"

# WhiteNoise hands out files by blocking iterators. Under ASGI Django reads those in a thread, and warns.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous iterators")

# --- API ----------------------------------------------------------------------------------------------------

MEBIBYTE = 1024 * 1024
SOURCE_BYTES_MAX = 1_000_000
ARTIFACT_BYTES_MAX = 64 * MEBIBYTE
#: A request may carry a source and a candidate, each escaped as JSON.
API_BODY_BYTES_MAX = 8 * MEBIBYTE
DATA_UPLOAD_MAX_MEMORY_SIZE = API_BODY_BYTES_MAX
TURNS_DEFAULT = 8
#: With a language model, which needs more of them and more time.
TURNS_DEFAULT_LLM = 12
SECONDS_DEFAULT_LLM = 3600.0
TURNS_MAX = 50
TURNS_MAX_LLM = 200
#: Unfinished evaluations one user may have: two full batches.
EVALUATIONS_OPEN_MAX = 200
#: Requests a minute of one user; the page itself is far below.
API_READS_PER_MINUTE = int(os.environ.get("KERNELWRIGHT_API_READS_PER_MINUTE", "1200"))
API_WRITES_PER_MINUTE = int(os.environ.get("KERNELWRIGHT_API_WRITES_PER_MINUTE", "240"))
#: What a user may use over all workspaces, and a workspace as a whole; None: no limit.
QUOTAS: dict[str, dict[str, int | None]] = {
    "user": {
        "runs_at_once": environment.limit("KERNELWRIGHT_USER_RUNS", 20),
        "gpu_seconds": environment.limit("KERNELWRIGHT_USER_GPU_SECONDS", None),
        "model_tokens": environment.limit("KERNELWRIGHT_USER_MODEL_TOKENS", None),
    },
    "workspace": {
        "runs_at_once": environment.limit("KERNELWRIGHT_WORKSPACE_RUNS", 100),
        "gpu_seconds": environment.limit("KERNELWRIGHT_WORKSPACE_GPU_SECONDS", None),
        "model_tokens": environment.limit("KERNELWRIGHT_WORKSPACE_MODEL_TOKENS", None),
    },
}
RUN_TARGET = os.environ.get("KERNELWRIGHT_TARGET", "").strip() or DEFAULT_TARGET

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "webapp.workspaces.authentication.TokenAuthentication",
        "webapp.common.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["webapp.workspaces.permissions.Allowed"],
    "DEFAULT_PARSER_CLASSES": ["webapp.common.bodies.JsonParser"],
    "DEFAULT_RENDERER_CLASSES": ["webapp.common.bodies.JsonRenderer"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_THROTTLE_CLASSES": ["webapp.common.limits.PerMinute"],
    "URL_FORMAT_OVERRIDE": None,
    "EXCEPTION_HANDLER": "webapp.workspaces.problems.exception_handler",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Kernelwright",
    "DESCRIPTION": "C and PyTorch to verified CUDA. Errors are RFC 9457 problem documents.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SERVE_AUTHENTICATION": [],
    "SCHEMA_PATH_PREFIX": "/api/v1",
    # Not its hook that names enumerations: two of one field's name would need a name here each.
    "POSTPROCESSING_HOOKS": ["webapp.common.openapi.complete"],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}

# --- The rest -----------------------------------------------------------------------------------------------

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
APPEND_SLASH = False

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"request_id": {"()": "webapp.common.requests.RequestIdFilter"}},
    "formatters": {
        "plain": {"format": "{asctime} {levelname} {name} [{request_id}] {message}", "style": "{"}
    },
    "handlers": {
        "console": {"class": "logging.StreamHandler", "formatter": "plain", "filters": ["request_id"]},
    },
    "root": {"handlers": ["console"], "level": os.environ.get("KERNELWRIGHT_LOG_LEVEL", "WARNING").upper()},
    "loggers": {
        "django.request": {"level": "ERROR"},
        "webapp": {"level": "INFO"},
        "httpx2": {"level": "WARNING"},
    },
}
