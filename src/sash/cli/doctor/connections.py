"""Checks the connections to the model, to the embedder and to the home, with short timeouts."""

import asyncio
from time import monotonic

from sash.app.assembly import make_embedder, make_home
from sash.app.settings import Settings
from sash.cli.doctor.finding import Finding
from sash.engine.similar_messages import EMBED_TIMEOUT_S
from sash.errors import SashError
from sash.models.registry import create_model
from sash.ports.home import Connected, Disconnected, Home, HomeEvent
from sash.ports.model import ModelRequest, collect
from sash.values.clock import SystemClock
from sash.values.sessions import ModelConfig

MODEL_TIMEOUT_S = 15.0
HOME_TIMEOUT_S = 10.0
# More tokens than one word needs, because reasoning tokens count towards the same limit.
MAX_OUTPUT_TOKENS = 64


async def check_model(settings: Settings) -> Finding:
    """Check that the model answers. The request asks for one word, so it costs almost nothing."""
    if settings.model is None:
        return Finding("model", "ok", "offline, needs no network", "for a real one set model and api_key")
    name = settings.model
    try:
        model = create_model(settings)
        messages = [{"role": "user", "content": "Say: ok"}]
        request = ModelRequest(messages, [], ModelConfig(max_output_tokens=MAX_OUTPUT_TOKENS))
        try:
            async with asyncio.timeout(MODEL_TIMEOUT_S):
                await collect(model.stream(request), lambda text: None)
        finally:
            await model.close()
    except TimeoutError:
        return Finding(
            "model", "wrong", f"{name} did not answer within {MODEL_TIMEOUT_S:g} s", "check api_base"
        )
    except SashError as error:
        return Finding("model", "wrong", error.message, "check model, api_key and api_base")
    return Finding("model", "ok", f"{name} answers")


async def check_embedder(settings: Settings) -> Finding:
    """Check that the model of embeddings returns a vector for one word, and soon enough for a look-up."""
    name = settings.embedder_model
    try:
        embedder = make_embedder(settings)
        if embedder is None:
            advice = "to find old messages by their meaning too, set embedder_model"
            return Finding("embedder", "ok", "none, old messages are found by their words", advice)
        try:
            began_at = monotonic()
            async with asyncio.timeout(MODEL_TIMEOUT_S):
                [vector] = await embedder.embed(["ok"])
            seconds = monotonic() - began_at
        finally:
            await embedder.close()
    except TimeoutError:
        found = f"{name} did not answer within {MODEL_TIMEOUT_S:g} s"
        return Finding("embedder", "wrong", found, "check embedder_api_base")
    except SashError as error:
        advice = "check embedder_model, embedder_api_key, embedder_api_base and embedder_dimensions"
        return Finding("embedder", "wrong", error.message, advice)
    if seconds > EMBED_TIMEOUT_S:
        found = (
            f"{name} answers after {seconds:.1f} s, which is too slow: a look-up waits {EMBED_TIMEOUT_S:g} s"
        )
        return Finding(
            "embedder", "wrong", found, "choose a faster model or server, or keep the model loaded"
        )
    return Finding("embedder", "ok", f"{name} answers with {len(vector)} dimensions")


async def check_home(settings: Settings) -> Finding:
    """Check that the home can be reached, and count its exposed entities."""
    try:
        home = make_home(settings, SystemClock())
        if home is None:
            return Finding("house", "ok", "none", "to connect one set home_url and home_token")
        async with asyncio.timeout(HOME_TIMEOUT_S):
            entity_count = await _count_entities(home)
    except TimeoutError:
        found = f"{settings.home_url} did not answer within {HOME_TIMEOUT_S:g} s"
        return Finding("house", "wrong", found, "check home_url, and that Home Assistant runs")
    except SashError as error:
        return Finding("house", "wrong", error.message, "check home_url and home_token")
    if not entity_count:
        return Finding("house", "note", "no entity is exposed", "expose some to Assist in Home Assistant")
    name = settings.home_url or "the demo house"
    return Finding("house", "ok", f"{name}, {entity_count} exposed entities")


async def _count_entities(home: Home) -> int:
    """Connect to a home and return the number of exposed entities. Raise `HomeUnavailable` on failure."""
    first_event: asyncio.Future[HomeEvent] = asyncio.get_running_loop().create_future()

    def on_event(event: HomeEvent) -> None:
        if isinstance(event, Connected | Disconnected) and not first_event.done():
            first_event.set_result(event)

    unsubscribe = home.subscribe(on_event)
    await home.open()
    try:
        await first_event
        layout = await home.get_layout()
        return sum(entity.exposed for entity in layout.entities)
    finally:
        unsubscribe()
        await home.close()
