"""A server with a long conversation, an empty one, an error and a waiting approval, to look at the web page.

`python3 -m tests.browser.demo_page` prints the address and the sessions, and runs until Ctrl-C.
"""

import json
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.browser.page_server import PageServer, find_words
from tests.ha.model_server import ModelServer, call_tool, has_result

KEY = "sk-the-key-of-the-page"
TABLE = """Here is the **week** at a glance:

| day | warmest room | °C |
|---|---|---|
| Monday | Living room | 21.9 |
| Tuesday | Living room | 22.4 |
| Wednesday | Office | 23.1 |

1. The office got warm on *Wednesday*.
2. Open the window there in the morning.

```yaml
alias: Cool the office
triggers: [{trigger: time, at: "06:30"}]
```
"""
TOPICS = (
    "What did we say about the boiler? The display showed error F28 at 06:40.",
    "Remember that the cat is called Minka and may not go into the office.",
    "How do I bleed the radiator in the hall?",
    "The dentist is on 24 November at 9:15. What should I prepare?",
    "Explain why the heat pump runs at night.",
    "Which light bulbs fit the kitchen lamps? They are GU10 with 4.5 W.",
)
LONG_ANSWER = (
    "The short answer is yes. Close the valve at the pump, put a cloth below the vent, open the vent with its key "
    "until water comes without air, and close it again. Then check the pressure: it should be between 1.2 and 1.8 bar."
)


def answer(messages: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Answer as the model of the demo: some questions need a tool, one fails, the others get a text."""
    said = find_words(messages).lower()
    if "week" in said:
        return TABLE
    if "unlock" in said or "let the plumber in" in said:
        if has_result(messages):
            return "The front door is unlocked for the plumber."
        return call_tool("call_service", service="lock.unlock", entity_ids=["lock.front_door"])
    if "cosy" in said:
        if has_result(messages):
            return "It is cosy now: the floor lamp is on."
        return call_tool("call_service", service="light.turn_on", entity_ids=["light.floor_lamp"])
    if "plot" in said:
        if has_result(messages):
            return "The plot shows a calm night and a warm afternoon."
        return call_tool("get_history", entity_ids=["sensor.living_room_temperature"], plot=True)
    if "html" in said:
        return 'Here it is: <img src=x onerror="window.hacked=1"> and <script>window.hacked=1</script> as **text**.'
    return f"{LONG_ANSWER} You asked: {said[:60]}"


@dataclass(frozen=True)
class Demo:
    """The server of the demo, and the ids of its sessions, and of a turn, by what they show."""

    server: PageServer
    sessions: dict[str, str]

    def address(self, view: str, session: str | None = None) -> str:
        """Return the address of a view, such as `("window", "long")`."""
        place = f"{view}/{self.sessions[session]}" if session else view
        return f"{self.server.url}/#/{place}"


@contextmanager
def serve_demo(folder: Path) -> Iterator[Demo]:
    with ModelServer(KEY) as model:
        model.answer = answer
        with PageServer(folder, model) as server:
            yield Demo(server, fill(server, model))


def fill(server: PageServer, model: ModelServer) -> dict[str, str]:
    """Hold the conversations of the demo. Return the ids of their sessions, and of a turn, by what they show."""
    window = {"max_tokens": 1200, "evict_to": 0.75}
    sessions = {
        "long": server.start_session(name="Household", window=window),
        "error": server.start_session(name="With an error"),
        "approval": server.start_session(name="The plumber"),
        "empty": server.start_session(),
    }
    for topic in TOPICS * 2:
        server.say(sessions["long"], topic)
    for sentence in (
        "Remember that I like 21 degrees in the living room.",
        "turn on the kitchen light",
        "Is the bedroom window open?",
        "Show me the week as a table",
        "Draw a plot of the living room temperature",
        "Turn off the kitchen light",
    ):
        server.say(sessions["long"], sentence)
    cosy = server.say(sessions["long"], "Please make the living room cosy for a long evening with a book")
    model.answer = lambda messages: (_ for _ in ()).throw(RuntimeError("simulated"))
    server.say(sessions["error"], "Tell me a story about the sea", time_budget_ms=4000)
    model.answer = answer
    server.say(sessions["approval"], "Please let the plumber in by the front door")
    return sessions | {"turn": str(cosy["continuation_id"])}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, serve_demo(Path(folder)) as demo:
        print(json.dumps({"url": demo.server.url, **demo.sessions}), flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
