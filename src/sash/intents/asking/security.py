"""Answers whether the home is secure: which doors and windows are open, and which locks are unlocked."""

from sash.intents.asking.answers import Answers
from sash.intents.asking.conditions import Condition
from sash.intents.sentence.clause import Clause
from sash.intents.situation import Reply
from sash.ports.home import NO_STATE, Entity

_ENTRANCES = frozenset({"door", "garage", "garage_door", "gate", "window", "opening"})


class SecurityAnswers(Answers):
    """Answers the question whether a home is secure."""

    def answer(self, clause: Clause) -> Reply | None:
        """Return what is open or unlocked, or that nothing is; None for other questions."""
        if "secure" not in clause.properties or not clause.is_question:
            return None
        known = [e for e in self._index.entities.values() if self._index.get_state(e.id) not in NO_STATE]
        entrances = [e for e in known if self._index.get_device_class(e.id) in _ENTRANCES]
        locks = [entity for entity in known if entity.domain == "lock"]
        if not entrances and not locks:
            return None
        insecure = [*self._list_met("open", entrances), *self._list_met("unlocked", locks)]
        if insecure:
            return self._reply(self._writer.say("state.no_not", things=self._say_states(insecure)), insecure)
        key = "state.secure" if locks else "state.secure_closed"
        locked = self._say_states(locks) if locks else ""
        return self._reply(self._writer.say(key, locks=locked), [*entrances, *locks])

    def _list_met(self, name: str, entities: list[Entity]) -> list[Entity]:
        condition = Condition("locked" if name == "unlocked" else name, name != "unlocked", self._index)
        return [each for each in entities if condition.applies_to(each) and condition.is_met(each)]
