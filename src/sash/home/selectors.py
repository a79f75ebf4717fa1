"""Checks the arguments of a service against Home Assistant's selectors."""

from typing import Any


def find_problem(selector: dict[str, Any], value: Any) -> str | None:
    """Return the rule that a value breaks, such as "must be a number"; None if the value is valid.

    An unknown selector accepts every value.
    """
    for kind, options in selector.items():
        options = options or {}
        match kind:
            case "number" | "color_temp":
                return _find_number_problem(options, value)
            case "boolean":
                return None if isinstance(value, bool) else "must be true or false"
            case "select":
                return _find_choice_problem(options, value)
            case "color_rgb":
                fits = isinstance(value, list | tuple) and len(value) == 3 and all(map(_is_byte, value))
                return None if fits else "must be three numbers from 0 to 255"
            case "text" | "state" | "time" | "date" | "datetime" | "icon" | "theme":
                many = options.get("multiple") and isinstance(value, list)
                return None if many or isinstance(value, str | int | float) else "must be a text"
    return None


def _find_number_problem(options: dict[str, Any], value: Any) -> str | None:
    low, high = options.get("min"), options.get("max")
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return "must be a number"
    if low is not None and value < low:
        return f"must be at least {low}"
    if high is not None and value > high:
        return f"must be at most {high}"
    return None


def _find_choice_problem(options: dict[str, Any], value: Any) -> str | None:
    known = [o["value"] if isinstance(o, dict) else o for o in options.get("options", ())]
    chosen = value if options.get("multiple") and isinstance(value, list) else [value]
    if options.get("custom_value") or not known or all(choice in known for choice in chosen):
        return None
    return f"must be one of {', '.join(map(str, known))}"


def _is_byte(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 255
