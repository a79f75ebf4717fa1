"""Checks of the parts that `sash serve` creates at start: session defaults, vocabulary, tracing."""

from sash.app.assembly import make_defaults
from sash.app.settings import Settings
from sash.cli.doctor.finding import Finding
from sash.errors import SashError


def check_configured_parts(settings: Settings) -> list[Finding]:
    """Return findings that say whether the configured parts can be created."""
    found = [_check_session_defaults(settings), _describe_retention(settings)]
    if settings.vocabulary is not None and (settings.home_url or settings.home != "none"):
        found.append(_check_vocabulary(settings))
    if settings.otel_endpoint is not None:
        found.append(_check_tracing(settings.otel_endpoint))
    return found


def _check_session_defaults(settings: Settings) -> Finding:
    try:
        policy = make_defaults(settings).policy
    except SashError as error:
        return Finding("sessions", "wrong", error.message)
    if not policy.allow_actuation:
        advice = "to let them, set allow_actuation = true and allowlisted_services"
        return Finding("sessions", "ok", "agents may not control the house", advice)
    if not policy.allowlisted_services:
        advice = "set allowlisted_services to the services that agents may use: light, switch.turn_off, …"
        return Finding("sessions", "note", "actions are on, but the allowlist is empty", advice)
    services = (
        "all services" if "*" in policy.allowlisted_services else ", ".join(policy.allowlisted_services)
    )
    return Finding("sessions", "ok", f"agents may use {services}")


def _describe_retention(settings: Settings) -> Finding:
    """Say how long data is kept."""
    days, hours = settings.transcript_retention_days, settings.continuation_retention_hours
    transcripts = (
        "transcripts are kept until you delete them"
        if days is None
        else f"ended and expired sessions are deleted after {days:g} days"
    )
    return Finding(
        "retention",
        "ok",
        f"{transcripts}; the steps of a turn, and the sessions of `sash ask`, are deleted {hours:g} hours "
        "after their end, except what `undo` needs; a session expires after "
        f"{settings.session_idle_days:g} days without a change",
    )


def _check_vocabulary(settings: Settings) -> Finding:
    try:
        from sash.intents.vocabulary import Vocabulary

        assert settings.vocabulary is not None
        Vocabulary.load(settings.vocabulary)
    except ImportError as error:
        return Finding("vocabulary", "wrong", str(error), "pip install 'sash[home]'")
    except SashError as error:
        return Finding("vocabulary", "wrong", error.message)
    return Finding("vocabulary", "ok", f"{settings.vocabulary} was read")


def _check_tracing(endpoint: str) -> Finding:
    try:
        from sash.server.tracing import Tracing

        Tracing(endpoint).close()
    except ImportError as error:
        return Finding("spans", "wrong", str(error), "pip install 'sash[server,otel]'")
    except SashError as error:
        return Finding("spans", "wrong", error.message)
    return Finding("spans", "ok", f"sent to {endpoint}")
