"""Finds the time in which the speaker was last away: "while I was out"."""

from sash.intents.past.question import Target
from sash.intents.past.records import read_latest_records
from sash.intents.past.sources import choose_targets
from sash.intents.sentence.moments import Span
from sash.intents.sentence.time_words import TimeWords
from sash.intents.situation import Situation

# The words of a time with a beginning and an end.
BETWEEN = TimeWords(hour=0, until=TimeWords(hour=0))


async def find_absence(situation: Situation) -> Span | None:
    """Return the last time in which the speaker was away; None if the home does not know it.

    The only person of a home is the speaker if nothing else tells who speaks.
    """
    index, caller = situation.index, situation.utterance.caller
    people = [entity for entity in index.entities.values() if entity.domain == "person"]
    user_id = caller.user_id if caller else None
    own = [
        person
        for person in people
        if user_id is not None
        and (state := index.states.get(person.id)) is not None
        and state.attributes.get("user_id") == user_id
    ]
    speaker = own or (people if len(people) == 1 else [])
    targets = [Target(*each) for each in choose_targets(situation, ("away",), speaker)]
    records = await read_latest_records(situation, targets) if targets else []
    periods = [period for _, record in records for period in record.periods]
    return Span(periods[-1].start, periods[-1].end) if periods else None
