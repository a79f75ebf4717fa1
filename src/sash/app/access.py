"""Who may do what: tokens with an owner and scopes, of which only the hash is kept."""

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

_MODE = 0o600
_TRIES = 200
_PAUSE_S = 0.01


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, and what it may: a stranger on this machine is the owner of all that is local."""

    owner: str
    scopes: frozenset[Scope] = frozenset(SCOPES)

    def need(self, scope: Scope) -> None:
        """Refuse a caller without this scope."""
        if scope not in self.scopes:
            mine = ", ".join(sorted(self.scopes))
            raise Forbidden(
                f"this needs a token with the scope {scope!r}, and yours has {mine}: make one with "
                f"`sash token create --scope {scope}`",
                scope=scope,
            )


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it is kept: by its hash. Its secret is shown once, when it is made."""

    id: str
    owner: str
    scopes: tuple[Scope, ...]
    hash: str
    created_at: datetime
    name: str = ""
    expires_at: datetime | None = None


class Tokens:
    """The tokens in a file, which is read again when it has changed: a token that was revoked is not good."""

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        self._path = path
        self._clock = clock or SystemClock()
        self._read_at: tuple[int, int, int] | None = None
        self._tokens: dict[str, Token] = {}

    def list(self) -> tuple[Token, ...]:
        """Return the tokens, oldest first."""
        return tuple(self._load().values())

    def create(
        self, owner: str, scopes: Iterable[Scope], *, name: str = "", expires_in: timedelta | None = None
    ) -> tuple[Token, str]:
        """Make a token, and return it with its text, which nobody will see again."""
        asked = set(scopes)
        if not asked or not asked <= set(SCOPES):
            wrong = ", ".join(sorted(asked - set(SCOPES))) or "none at all"
            raise InvalidInput(f"scopes are {', '.join(SCOPES)}, not {wrong}")
        token_id, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
        now = self._clock.now()
        token = Token(
            token_id,
            check_label("owner", owner),
            tuple(scope for scope in SCOPES if scope in asked),
            _hash(secret),
            now,
            name=check_label("name", name) if name else "",
            expires_at=None if expires_in is None else now + expires_in,
        )
        with self._alone():
            self._save({**self._load(), token.id: token})
        return token, f"{PREFIX}_{token_id}_{secret}"

    def revoke(self, token_id: str) -> Token:
        """Take a token back."""
        with self._alone():
            tokens = dict(self._load())
            if token_id not in tokens:
                raise TokenNotFound(f"no token {token_id!r:.40}: `sash token list` shows them")
            revoked = tokens.pop(token_id)
            self._save(tokens)
        return revoked

    def caller(self, text: str) -> Caller:
        """Return who shows this token; comparing takes as long whether it is right or wrong."""
        prefix, _, rest = text.partition("_")
        token_id, _, secret = rest.partition("_")
        known = self._load().get(token_id)
        token = known or _NOBODY
        right = hmac.compare_digest(_hash(secret), token.hash)
        if not right or known is None or prefix != PREFIX:
            raise Unauthorized("the token is not known here: make one with `sash token create`")
        if token.expires_at is not None and token.expires_at <= self._clock.now():
            raise Unauthorized(f"the token {token_id} has expired: make another with `sash token create`")
        return Caller(token.owner, frozenset(token.scopes))

    @property
    def needed(self) -> bool:
        """Whether a token is needed: as soon as one was made, also when it was revoked since."""
        return self._path.exists()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Let nobody else change the file meanwhile; one who holds it for seconds is not waited for."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = FileLock(self._path.with_suffix(".lock"))
        for _ in range(_TRIES):
            if not FileLock.is_supported or lock.acquire():
                break
            sleep(_PAUSE_S)
        else:
            raise StoreUnavailable(f"{self._path.name} is held by another process: try again")
        try:
            yield
        finally:
            lock.release()

    def _load(self) -> dict[str, Token]:
        try:
            found = self._path.stat()
        except (FileNotFoundError, NotADirectoryError):
            self._tokens, self._read_at = {}, None
            return self._tokens
        stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
        if stamp != self._read_at:
            try:
                read = adapter(tuple[Token, ...]).validate_json(self._path.read_bytes())
            except (OSError, ValueError) as error:
                raise StoreUnavailable(
                    f"{self._path.name} cannot be read: mend it, or delete it and make the tokens anew"
                ) from error
            self._tokens, self._read_at = {token.id: token for token in read}, stamp
        return self._tokens

    def _save(self, tokens: dict[str, Token]) -> None:
        """Write the file beside its place and put it there whole; nobody else may read it."""
        text = json.dumps(
            adapter(tuple[Token, ...]).dump_python(tuple(tokens.values()), mode="json"), indent=1
        )
        beside = self._path.with_suffix(f".{os.getpid()}.new")
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _MODE), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self._path)
        sync_folder(self._path.parent)


def _hash(secret: str) -> str:
    """Hash a secret; it is random and long, so a fast hash is as good as a slow one."""
    return hashlib.sha256(secret.encode()).hexdigest()


_NOBODY = Token("", "", (), _hash(secrets.token_urlsafe(32)), datetime.min)
