"""What is logged: it stays out of the way of what is printed, unless somebody asks for it."""

import logging

from sash.app.settings import Loaded, Settings
from sash.engine.redaction import redact


class Redacting(logging.Formatter):
    """Takes the secrets out of what is logged, also out of what somebody else has logged."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


FORM = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def log(settings: Settings) -> None:
    """Log to standard error, as the settings say."""
    handler = logging.StreamHandler()
    handler.setFormatter(Redacting(FORM))
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler])


def quiet(loaded: Loaded) -> Settings:
    """Return the settings, and log as they say; a command tells by itself what its user has to know."""
    settings = loaded.settings
    if loaded.origins["log_level"] == "default":
        logging.getLogger().addHandler(logging.NullHandler())
    else:
        log(settings)
    return settings
