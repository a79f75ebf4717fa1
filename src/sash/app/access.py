"""Access tokens with an owner and scopes. Only the hash of a token is stored."""

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from time import sleep
from typing import Literal, get_args

from sash.errors import Forbidden, InvalidInput, StoreUnavailable, TokenNotFound, Unauthorized
from sash.stores.disk import sync_folder
from sash.stores.lock import FileLock
from sash.values.clock import Clock, SystemClock
from sash.values.codec import adapter
from sash.values.validation import check_label

Scope = Literal["read", "converse", "act", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
PREFIX = "sash"

_FILE_MODE = 0o600
_MAX_LOCK_TRIES = 200
_LOCK_PAUSE_S = 0.01


@dataclass(frozen=True, slots=True)
class Caller:
    """The owner that a request acts for, and the scopes of the request.

    A local caller without a token has all scopes.
    """

    owner: str
    scopes: frozenset[Scope] = frozenset(SCOPES)

    def need(self, scope: Scope) -> None:
        """Raise `Forbidden` if the caller lacks this scope."""
        if scope not in self.scopes:
            scopes = ", ".join(sorted(self.scopes))
            wanted = ",".join(known for known in SCOPES if known in self.scopes | {scope})
            raise Forbidden(
                f"this needs a token with the scope {scope!r}, and yours has {scopes}: create one with "
                f"`sash token create --owner {self.owner} --scope {wanted}`",
                scope=scope,
            )


@dataclass(frozen=True, slots=True)
class Token:
    """A stored token. Its secret is shown only once, at creation."""

    id: str
    owner: str
    scopes: tuple[Scope, ...]
    hash: str
    created_at: datetime
    name: str = ""
    expires_at: datetime | None = None


class Tokens:
    """The tokens in a file.

    The file is read again after each change, so that revoking a token takes effect at once.

    A file that disappears does not open the server. If this object has seen the file, or if its lock file
    exists, `needed` and `caller` raise `StoreUnavailable` until the file is back or has a new token. The lock
    file is made with the first token and stays, so this also holds after a restart. To allow requests without
    tokens again, the operator stops the server and deletes both files.
    """

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        self._path = path
        self._lock_path = path.with_suffix(".lock")
        self._clock = clock or SystemClock()
        self._has_seen_file = False
        self._file_stamp: tuple[int, int, int] | None = None
        self._tokens: dict[str, Token] = {}

    def list(self) -> tuple[Token, ...]:
        """Return the tokens, oldest first."""
        return tuple(self._load().values())

    def create(
        self, owner: str, scopes: Iterable[Scope], *, name: str = "", expires_in: timedelta | None = None
    ) -> tuple[Token, str]:
        """Create a token, and return it with its text for the user. The text is not stored."""
        requested = set(scopes)
        if not requested or not requested <= set(SCOPES):
            wrong = ", ".join(sorted(requested - set(SCOPES))) or "none"
            raise InvalidInput(f"scopes must be one or more of {', '.join(SCOPES)}, got {wrong}")
        token_id, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
        now = self._clock.now()
        token = Token(
            token_id,
            check_label("owner", owner),
            tuple(scope for scope in SCOPES if scope in requested),
            _hash(secret),
            now,
            name=check_label("name", name) if name else "",
            expires_at=None if expires_in is None else now + expires_in,
        )
        with self._lock():
            self._save({**self._load(create=True), token.id: token})
        return token, f"{PREFIX}_{token_id}_{secret}"

    def revoke(self, token_id: str) -> Token:
        """Delete a token by its id and return it. Raise `TokenNotFound` if it does not exist."""
        if token_id not in self._load():
            raise TokenNotFound(f"there is no token {token_id!r:.40}: `sash token list` shows all tokens")
        with self._lock():
            tokens = dict(self._load())
            if token_id not in tokens:
                raise TokenNotFound(f"the token {token_id!r:.40} was revoked a moment ago")
            revoked = tokens.pop(token_id)
            self._save(tokens)
        return revoked

    def caller(self, text: str) -> Caller:
        """Return the caller for the text of a token, or raise `Unauthorized`. Compare in constant time."""
        prefix, _, rest = text.partition("_")
        token_id, _, secret = rest.partition("_")
        known = self._load().get(token_id)
        token = known or _UNKNOWN_TOKEN
        matches = hmac.compare_digest(_hash(secret), token.hash)
        if not matches or known is None or prefix != PREFIX:
            raise Unauthorized("the token is unknown: check it, or create a new one with `sash token create`")
        if token.expires_at is not None and token.expires_at <= self._clock.now():
            raise Unauthorized(f"the token {token_id} has expired: create another with `sash token create`")
        return Caller(token.owner, frozenset(token.scopes))

    @property
    def needed(self) -> bool:
        """Return True if callers need a token: a token was created, even if all were revoked since."""
        return self._find_stamp() is not None

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Lock the file for this process. Raise `StoreUnavailable` if another process keeps it locked."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = FileLock(self._lock_path)
        for _ in range(_MAX_LOCK_TRIES):
            if not FileLock.is_supported or lock.acquire():
                break
            sleep(_LOCK_PAUSE_S)
        else:
            raise StoreUnavailable(f"{self._path.name} is locked by another process: try again")
        try:
            yield
        finally:
            lock.release()

    def _load(self, *, create: bool = False) -> dict[str, Token]:
        stamp = self._find_stamp(create=create)
        if stamp is None:
            self._tokens = {}
        elif stamp != self._file_stamp:
            try:
                read = adapter(tuple[Token, ...]).validate_json(self._path.read_bytes())
            except (OSError, ValueError) as error:
                raise StoreUnavailable(
                    f"{self._path.name} cannot be read: repair it, or delete it and create new tokens"
                ) from error
            self._tokens = {token.id: token for token in read}
        self._file_stamp = stamp
        return self._tokens

    def _find_stamp(self, *, create: bool = False) -> tuple[int, int, int] | None:
        """Return the time, size and number of the file, or None if no token was ever created.

        Raise `StoreUnavailable` if the file has disappeared, unless the caller will `create` it.
        """
        try:
            found = self._path.stat()
        except (FileNotFoundError, NotADirectoryError) as error:
            if not create and (self._has_seen_file or self._lock_path.exists()):
                raise StoreUnavailable(
                    f"{self._path.name} is missing, so all requests are refused: put it back, or create a "
                    "new token with `sash token create`"
                ) from error
            return None
        except OSError as error:
            raise StoreUnavailable(f"{self._path.name} cannot be read: {error.strerror}") from error
        self._has_seen_file = True
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _save(self, tokens: dict[str, Token]) -> None:
        """Replace the file atomically. Only the current user may read it."""
        text = json.dumps(
            adapter(tuple[Token, ...]).dump_python(tuple(tokens.values()), mode="json"), indent=1
        )
        draft = self._path.with_suffix(f".{os.getpid()}.new")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _FILE_MODE), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path)
        sync_folder(self._path.parent)


def _hash(secret: str) -> str:
    """Return the hash of a secret. Secrets are long and random, so a slow hash function would not help."""
    return hashlib.sha256(secret.encode()).hexdigest()


_UNKNOWN_TOKEN = Token("", "", (), _hash(secrets.token_urlsafe(32)), datetime.min)
