"""Tools: functions that the agent can call, and how to treat a call whose process died."""

import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal, NamedTuple, get_args

import fastjsonschema

from sash.errors import InvalidInput, InvalidText, SashError
from sash.values.continuations import Action, ArtifactRef, ContinuationRequest, TurnCaller
from sash.values.sessions import Session
from sash.values.validation import check_amount, check_label, check_text

Safety = Literal["idempotent", "verify", "unsafe"]

_logger = logging.getLogger(__name__)

# The reason why a call was not made, if the user has denied it.
DENIED_BY_USER = "the user said no"
# The reason why an action was not made, if the policy denies another one of the same sentence.
HELD_BACK = "another part of the request is not allowed"
# The name of the limit that stops an agent which repeats itself without end.
RATE_LIMIT = "max_actions_per_minute"
MAX_RESULT_BYTES = 8 << 10
EXTRACT_CHARS = 1000
# The tools of a turn are made anew for each turn, mostly with the same schemas.
MAX_COMPILED = 512


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The context of a tool call. `key` stays the same if the call is repeated after a crash.

    `keep` stores an artifact and `progress` sends a message to subscribers. `past_actions` yields the
    session's actions, newest first, each with the key of its call. `under_way_since` is when the call was
    planned, if a process died during it. `on_cut_off` takes a function that returns what is known about an
    action so far. It is called if the action is cut off, for example by a cancel, and must not block.
    `caller`, `area` and `language` are those of the user who asked, if known.
    """

    session: Session
    continuation_id: str
    call_id: str
    keep: Callable[[bytes, str, str], Awaitable[ArtifactRef]]
    progress: Callable[[str], None]
    past_actions: Callable[[], AsyncIterator[tuple[str, Action]]]
    under_way_since: datetime | None = None
    on_cut_off: Callable[[Callable[[], "ActionOutcome"]], None] = lambda observe: None
    caller: TurnCaller | None = None
    area: str | None = None
    language: str | None = None

    @property
    def key(self) -> str:
        return f"{self.continuation_id}:{self.call_id}"


@dataclass(frozen=True, slots=True)
class ActionOutcome:
    """The result of an action, with details.

    `verified` says if the effect was observed; None means that it cannot be observed. `before` and `after`
    are the states by entity, for an undo. `undoes` is the key of the call that this one reversed.
    """

    result: Any
    verified: bool | None = None
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)
    undoes: str | None = None


class ServiceUse(NamedTuple):
    """A service that a call uses. `within` is True if another service, such as a script, calls it."""

    service: str
    within: bool = False


Invoke = Callable[[dict[str, Any], ToolContext], Awaitable[Any]]
Uses = Callable[[dict[str, Any], ToolContext], Awaitable[Iterable[ServiceUse]]]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool.

    `safety` decides about a call whose outcome is unknown after a crash: `idempotent` runs it again, `verify`
    calls the tool's `verify` (which returns the result, or None if the call did not happen), `unsafe` never
    runs it again. `action` is True for a tool that changes the home: the policy judges the services that
    `uses` returns, or the tool's name if there are none. In a dry run `preview` describes the effect. Before
    an approval is requested, `already_so` returns the result of a call that would change nothing, or None:
    such a call needs no approval, and is not made. An action may return an `ActionOutcome`. `direct` allows
    calls outside of a turn. `cost` is the price of a call in US dollars. A tool with `is_local` is called by
    intents only: no model sees it or can call it. With `tells_policy`, the model reads the policy of its
    session at the end of the description. A tool with `keeps_artifacts` may store an artifact.
    """

    name: str
    description: str
    input_schema: dict[str, Any]
    invoke: Invoke
    output_schema: dict[str, Any] | None = None
    safety: Safety = "unsafe"
    action: bool = False
    cost: float = 0.0
    verify: Invoke | None = None
    uses: Uses | None = None
    preview: Invoke | None = None
    direct: bool = False
    is_local: bool = False
    already_so: Invoke | None = None
    tells_policy: bool = False
    keeps_artifacts: bool = False

    def __post_init__(self) -> None:
        check_label("a tool's name", self.name)
        if not callable(self.invoke):
            raise InvalidInput(f"tool {self.name} needs a function to invoke")
        if self.safety not in get_args(Safety):
            known = ", ".join(get_args(Safety))
            raise InvalidInput(f"the safety of tool {self.name} must be one of {known}, not {self.safety!r}")
        check_amount(f"the cost of tool {self.name}", self.cost)
        if self.safety == "verify" and self.verify is None:
            raise InvalidInput(f"tool {self.name} has safety 'verify' and needs a verify function")


# Finds the tools of one turn that depend on its session or its caller.
FindTools = Callable[[Session, ContinuationRequest], Awaitable[Iterable[ToolSpec]]]


@dataclass(slots=True)
class ToolRegistry:
    """The tools by name, with compiled schemas. `schemas` is the tool list for a model, in OpenAI form.

    `can_act` is True if a model can call at least one action.
    """

    specs: dict[str, ToolSpec] = field(default_factory=dict)
    schemas: list[dict[str, Any]] = field(default_factory=list)
    names: frozenset[str] = frozenset()
    can_act: bool = False
    _check_input: dict[str, Callable[[Any], Any]] = field(default_factory=dict)
    _check_output: dict[str, Callable[[Any], Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, specs: Iterable[ToolSpec]) -> "ToolRegistry":
        registry = cls()
        for spec in specs:
            registry.register(spec)
        return registry

    def copy(self) -> "ToolRegistry":
        """Return a registry with the same tools, to which others can be added."""
        return replace(
            self,
            specs=dict(self.specs),
            schemas=list(self.schemas),
            _check_input=dict(self._check_input),
            _check_output=dict(self._check_output),
        )

    def tell_policy(self, sentences: str) -> "ToolRegistry":
        """Return a registry whose descriptions end with sentences about the policy, where a tool wants it."""
        telling = {name for name, spec in self.specs.items() if spec.tells_policy}
        if not telling:
            return self
        schemas = [
            _extend_description(schema, sentences) if schema["function"]["name"] in telling else schema
            for schema in self.schemas
        ]
        return replace(self, schemas=schemas)

    def register(self, spec: ToolSpec) -> None:
        """Add a tool. Raise `InvalidInput` if its name is taken or a schema is invalid."""
        if spec.name in self.specs:
            raise InvalidInput(f"there is already a tool {spec.name}: use another name")
        check_input = _compile(spec.name, "input", spec.input_schema)
        if spec.output_schema is not None:
            self._check_output[spec.name] = _compile(spec.name, "output", spec.output_schema)
        self._check_input[spec.name] = check_input
        self.specs[spec.name] = spec
        self.names |= {spec.name}
        if spec.is_local:
            return
        self.can_act = self.can_act or spec.action
        function = {
            "name": spec.name,
            "description": spec.description,
            "parameters": spec.input_schema,
        }
        self.schemas.append({"type": "function", "function": function})

    def arguments(self, spec: ToolSpec, text: str) -> dict[str, Any]:
        """Parse the arguments of a call, given as JSON text, and check them against the tool's schema.

        Raise `InvalidInput` with a message for the model.
        """
        try:
            arguments = json.loads(text or "{}")
            self._check_input[spec.name](arguments)
            if "\\ud" in text:
                check_text(json.dumps(arguments, ensure_ascii=False))
        except fastjsonschema.JsonSchemaValueException as error:
            raise InvalidInput(f"wrong arguments for {spec.name}: {error.message}") from error
        except InvalidText as error:
            raise InvalidInput(f"wrong arguments for {spec.name}: {error.message}") from error
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"the arguments for {spec.name} are not JSON: {error}") from error
        if not isinstance(arguments, dict):
            raise InvalidInput(f"the arguments for {spec.name} must be a JSON object")
        return arguments

    def check_output(self, spec: ToolSpec, result: Any) -> None:
        """Log a result that violates the tool's schema. The result is used, because the call was made."""
        try:
            if check := self._check_output.get(spec.name):
                check(result)
        except fastjsonschema.JsonSchemaValueException as error:
            _logger.warning(
                "the result of tool %s violates its output schema and is used anyway: %s",
                spec.name,
                error.message,
            )


def _extend_description(schema: dict[str, Any], sentences: str) -> dict[str, Any]:
    described = schema["function"]
    return schema | {"function": described | {"description": f"{described['description']} {sentences}"}}


def _compile(name: str, which: str, schema: dict[str, Any]) -> Callable[[Any], Any]:
    try:
        return _compile_text(json.dumps(schema))
    except (fastjsonschema.JsonSchemaDefinitionException, re.error, TypeError, AttributeError) as error:
        raise InvalidInput(f"the {which} schema of tool {name} is invalid: {error}") from error


@lru_cache(MAX_COMPILED)
def _compile_text(schema: str) -> Callable[[Any], Any]:
    check: Callable[[Any], Any] = fastjsonschema.compile(json.loads(schema))
    return check


async def as_text(result: Any, context: ToolContext) -> str:
    """Return a result as text for the model. A large result becomes an artifact, and the text an extract."""
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)
    data = text.encode(errors="replace")
    if len(data) <= MAX_RESULT_BYTES:
        return data.decode()
    kind = "text/plain" if isinstance(result, str) else "application/json"
    short: dict[str, Any] = {"size": len(data), "extract": data.decode()[:EXTRACT_CHARS]}
    try:
        ref = await context.keep(data, kind, context.call_id)
    except SashError as error:
        short["note"] = f"the call was made, but the rest of its result could not be kept: {error.message}"
        return json.dumps(short, ensure_ascii=False)
    short |= {"artifact": ref.id, "note": "the whole result is kept as an artifact"}
    return json.dumps(short, ensure_ascii=False)
