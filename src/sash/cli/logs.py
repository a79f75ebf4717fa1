"""What is logged: it stays out of the way of what is printed, unless somebody asks for it."""

import logging

from sash.settings import Loaded, Settings

FORM = "%(levelname)s %(name)s: %(message)s"


def quiet(loaded: Loaded) -> Settings:
    """Return the settings, and log as they say; a command tells by itself what its user has to know."""
    settings = loaded.settings
    if loaded.origins["log_level"] == "default":
        logging.getLogger().addHandler(logging.NullHandler())
    else:
        logging.basicConfig(level=settings.log_level.upper(), format=FORM)
    return settings
