"""Records the prompts of a session, and restores them from the records."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sash.engine.context import Context, common_prefix
from sash.engine.prompt_parts import TURN, PartDescriber, RestoredPart, SentPart
from sash.values.messages import MessageEntry
from sash.values.prompts import (
    TOOLS,
    WINDOW,
    PartUse,
    PromptPart,
    PromptRecord,
    SentPrompts,
    hash_json,
    join_ids,
    split_ids,
)

# Parts are dropped with the steps, which are kept for an hour at least. Older knowledge is not relied on.
KNOWN_FOR = timedelta(minutes=30)

# A text that begins like the one before it is stored as the difference.
MIN_KEPT_CHARS = 200

Render = Callable[[MessageEntry], dict[str, Any]]


class PromptRecorder:
    """Records the prompts of one window. It knows which parts this process has stored for the session."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._used_at: datetime | None = None
        self._window_key: str | None = None
        self._covered_count = 0
        self._tools: tuple[list[dict[str, Any]], str] = ([], "")
        self._texts: dict[str, tuple[str, dict[str, Any]]] = {}

    def drop_window(self) -> None:
        """Describe the whole window again, because messages left it or are written in another way."""
        self._window_key, self._covered_count = None, 0

    def record(
        self,
        context: Context,
        messages: Iterable[MessageEntry],
        rendered: Mapping[str, dict[str, Any]],
        render: Render,
        now: datetime,
    ) -> tuple[tuple[PartUse, ...], tuple[PromptPart, ...]]:
        """Return the parts of a context, and those of them that are not stored yet."""
        if self._used_at is None or now - self._used_at > KNOWN_FOR:
            self._known.clear()
            self._texts.clear()
            self.drop_window()
        self._used_at = now
        uses: list[PartUse] = []
        parts: list[PromptPart] = []
        for part in context.parts:
            if part.name == WINDOW:
                made = self._record_window(messages, rendered, render)
                uses.append(PartUse(WINDOW, made.key, len(part.messages)))
            elif part.name == TOOLS:
                made = PromptPart(self._hash_tools(context.tools), tuple(context.tools))
                uses.append(PartUse(TOOLS, made.key))
            else:
                made = self._record_text(part.name, part.messages[0])
                uses.append(PartUse(part.name, made.key))
            if made.key not in self._known:
                self._known.add(made.key)
                parts.append(made)
        return tuple(uses), tuple(parts)

    def _record_text(self, name: str, message: dict[str, Any]) -> PromptPart:
        """Return a part with one message, as the difference from the last text of this name."""
        key = hash_json(message)
        last_key, last = self._texts.get(name, ("", {"content": ""}))
        if key in self._known:
            return PromptPart(key)
        self._texts[name] = (key, message)
        kept = len(common_prefix(last["content"], message["content"]))
        if kept < MIN_KEPT_CHARS:
            return PromptPart(key, (message,))
        return PromptPart(key, (message | {"content": message["content"][kept:]},), last_key, kept)

    def _hash_tools(self, tools: list[dict[str, Any]]) -> str:
        if self._tools[0] is not tools:
            self._tools = (tools, hash_json(*tools))
        return self._tools[1]

    def _record_window(
        self, messages: Iterable[MessageEntry], rendered: Mapping[str, dict[str, Any]], render: Render
    ) -> PromptPart:
        new = list(messages)[self._covered_count :]
        after = self._window_key
        if after is not None and not new:
            return PromptPart(after)
        key = hash_json(after, *(rendered[message.id] for message in new))
        texts = (_find_prefix(rendered[m.id]["content"], render(m)["content"]) for m in new)
        extra = {index: text for index, text in enumerate(texts) if text is not None}
        self._window_key, self._covered_count = key, self._covered_count + len(new)
        return PromptPart(key, after=after, ids=join_ids(m.id for m in new), texts=extra)


@dataclass(frozen=True, slots=True)
class SentPrompt:
    """The messages and tools of one model call. `step_count` is the number of the turn's steps before it.

    `is_exact` is False if the model received something else: a message was amended since, or a secret was
    removed. `parts` are the parts of the prompt, in order.
    """

    step_count: int
    model: str | None
    is_exact: bool
    messages: tuple[dict[str, Any], ...]
    tools: tuple[dict[str, Any], ...]
    parts: tuple[SentPart, ...]


class PromptReader:
    """Restores prompts from their records and from the messages of the transcript."""

    def __init__(self, sent: SentPrompts, messages: Mapping[str, dict[str, Any]]) -> None:
        self._records = sent.records
        self._parts = {part.key: part for part in sent.parts}
        self._messages = messages

    def restore(
        self,
        turn_messages: Callable[[int], Sequence[dict[str, Any]]],
        describer: PartDescriber,
        before: Sequence[RestoredPart] | None,
    ) -> list[SentPrompt]:
        """Return the prompts. `turn_messages` returns the turn's messages after a number of steps.

        `before` are the parts of the session's model call before this turn, or None if unknown.
        """
        prompts = []
        uses: tuple[PartUse, ...] = ()
        for record in self._records:
            uses = record.parts or uses
            own = tuple(turn_messages(record.step_count))
            check = hash_json(*own)
            turn = RestoredPart(
                TURN, (record.check, None), own, is_complete=True, is_exact=check == record.check
            )
            parts = [*map(self._restore_part, uses), turn]
            prompts.append(_make_prompt(record, parts, describer.describe(parts, before)))
            before = parts
        return prompts

    def restore_last(self) -> list[RestoredPart]:
        """Return the parts of the last prompt, without the turn's own messages; empty without prompts."""
        uses = [record.parts for record in self._records if record.parts]
        return list(map(self._restore_part, uses[-1])) if uses else []

    def _restore_part(self, use: PartUse) -> RestoredPart:
        key = (use.key, use.last_count)
        if use.name == WINDOW:
            shown, is_complete, is_same = self._restore_window(use.key)
            body = tuple(shown[len(shown) - (use.last_count or 0) :])
            is_complete &= len(body) == use.last_count
            return RestoredPart(WINDOW, key, body, is_complete, is_same)
        body, is_complete = self._restore_body(use.key)
        return RestoredPart(use.name, key, body, is_complete, hash_json(*body) == use.key)

    def _restore_body(self, key: str) -> tuple[tuple[dict[str, Any], ...], bool]:
        """Return the messages or tools of a part, and whether all of it was found."""
        rests: list[PromptPart] = []
        part = self._parts.get(key)
        while part is not None and part.after is not None:
            rests.append(part)
            part = self._parts.get(part.after)
        body = () if part is None else part.body
        for rest in reversed(rests):
            before = body[0]["content"][: rest.kept_chars] if body else ""
            body = (rest.body[0] | {"content": before + rest.body[0]["content"]},)
        return body, part is not None

    def _restore_window(self, key: str) -> tuple[list[dict[str, Any]], bool, bool]:
        """Return the messages of a window, whether all were found, and whether all are as they were sent."""
        chain: list[PromptPart] = []
        wanted: str | None = key
        while wanted is not None and (part := self._parts.get(wanted)):
            chain.insert(0, part)
            wanted = part.after
        is_complete, is_same, messages = wanted is None, wanted is None, []
        for part in chain:
            ids = split_ids(part.ids)
            found = [
                message | {"content": _add_prefix(part.texts.get(index), message["content"])}
                for index, message_id in enumerate(ids)
                if (message := self._messages.get(message_id))
            ]
            is_complete &= len(found) == len(ids)
            is_same &= hash_json(part.after, *found) == part.key
            messages += found
        return messages, is_complete, is_same


def _make_prompt(
    record: PromptRecord, parts: Sequence[RestoredPart], described: tuple[SentPart, ...]
) -> SentPrompt:
    messages = [message for part in parts if part.name != TOOLS for message in part.body]
    tools = [tool for part in parts if part.name == TOOLS for tool in part.body]
    is_exact = all(part.is_exact for part in parts)
    return SentPrompt(record.step_count, record.model, is_exact, tuple(messages), tuple(tools), described)


def _find_prefix(sent: Any, plain: Any) -> str | None:
    """Return the text that was sent before the content of a message, or None."""
    if sent == plain:
        return None
    if isinstance(sent, str) and isinstance(plain, str):
        return sent.removesuffix(plain)
    return str(sent[0]["text"])


def _add_prefix(prefix: str | None, content: Any) -> Any:
    if prefix is None:
        return content
    return prefix + content if isinstance(content, str) else [{"type": "text", "text": prefix}, *content]
