"""The session that a chat continues or starts."""

from dataclasses import dataclass, replace
from typing import Any, Self

from sash.app.access import Caller
from sash.app.service import AgentService
from sash.engine.policy import covers
from sash.errors import InvalidInput
from sash.values.ids import is_ulid
from sash.values.requests import StartSession
from sash.values.sessions import Session, SessionPolicy

DEFAULT_NAME = "chat"


@dataclass(frozen=True, slots=True)
class SessionChoice:
    """The session that the user asked for, by id or by name, and the area and services that it must have."""

    session_id: str | None = None
    name: str | None = None
    new: bool = False
    area: str | None = None
    language: str | None = None
    services: tuple[str, ...] = ()

    @classmethod
    def of(cls, id_or_name: str | None, *, name: str | None = None, **options: Any) -> Self:
        """Return the choice of a session by its id, or else by its name."""
        if id_or_name is None or is_ulid(id_or_name.upper()):
            return cls(id_or_name, name, **options)
        return cls(None, id_or_name, **options)

    async def resolve(self, service: AgentService, caller: Caller, *, is_fixed: bool = False) -> Session:
        """Return the chosen session, or a new one if it is missing or has another area or policy.

        With `is_fixed`, raise `InvalidInput` instead if it does not allow the services.

        An expired session is reopened if its id or its name was given. If several chats start a session of
        the same name at the same time, they share that session.
        """
        if self.session_id is not None:
            session = await service.reopen_session(caller, self.session_id)
        elif self.new:
            return await service.start_session(caller, self._make_request(service, self.name))
        else:
            request = self._make_request(service, self.name or DEFAULT_NAME)
            session = await service.open_session(caller, request, reopen=self.name is not None)
        if not (self._allows_enough(session) if is_fixed else self._matches(session)):
            if self.session_id is not None or is_fixed:
                raise InvalidInput(
                    "a session keeps the area and the allowed services that it started with: choose another "
                    "session, or omit --area and --allow"
                )
            return await service.start_session(caller, self._make_request(service, None))
        if self.language not in (None, session.preferences.get("language")):
            return await service.set_preferences(caller, session.id, {"language": self.language})
        return session

    def _matches(self, session: Session) -> bool:
        allowed = session.policy.allowlisted_services if session.policy.allow_actuation else ()
        return set(self.services) <= set(allowed) and self.area in (None, session.area)

    def _allows_enough(self, session: Session) -> bool:
        policy = session.policy
        return not self.services or (
            policy.allow_actuation
            and all(covers(policy.allowlisted_services, service) for service in self.services)
        )

    def _make_request(self, service: AgentService, name: str | None) -> StartSession:
        policy = allow_services(service, self.services) or service.runtime.defaults.policy
        preferences = None if self.language is None else {"language": self.language}
        return StartSession(name=name, area=self.area, preferences=preferences, policy=policy)


def allow_services(service: AgentService, services: tuple[str, ...]) -> SessionPolicy | None:
    """Return the policy of a new session that may use some services; None means the default one."""
    if not services:
        return None
    return replace(service.runtime.defaults.policy, allow_actuation=True, allowlisted_services=services)
