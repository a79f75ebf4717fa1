"""The services of a domain with their arguments, for a model that wants to call one."""

from difflib import get_close_matches
from typing import Any

from sash.errors import InvalidInput
from sash.home.index import HomeIndex
from sash.home.service_call import MAX_DESCRIPTION_CHARS, is_known_service
from sash.ports.home import Service, ServiceField

MAX_SERVICES = 50
MAX_CHOICES = 10


def describe_services(index: HomeIndex, services: dict[str, Service], domain: str) -> dict[str, Any]:
    """Return the services of a domain as JSON values. Raise `InvalidInput` if it has none."""
    known = {name: service for name, service in services.items() if is_known_service(name, index)}
    wanted = domain.strip().lower().partition(".")[0]
    found = [service for name, service in sorted(known.items()) if service.domain == wanted]
    if not found:
        domains = sorted({service.domain for service in known.values()})
        hint = ", ".join(get_close_matches(wanted, domains, n=3) or domains)
        raise InvalidInput(f"there are no services of {domain!r:.80}; there are {hint}")
    return {"services": [_describe(service) for service in found[:MAX_SERVICES]], "total": len(found)}


def _describe(service: Service) -> dict[str, Any]:
    described: dict[str, Any] = {"service": service.name}
    if service.description:
        described["description"] = service.description[:MAX_DESCRIPTION_CHARS]
    described["takes_entities"] = service.target is not None
    if service.fields:
        described["arguments"] = {name: _describe_field(field) for name, field in service.fields.items()}
    if service.response == "only":
        described["note"] = "it only answers: use query_service"
    return described


def _describe_field(field: ServiceField) -> str:
    """Return a text such as "required, 0 to 100 %: Brightness."."""
    rule = ", ".join(filter(None, ("required" if field.required else "", _describe_values(field.selector))))
    return ": ".join(filter(None, (rule, field.description[:MAX_DESCRIPTION_CHARS])))


def _describe_values(selector: dict[str, Any]) -> str:
    for kind, options in selector.items():
        options = options or {}
        low, high = options.get("min"), options.get("max")
        if kind in ("number", "color_temp") and low is not None and high is not None:
            return (
                f"{low} to {high} {options.get('unit_of_measurement') or options.get('unit') or ''}".rstrip()
            )
        if kind == "boolean":
            return "true or false"
        if kind == "color_rgb":
            return "[red, green, blue]"
        if kind == "select" and (choices := options.get("options")):
            values = [str(choice["value"] if isinstance(choice, dict) else choice) for choice in choices]
            return " | ".join(values[:MAX_CHOICES]) + (" | …" if len(values) > MAX_CHOICES else "")
    return ""
