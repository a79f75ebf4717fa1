"""The files of a Home Assistant that is set up: users with tokens, and the address of its server."""

import base64
import hashlib
import hmac
import json
import time
from pathlib import Path

CREATED_AT = "2024-01-01T00:00:00+00:00"
TEN_YEARS_S = 315_360_000
# A user of each kind: name, group, letter that its ids are made of.
OWNER = ("Owner", "system-admin", "a")
GUEST = ("Guest", "system-users", "b")


def seed(folder: Path, port: int) -> dict[str, str]:
    """Write the files of a house that listens on a port of loopback; return a token for each user."""
    storage = folder / ".storage"
    storage.mkdir(parents=True)
    users = (OWNER, GUEST)
    auth = {
        "users": [_user(*user) for user in users],
        "groups": [{"id": f"system-{name}", "name": name} for name in ("admin", "users", "read-only")],
        "credentials": [],
        "refresh_tokens": [_refresh_token(letter) for _, _, letter in users],
    }
    http = {
        "server_host": ["127.0.0.1"],
        "server_port": port,
        "cors_allowed_origins": [],
        "login_attempts_threshold": -1,
        "ip_ban_enabled": False,
        "ssl_profile": "modern",
        "use_x_frame_options": True,
        "created_at": CREATED_AT,
        "error": None,
        "error_message": None,
    }
    _write(storage, "auth", 1, 1, auth)
    _write(storage, "onboarding", 4, 1, {"done": ["user", "core_config", "analytics", "integration"]})
    # In its YAML this would be on trial only: after five minutes Home Assistant would take it back.
    _write(storage, "http", 2, 2, {"stable": http, "pending": None, "yaml_migration_done": True})
    return {name: _token(letter) for name, _, letter in users}


def _write(storage: Path, key: str, version: int, minor_version: int, data: object) -> None:
    content = {"version": version, "minor_version": minor_version, "key": key, "data": data}
    (storage / key).write_text(json.dumps(content))


def _user(name: str, group: str, letter: str) -> dict[str, object]:
    return {
        "id": letter * 32,
        "group_ids": [group],
        "is_owner": (name, group, letter) == OWNER,
        "is_active": True,
        "name": name,
        "system_generated": False,
        "local_only": False,
    }


def _refresh_token(letter: str) -> dict[str, object]:
    return {
        "id": letter.upper() * 32,
        "user_id": letter * 32,
        "client_id": None,
        "client_name": f"tests {letter}",
        "client_icon": None,
        "token_type": "long_lived_access_token",
        "created_at": CREATED_AT,
        "access_token_expiration": float(TEN_YEARS_S),
        "token": letter * 128,
        "jwt_key": _key(letter),
        "last_used_at": None,
        "last_used_ip": None,
        "expire_at": None,
        "credential_id": None,
        "version": "2024.1.0",
    }


def _key(letter: str) -> str:
    return f"{letter}0" * 64


def _token(letter: str) -> str:
    """Sign an access token as Home Assistant does."""
    issued_at = int(time.time()) - 60
    claims = {"iss": letter.upper() * 32, "iat": issued_at, "exp": issued_at + TEN_YEARS_S}
    signed = f"{_encode({'alg': 'HS256', 'typ': 'JWT'})}.{_encode(claims)}"
    signature = hmac.new(_key(letter).encode(), signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{_base64(signature)}"


def _encode(value: object) -> str:
    return _base64(json.dumps(value).encode())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
