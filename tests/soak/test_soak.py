"""The storm of `dev.py soak` runs, and its checks find everything that is lost or doubled."""

import pytest

from tests.soak.checks import Verdict, check_home, check_session
from tests.soak.client import Job, Told
from tests.soak.jobs import (
    DIM,
    NOTIFY,
    TALK,
    SimulatedHome,
    brightness_of,
    light_of,
    make_answer,
    make_message,
)
from tests.soak.storm import Plan, run_storm


@pytest.mark.parametrize("store", ["sqlite", "files"])
async def test_a_short_storm_loses_and_doubles_nothing(store):
    seen = []
    plan = Plan(store, sessions=2, kills=3, interval_s=1.0, seed=3)
    verdict, progress = await run_storm(plan, lambda progress: seen.append(progress.kills))
    assert (verdict.lost, verdict.doubled, verdict.wrong) == ([], [], [])
    assert progress.kills == seen[-1] == 3
    assert verdict.turns > 0
    assert verdict.events > verdict.turns


class World:
    """A session of three completed jobs in which nothing is lost or doubled."""

    def __init__(self):
        self.home, self.told = SimulatedHome(1), Told(preference=3)
        self.messages, self.events = [], []
        for number, kind in enumerate((TALK, NOTIFY, DIM), 1):
            job_id = f"0-{number}"
            self.told.requested[job_id] = kind
            self.told.jobs[job_id] = Job(kind, f"turn {number}", "completed", make_answer(job_id))
            self.add("user", make_message(job_id, kind))
            if kind != TALK:
                self.add("tool", "done", f"call-{job_id}")
            self.add("assistant", make_answer(job_id))
            event = {"type": "final", "continuation_id": f"turn {number}", "payload": {}}
            self.events.append((number, event))
        self.told.events = list(self.events)
        self.home.notified["0-2"] += 1
        self.home.dimmed[light_of(0), brightness_of(3)] += 1

    def add(self, role, content, tool_call_id=None):
        position = len(self.messages) + 1
        self.messages.append(
            {
                "id": f"message {position}",
                "role": role,
                "content": content,
                "tool_call_id": tool_call_id,
                "position": position,
            }
        )

    def check(self, preference=3):
        verdict = Verdict()
        check_session(verdict, 0, self.told, self.messages, self.events, preference)
        check_home(verdict, 0, self.told, self.messages, self.home)
        return verdict


def find(verdict):
    return len(verdict.lost), len(verdict.doubled), len(verdict.wrong)


def test_the_checks_accept_a_session_in_which_all_is_well():
    assert find(World().check()) == (0, 0, 0)


def test_the_checks_find_a_lost_and_a_doubled_message():
    world = World()
    del world.messages[-2:]
    assert World.check(world).lost == ["answer to 0-3"]
    world.add("assistant", make_answer("0-1"))
    assert world.check().doubled == ["answer to 0-1 (2 times)"]
    world.messages.pop(0)
    assert "message 'Job 0-1: talk'" in world.check().lost
    assert world.check().wrong == ["session 0: the positions of the messages have gaps"]


def test_the_checks_find_a_lost_a_doubled_and_a_changed_event():
    world = World()
    world.told.events.pop()
    world.told.events.append(world.told.events[0])
    verdict = world.check()
    assert verdict.lost == ["session 0: event 3 (final)"]
    assert verdict.doubled == ["session 0: event 1 (final) (2 times)"]
    world = World()
    world.events.pop()
    assert world.check().lost == ["session 0: received event 3 is not stored", "final event of 0-3"]
    world = World()
    world.events[0] = (1, world.events[0][1] | {"payload": {"other": True}})
    assert world.check().wrong == ["session 0: event 1 has changed"]


def test_the_checks_find_lost_and_doubled_actions():
    world = World()
    world.home.notified["0-2"] = 0
    world.home.dimmed[light_of(0), brightness_of(3)] = 2
    verdict = world.check()
    assert verdict.lost == ["notification 0-2"]
    assert verdict.doubled == [f"light 0 to {brightness_of(3)} (2 times)"]


@pytest.mark.parametrize(
    ("result", "calls", "found"),
    [
        ("outcome unknown: it may have been done", 0, (0, 0, 0)),
        ("outcome unknown: it may have been done", 1, (0, 0, 0)),
        ("outcome unknown: it may have been done", 2, (0, 1, 0)),
        ("not done: too many actions", 0, (0, 0, 0)),
        ("not done: too many actions", 1, (0, 1, 0)),
        ("failed: the home is still connecting", 1, (0, 1, 0)),
    ],
)
def test_an_action_agrees_with_its_result(result, calls, found):
    world = World()
    world.messages[3]["content"] = result
    world.home.notified["0-2"] = calls
    assert find(world.check()) == found


def test_the_checks_find_a_turn_that_has_not_ended_and_a_lost_preference():
    world = World()
    world.told.jobs["0-1"].status = "running"
    assert world.check().wrong == ["0-1 has the status 'running'"]
    world = World()
    assert world.check(preference=2).lost == ["session 0: preference 3, found 2"]


def test_the_checks_find_an_answer_that_differs():
    world = World()
    world.told.jobs["0-1"].answer = "Something else."
    assert world.check().wrong == ["the answer to 0-1 is 'Something else.'"]
