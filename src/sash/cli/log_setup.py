"""Logging of the commands, to standard error and without secrets."""

import logging

from sash.app.settings import Settings
from sash.app.settings_loader import LoadedSettings
from sash.engine.redaction import redact

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class RedactingFormatter(logging.Formatter):
    """Removes secrets from log lines, also from those of other libraries."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


def log_to_stderr(settings: Settings) -> None:
    """Log to standard error at the level of the settings.

    At debug level other libraries log whole messages and model requests. So they log at info level or above.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(RedactingFormatter(LOG_FORMAT))
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    logging.basicConfig(level=max(level, logging.INFO), handlers=[handler])
    logging.getLogger("sash").setLevel(level)


def log_if_configured(loaded: LoadedSettings) -> Settings:
    """Log to standard error only if `log_level` is set, and return the settings.

    By default there is no log, because commands print everything that their user needs to know.
    """
    if loaded.origins["log_level"] == "default":
        logging.getLogger().addHandler(logging.NullHandler())
    else:
        log_to_stderr(loaded.settings)
    return loaded.settings
