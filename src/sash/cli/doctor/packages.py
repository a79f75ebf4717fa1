"""Which Python and which packages there are, and whether those that the settings need are."""

import platform
from importlib.metadata import PackageNotFoundError, version

from sash import __version__
from sash.app.settings import Settings
from sash.cli.doctor.finding import Finding

# What each part needs, by the extra that brings it.
_ALWAYS = ("pydantic", "tiktoken", "fastjsonschema", "typer", "rich")
_EXTRAS = {
    "server": ("fastapi", "uvicorn", "sse-starlette", "mcp"),
    "home": ("aiohttp", "hassil", "home-assistant-intents"),
    "openai": ("openai", "genai-prices"),
}


def check_packages(settings: Settings | None) -> Finding:
    """Say what is installed, and what is missing."""
    wanted = {"server"}
    if settings is not None and (settings.home_url is not None or settings.home == "demo"):
        wanted.add("home")
    if settings is not None and settings.model is not None:
        wanted.add("openai")
    names = {"": _ALWAYS, **_EXTRAS}
    there = {name: _version(name) for group in names.values() for name in group}
    found = ", ".join(f"{name} {number}" for name, number in there.items() if number is not None)
    found = f"Sash {__version__}, Python {platform.python_version()}, {found}"
    lacking = [extra for extra in wanted if any(there[name] is None for name in _EXTRAS[extra])]
    if lacking:
        return Finding("packages", "wrong", found, f"pip install 'sash[{','.join(sorted(lacking))}]'")
    return Finding("packages", "ok", found)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
