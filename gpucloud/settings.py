"""Settings: every knob is read once from the environment here, with its default and its reason."""

from __future__ import annotations

import base64
import json
import os
import secrets
import tempfile
import warnings
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

BASE_DIR = Path(__file__).resolve().parent.parent


def env(name: str, default: str = "") -> str:
    """The variable's value, or the content of the file that NAME_FILE names, or the default."""
    if path := os.environ.get(f"{name}_FILE"):
        return Path(path).read_text().strip()
    return os.environ.get(name, default)


# Where state lives: keys, doors.json, pid files, the demo's database.
GPUCLOUD_DATA = Path(os.environ.get("GPUCLOUD_DATA") or BASE_DIR / "var").resolve()
# Demo: no database URL given, so this is one machine on embedded parts. Tests count as demo.
DEMO = not env("DATABASE_URL") or os.environ.get("GPUCLOUD_DEMO", "") == "1"
TESTING = "PYTEST_VERSION" in os.environ or os.environ.get("GPUCLOUD_TESTING") == "1"


def _doors() -> dict[str, str]:
    path = GPUCLOUD_DATA / "doors.json"
    try:
        doors: dict[str, str] = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    return doors


DOORS = {} if TESTING else _doors()


def _key(name: str, variable: str, size: int) -> str:
    """A key from the environment, its file, or (demo and tests only) made once under keys/ with
    mode 0600.
    """
    if given := env(variable):
        return given
    if not DEMO and not TESTING:
        raise ImproperlyConfigured(
            f"Set {variable} or {variable}_FILE: production makes no keys by itself."
        )
    if TESTING:
        return base64.b64encode(variable.encode().ljust(size, b".")[:size]).decode()
    path = GPUCLOUD_DATA / "keys" / name
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text().strip()
    with os.fdopen(handle, "w") as out:
        out.write(base64.b64encode(secrets.token_bytes(size)).decode())
    return path.read_text().strip()


# Signs sessions and CSRF tokens; never used to encrypt.
SECRET_KEY = _key("secret_key", "SECRET_KEY", 48)
# AES-256 key of the Secret table, base64 of 32 bytes; the variable names the file, kept outside the
# database.
ENCRYPTION_KEY = _key("encryption.key", "GPUCLOUD_KEY", 32)
# The demo's accounts share this password; random when unset (seed_demo writes it to demo-password).
GPUCLOUD_DEMO_PASSWORD = env("GPUCLOUD_DEMO_PASSWORD")

PORT = int(os.environ.get("PORT", "8000"))
PUBLIC_URL = env("PUBLIC_URL", f"http://127.0.0.1:{PORT}")
# The agent's and media door as seen from the provisioning segment, and its CA (PEM) that agents
# pin.
AGENT_URL = env("AGENT_URL", DOORS.get("door", "https://127.0.0.1:8443"))
BMC_URL = env("BMC_URL", AGENT_URL)
DOOR_CERTIFICATES = GPUCLOUD_DATA / "keys"
# Divides the lab's durations; the product only passes it on.
LAB_SPEED = float(os.environ.get("LAB_SPEED", "20"))
# Scales every deadline and backoff; for tests only.
TIME_FACTOR = float(os.environ.get("TIME_FACTOR", "1"))
# Names of managedFields managers that count as GitOps appliers beside those found by operation
# Apply.
GITOPS_MANAGERS = tuple(n for n in env("GITOPS_MANAGERS").split(",") if n)

DEBUG = False
_hosts = {urlsplit(PUBLIC_URL).hostname or "127.0.0.1", "127.0.0.1", "localhost"}
ALLOWED_HOSTS = sorted(_hosts | ({"testserver"} if TESTING else set()))
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]
_https = PUBLIC_URL.startswith("https://")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _https
SESSION_COOKIE_NAME = "__Host-session" if _https else "session"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_AGE = 12 * 3600
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

INSTALLED_APPS = [
    "channels",
    "gpucloud.apps.GpucloudConfig",
    "inventory",
    "network",
    "tenants",
    "provisioning",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "gpucloud.middleware.security_headers",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "gpucloud.middleware.person",
]
ROOT_URLCONF = "gpucloud.urls"
ASGI_APPLICATION = "gpucloud.asgi.application"
WSGI_APPLICATION = "gpucloud.wsgi.application"
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "gpucloud.middleware.shell",
            ],
            "builtins": ["gpucloud.templatetags.console"],
        },
    }
]

AUTH_USER_MODEL = "gpucloud.User"
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
PASSWORD_HASHERS = (
    ["django.contrib.auth.hashers.MD5PasswordHasher"]
    if TESTING
    else [
        "django.contrib.auth.hashers.ScryptPasswordHasher",
        "django.contrib.auth.hashers.PBKDF2PasswordHasher",
    ]
)
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "dashboard"
LOGOUT_REDIRECT_URL = "login"


def _database() -> dict[str, Any]:
    url = env("DATABASE_URL")
    if not url:
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": GPUCLOUD_DATA / "gpucloud.sqlite3",
            "OPTIONS": {
                # IMMEDIATE takes the write lock at BEGIN, so that a read never has to be upgraded
                # half-way.
                "transaction_mode": "IMMEDIATE",
                "timeout": 30,
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; "
                "PRAGMA busy_timeout=30000;",
            },
            # A file: threads share a database in memory through one cache, whose locks do not wait.
            "TEST": {"NAME": Path(tempfile.gettempdir()) / f"gpucloud-test-{os.getpid()}.sqlite3"},
        }
    parts = urlsplit(url)
    if parts.scheme not in ("postgres", "postgresql"):
        raise ImproperlyConfigured(
            "DATABASE_URL must be postgresql://user:password@host:port/name."
        )
    query = dict(parse_qsl(parts.query))
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path.lstrip("/"),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": query.pop("host", parts.hostname or ""),
        "PORT": str(parts.port or ""),
        "CONN_HEALTH_CHECKS": True,
        # Tests open and close connections per database, which a pool would hold on to.
        "OPTIONS": {
            **query,
            **({} if TESTING else {"pool": {"min_size": 1, "max_size": 12, "timeout": 10}}),
        },
    }


DATABASES = {"default": _database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Hints only: everything works without it, slower.
REDIS_URL = env("REDIS_URL", DOORS.get("valkey", ""))
CELERY_BROKER_URL = REDIS_URL or "memory://"
# Without max_retries=0 publishing to a dead Redis blocks for six seconds.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "max_retries": 0,
    "socket_connect_timeout": 0.3,
    "socket_timeout": 60,
    "visibility_timeout": 3600,
}
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = False
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_DEFAULT_QUEUE = "engine"
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TASK_ALWAYS_EAGER = False
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}

# Kinds of drivers by concern: the key is what the database stores. Add a path to your own class
# here.
DRIVERS: dict[str, dict[str, str]] = {
    "bmc": {
        "redfish": "inventory.drivers.redfish.Redfish",
        "metal3": "inventory.drivers.metal3.Metal3Power",
        "fake": "inventory.drivers.fake.FakeBmc",
    },
    "provider": {
        "metal3": "provisioning.drivers.metal3.Metal3",
        "fake": "provisioning.drivers.fake.FakeProvider",
    },
    "fabric": {
        "nvue": "network.drivers.nvue.Nvue",
        "fake": "network.drivers.fake.FakeFabric",
    },
    "control_plane": {
        "vcluster_platform": "tenants.drivers.vcluster_platform.VclusterPlatform",
        "fake": "tenants.drivers.fake.FakeControlPlane",
    },
}
# Who owns steps: the kind stored in Step.kind -> the plan the engine drives.
PLANS = {
    "operation": "provisioning.plans.OperationPlan",
    "cluster": "tenants.plans.ClusterPlan",
}
# Fragments that live pages may show, gathered by the hub.
LIVE_FRAGMENTS = ["inventory.live", "network.live", "tenants.live", "provisioning.live"]
# Run by the sweep every second, by dotted path: cheap, idempotent, each in its own transaction.
SWEEPS = [
    "gpucloud.engine.due.nudge_due",
    "provisioning.reconcile.pools",
    "tenants.services.clusters.settle",
]
# What the watcher follows, by dotted path: each tells the collections to follow now, and is asked
# every two seconds.
WATCHES = [
    "inventory.watcher.host_subjects",
    "tenants.watch.node_subjects",
    "tenants.watch.instance_subjects",
]

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
# Production collects its static files here; the demo serves them from where they are.
STATIC_ROOT = BASE_DIR / "staticfiles"
warnings.filterwarnings("ignore", message="No directory at", module="django.core.handlers.base")
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "gpucloud.api.auth.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": [
        "rest_framework.permissions.IsAuthenticated",
        "gpucloud.api.auth.Scopes",
    ],
    "DEFAULT_METADATA_CLASS": "gpucloud.api.metadata.Methods",
    "DEFAULT_PAGINATION_CLASS": "gpucloud.api.paging.Cursor",
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "gpucloud.api.schema.Schema",
    "EXCEPTION_HANDLER": "gpucloud.api.problems.handler",
    "PAGE_SIZE": 100,
    # `format` is a filter of images, and the answer is always JSON.
    "URL_FORMAT_OVERRIDE": None,
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "gpucloud",
    "DESCRIPTION": "Bare-metal GPU servers as a self-service cloud.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["console"], "level": os.environ.get("LOG_LEVEL", "INFO")},
    "loggers": {
        "sushy": {"level": "WARNING"},
        "kubernetes": {"level": "WARNING"},
        "django.request": {"level": "ERROR"},
        "daphne": {"level": "WARNING"},
    },
}
