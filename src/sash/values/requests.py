"""The input of the runtime's methods, defined once for the library, REST, MCP and the command line."""

import re
from collections.abc import Callable
from dataclasses import asdict, field
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    Strict,
    WithJsonSchema,
    WrapValidator,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue

from sash.errors import InvalidInput
from sash.values.codec import adapter
from sash.values.continuations import TurnCaller
from sash.values.messages import refuse_reserved
from sash.values.sessions import (
    MAX_INSTRUCTIONS_CHARS,
    Budgets,
    Count,
    Flag,
    JsonObject,
    Label,
    ModelConfig,
    SessionPolicy,
    WindowLimits,
)
from sash.values.validated import validated
from sash.values.validation import MAX_NOTE_CHARS, check_attachment, check_message, check_note, whole

MAX_WAIT_MS = 60_000
ENTITY_ID = re.compile(r"^[a-z0-9_]+\.[a-z0-9_]+$")
MAX_TAGS = 16

BusyPolicy = Literal["reject", "enqueue", "interrupt"]

Text = Annotated[str, Strict(), Field(min_length=1)]
Message = Annotated[Text, AfterValidator(check_message)]
Instructions = Annotated[str, Strict(), Field(min_length=1, max_length=MAX_INSTRUCTIONS_CHARS)]
Milliseconds = Annotated[int, Strict(), Field(ge=0, le=86_400_000), BeforeValidator(whole)]
Wait = Annotated[int, Strict(), Field(ge=0, le=MAX_WAIT_MS), BeforeValidator(whole)]
# The schema says the limit, and `check_note` what to do about it.
NoteText = Annotated[Text, AfterValidator(check_note), Field(json_schema_extra={"maxLength": MAX_NOTE_CHARS})]
EntityId = Annotated[str, Strict(), Field(pattern=ENTITY_ID.pattern, max_length=255)]
_TAG = "[0-9A-Za-zÀ-ÖØ-öø-ʯ_:.@+#/-]{1,64}"
Tag = Annotated[str, Strict(), Field(pattern=f"^{_TAG}$")]
# Tags that stand between commas.
TAG_LIST = f"^{_TAG}(,{_TAG}){{0,{MAX_TAGS - 1}}}$"


def _drop_doubles(tags: tuple[str, ...]) -> tuple[str, ...]:
    refuse_reserved(tags)
    return tuple(dict.fromkeys(tags))


Tags = Annotated[tuple[Tag, ...], Field(max_length=MAX_TAGS), AfterValidator(_drop_doubles)]
_WORD = {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,20}$"}
_IMAGE_URL = {"type": "string", "pattern": "^data:image/"}
Attachment = Annotated[
    dict[str, Any],
    AfterValidator(check_attachment),
    WithJsonSchema(
        {
            "description": "An image or a recording, as OpenAI's content part. With `allow_image_urls` an "
            "image may also be a public `https:` or `http:` URL.",
            "type": "object",
            "oneOf": [
                {
                    "properties": {
                        "type": {"const": "image_url"},
                        "image_url": {
                            "anyOf": [
                                _IMAGE_URL,
                                {
                                    "type": "object",
                                    "properties": {"url": _IMAGE_URL, "detail": _WORD},
                                    "required": ["url"],
                                    "additionalProperties": False,
                                },
                            ]
                        },
                    },
                    "required": ["type", "image_url"],
                    "additionalProperties": False,
                },
                {
                    "properties": {
                        "type": {"const": "input_audio"},
                        "input_audio": {
                            "type": "object",
                            "properties": {
                                "data": {"type": "string", "pattern": "^[A-Za-z0-9+/]*={0,2}$"},
                                "format": _WORD,
                            },
                            "required": ["data"],
                            "additionalProperties": False,
                        },
                    },
                    "required": ["type", "input_audio"],
                    "additionalProperties": False,
                },
            ],
        }
    ),
]


@validated(
    kw_only=True,
    example={
        "preferences": {"language": "en"},
        "policy": {"dry_run": True},
    },
)
class StartSession:
    """A session to start. A field that is left out gets the runtime's default.

    `area` is the user's place in the home. An owner has at most one active session of a `name`. Without a
    `window`, the size of the window depends on the model. `instructions` tell the model who it is, instead of
    the runtime's own prompt. The rules of every agent follow them.
    """

    model: ModelConfig | None = None
    budgets: Budgets | None = None
    policy: SessionPolicy | None = None
    window: WindowLimits | None = None
    preferences: JsonObject | None = None
    area: Label | None = None
    name: Label | None = None
    instructions: Instructions | None = None


class _SomeFieldsOf:
    """Annotates a dict with some fields of a class, which checks them. A value of the class gives all."""

    def __init__(self, kind: type) -> None:
        self._kind = kind

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        return handler.generate_schema(Annotated[self._kind, WrapValidator(self._check)])

    def __get_pydantic_json_schema__(self, core: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the schema of the class without its defaults: a field that is left out stays."""
        schema = adapter(self._kind).json_schema()
        for described in schema["properties"].values():
            described.pop("default", None)
        return schema

    def _check(self, given: Any, validate: Callable[[Any], Any]) -> dict[str, Any]:
        checked: dict[str, Any] = asdict(validate(given))
        if isinstance(given, self._kind):
            return checked
        return {name: value for name, value in checked.items() if name in given or to_camel(name) in given}


@validated(
    kw_only=True,
    example={"name": "kitchen", "budgets": {"max_steps": 4}, "preferences": {"language": "de"}},
)
class UpdateSession:
    """Changes of a session. A field that is left out stays as it is, also a field of `policy` for example.

    Null means the same as in a new session: no name, no limit, or the runtime's own model or prompt. An
    object that is null stays as it is. A preference with the value null is deleted. A change of the policy
    needs the scope `act`. A smaller window evicts messages when the next turn ends.
    """

    model: Annotated[dict[str, Any], _SomeFieldsOf(ModelConfig)] | None = None
    budgets: Annotated[dict[str, Any], _SomeFieldsOf(Budgets)] | None = None
    policy: Annotated[dict[str, Any], _SomeFieldsOf(SessionPolicy)] | None = None
    window: Annotated[dict[str, Any], _SomeFieldsOf(WindowLimits)] | None = None
    preferences: JsonObject | None = None
    name: Label | None = field(default_factory=str)
    instructions: Instructions | None = field(default_factory=str)

    @property
    def has_name(self) -> bool:
        """Return True if the name changes. A name that is left out is the empty string."""
        return self.name != ""

    @property
    def has_instructions(self) -> bool:
        """Return True if the instructions change. Those that are left out are the empty string."""
        return self.instructions != ""


@validated(
    kw_only=True,
    example={"message": "Why did the bedroom lights flicker last night?", "idempotency_key": "question-1"},
)
class SendMessage:
    """A message that starts a turn. `stream` announces that the client reads the events of the turn.

    `model` answers only this turn. `attachments` are images and audio as OpenAI's content parts. `metadata`
    is stored with the turn and never shown to a model. `tags` mark the message: `pinned` and `important` keep
    it longer in the window, `ephemeral` less long. `area`, `language` and `caller` belong to this turn only,
    because a session may have many microphones and speakers.
    """

    message: Message
    planner_hints: JsonObject | None = None
    allow_tools: Flag = True
    max_steps: Count | None = None
    time_budget_ms: Milliseconds | None = None
    idempotency_key: Label | None = None
    stream: Flag = False
    model: ModelConfig | None = None
    attachments: tuple[Attachment, ...] = ()
    metadata: JsonObject | None = None
    tags: Tags = ()
    area: Label | None = None
    language: Label | None = None
    caller: TurnCaller | None = None
    busy: BusyPolicy = "reject"


@validated(kw_only=True, example={"message": "Is the front door locked?"})
class Ask:
    """One question, in a session of its own, which is not listed after the answer.

    The session is deleted `continuation_retention_hours` after its end. With `keep` it is an ordinary
    session: it stays active, and can be continued.
    """

    message: Message
    model: ModelConfig | None = None
    budgets: Budgets | None = None
    allow_tools: Flag = True
    stream: Flag = False
    timeout_ms: Wait | None = None
    keep: Flag = False

    @property
    def timeout_s(self) -> float | None:
        """The time to wait for the answer. None means no limit."""
        return None if self.timeout_ms is None else self.timeout_ms / 1000


@validated(kw_only=True, example={"call_id": "call_1", "approved": True})
class Approve:
    """The answer to a tool call that waits for an approval."""

    call_id: Label
    approved: Flag


@validated(kw_only=True, example={"caller": {"user_id": "anna", "user_name": "Anna"}})
class NameCaller:
    """The speaker of a turn, who is named after the turn: "that was Anna"."""

    caller: TurnCaller

    def __post_init__(self) -> None:
        if self.caller.user_id is None and self.caller.user_name is None:
            raise InvalidInput("a caller needs a user_id or a user_name")


@validated(kw_only=True, example={})
class Fork:
    """A copy of a session. With `at`, a continuation id, that turn is the last one of the copy."""

    at: Label | None = None


@validated(kw_only=True, example={"reason": "taking too long"})
class Why:
    """The reason for ending a session or cancelling a turn."""

    reason: Label | None = None


@validated(kw_only=True, example={"language": "en"})
class Undo:
    """A request to undo the last action of a session. `language` is the language of the user.

    `continuation_id` and `call_id` together name the expected action, as `/v1/actions` shows it. Nothing is
    undone if another action is the last one. One of them alone names no action.
    """

    language: Label | None = None
    idempotency_key: Label | None = None
    continuation_id: Label | None = None
    call_id: Label | None = None

    @property
    def expected_key(self) -> str | None:
        """The key of the expected action, or None if any action is expected."""
        if self.continuation_id is None and self.call_id is None:
            return None
        return f"{self.continuation_id}:{self.call_id}"


@validated(kw_only=True, example={"text": "The cat sleeps in the garage."})
class Note:
    """A fact to keep."""

    text: NoteText


@validated(kw_only=True, example={"text": "Answer in one sentence."})
class PinRequest:
    """A text or an entity to pin. Of an entity, every context has the present state."""

    text: NoteText | None = None
    entity_id: EntityId | None = None

    def __post_init__(self) -> None:
        if self.text is None and self.entity_id is None:
            raise InvalidInput("a pin needs a text or an entity_id")


def make_pin_request(words: str) -> PinRequest:
    """Return a request to pin an entity, if `words` are the id of one, or else a text."""
    return PinRequest(entity_id=words) if ENTITY_ID.fullmatch(words) else PinRequest(text=words)


@validated(kw_only=True, example={"preferences": {"language": "de"}})
class Preferences:
    """Preferences to change."""

    preferences: JsonObject


@validated(kw_only=True, example={"tags": ["important", "context:lights"]})
class MessageTags:
    """The tags of a message, instead of those that it has. Tags that only Sash sets stay."""

    tags: Annotated[tuple[Tag, ...], Field(max_length=2 * MAX_TAGS)]


@validated(kw_only=True)
class TagFilter:
    """A message passes if it has one of the tags. Without tags, all messages pass."""

    tags: Annotated[tuple[Tag, ...], Field(max_length=MAX_TAGS)] = ()

    @classmethod
    def of(cls, text: str | None) -> "TagFilter":
        """Read tags that stand between commas."""
        return cls(tags=tuple(filter(None, (tag.strip() for tag in (text or "").split(",")))))


ALL_TAGS = TagFilter()
