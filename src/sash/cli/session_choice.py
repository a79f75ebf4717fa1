"""The session that a chat continues or starts."""

from dataclasses import dataclass, replace

from sash.app.access import Caller
from sash.app.service import AgentService
from sash.errors import InvalidInput
from sash.values.requests import StartSession
from sash.values.sessions import Session

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

    async def resolve(self, service: AgentService, caller: Caller) -> Session:
        """Return the chosen session, or a new one if it is missing or has another area or policy.

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
        if not self._matches(session):
            if self.session_id is not None:
                raise InvalidInput(
                    "a session keeps the area and the allowed services that it started with: omit --session "
                    "to start another one, or omit --area and --allow"
                )
            return await service.start_session(caller, self._make_request(service, None))
        if self.language not in (None, session.preferences.get("language")):
            return await service.set_preferences(caller, session.id, {"language": self.language})
        return session

    def _matches(self, session: Session) -> bool:
        allowed = session.policy.allowlisted_services if session.policy.allow_actuation else ()
        return set(self.services) <= set(allowed) and self.area in (None, session.area)

    def _make_request(self, service: AgentService, name: str | None) -> StartSession:
        policy = service.runtime.defaults.policy
        if self.services:
            policy = replace(policy, allow_actuation=True, allowlisted_services=self.services)
        preferences = None if self.language is None else {"language": self.language}
        return StartSession(name=name, area=self.area, preferences=preferences, policy=policy)
