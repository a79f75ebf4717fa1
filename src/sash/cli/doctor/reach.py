"""The model and the house: asked once, with little patience."""

import asyncio

from sash.app.assembly import make_home
from sash.app.settings import Settings
from sash.cli.doctor.finding import Finding
from sash.errors import SashError
from sash.models.registry import create_model
from sash.ports.home import Connected, Disconnected, Home, HomeEvent
from sash.ports.model import ModelRequest, collect
from sash.values.clock import SystemClock
from sash.values.sessions import ModelConfig

MODEL_S = 15.0
HOUSE_S = 10.0
# Some models think before they speak, and think within the same limit.
FEW_TOKENS = 64


async def check_model(settings: Settings) -> Finding:
    """Whether the model answers; it is asked for a word, which costs next to nothing."""
    if settings.model is None:
        return Finding("model", "ok", "offline, needs no network", "for a real one set model and api_key")
    name = settings.model
    try:
        model = create_model(settings)
        words = [{"role": "user", "content": "Say: ok"}]
        request = ModelRequest(words, [], ModelConfig(max_output_tokens=FEW_TOKENS))
        try:
            async with asyncio.timeout(MODEL_S):
                await collect(model.stream(request), lambda text: None)
        finally:
            await model.close()
    except TimeoutError:
        return Finding("model", "wrong", f"{name} did not answer within {MODEL_S:g} s", "check api_base")
    except SashError as error:
        return Finding("model", "wrong", error.message, "check model, api_key and api_base")
    return Finding("model", "ok", f"{name} answers")


async def check_home(settings: Settings) -> Finding:
    """Whether the house can be reached, and what it shows."""
    if settings.home_url is None and settings.home == "none":
        return Finding("house", "ok", "none", "for one set home_url and home_token")
    try:
        home = make_home(settings, SystemClock())
        assert home is not None
        async with asyncio.timeout(HOUSE_S):
            layout = await _ask(home)
    except TimeoutError:
        advice = "check home_url, and that Home Assistant runs"
        return Finding("house", "wrong", f"{settings.home_url} did not answer within {HOUSE_S:g} s", advice)
    except SashError as error:
        return Finding("house", "wrong", error.message, "check home_url and home_token")
    if not layout:
        return Finding("house", "note", "it shows no entity", "expose some to Assist in Home Assistant")
    where = settings.home_url or "the demo house"
    return Finding("house", "ok", f"{where}, {layout} exposed entities")


async def _ask(home: Home) -> int:
    """Return how many entities a house shows; the first that goes wrong with it is told."""
    heard: asyncio.Future[HomeEvent] = asyncio.get_running_loop().create_future()

    def hear(event: HomeEvent) -> None:
        if isinstance(event, Connected | Disconnected) and not heard.done():
            heard.set_result(event)

    unsubscribe = home.subscribe(hear)
    await home.open()
    try:
        await heard
        layout = await home.get_layout()
        return sum(entity.exposed for entity in layout.entities)
    finally:
        unsubscribe()
        await home.close()
