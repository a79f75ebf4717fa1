"""Checks that the packages which the settings need are installed."""

import platform
from importlib.metadata import PackageNotFoundError, version

from sash import __version__
from sash.app.settings import Settings
from sash.cli.doctor.finding import Finding
from sash.models.registry import find_provider

_CORE_PACKAGES = ("pydantic", "tiktoken", "fastjsonschema", "typer", "rich")
_EXTRA_PACKAGES = {
    "server": ("fastapi", "uvicorn", "sse-starlette", "mcp"),
    "home": ("aiohttp", "hassil", "home-assistant-intents"),
    "openai": ("openai", "genai-prices"),
}


def check_packages(settings: Settings | None) -> Finding:
    """Return a finding with the installed versions, and with the extras that are missing."""
    needed = {"server"}
    if settings is not None and (settings.home_url is not None or settings.home == "demo"):
        needed.add("home")
    if settings is not None and settings.model is not None:
        provider, _ = find_provider(settings.model)
        needed.add(provider.extra)
    if settings is not None and settings.embedder_model is not None:
        needed.add("openai")
    packages = (*_CORE_PACKAGES, *(name for extra in _EXTRA_PACKAGES.values() for name in extra))
    versions = {name: _installed_version(name) for name in packages}
    installed = ", ".join(f"{name} {number}" for name, number in versions.items() if number is not None)
    found = f"Sash {__version__}, Python {platform.python_version()}, {installed}"
    missing = [extra for extra in needed if any(versions[name] is None for name in _EXTRA_PACKAGES[extra])]
    if missing:
        return Finding("packages", "wrong", found, f"pip install 'sash[{','.join(sorted(missing))}]'")
    return Finding("packages", "ok", found)


def _installed_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
