/** Turns the messages of a transcript and the parts of a prompt into blocks: turns in the window, turns that slid out, and the parts before them. */

import { t, tValue } from "../text.js";

// The tags that change when a message slides out, in the order of the buttons.
export const KEEPING_TAGS = ["pinned", "important", "ephemeral"];
// The server accepts pins and facts up to this length.
export const MAX_NOTE_CHARS = 400;
// Only the server sets these tags. They say nothing to a person.
const SERVER_TAGS = new Set(["system", "input", "output", "tool_call", "local_intent", "offline_model", "recorded"]);

/** Return messages as turns, in order: [{id, messages, tokens}]. A turn has the messages of one continuation. */
export function groupTurns(messages) {
  const turns = [];
  for (const message of messages) {
    const last = turns.at(-1);
    const isSame = last && (message.continuation_id ? last.id === message.continuation_id : message.role !== "user");
    if (isSame) last.messages.push(message);
    else turns.push({ id: message.continuation_id ?? message.id, messages: [message], tokens: 0 });
    turns.at(-1).tokens += message.token_count;
  }
  return turns;
}

/** Return the text of a message. Images and tool calls are described in words. */
export function readText(message) {
  const parts = typeof message.content === "string" ? [message.content] : (message.content ?? []).map(readPart);
  const calls = (message.tool_calls ?? []).map((call) => `${call.function?.name}(${call.function?.arguments ?? ""})`);
  return [...parts, ...calls].filter(Boolean).join("\n");
}

function readPart(part) {
  return part.text ?? t(part.type === "input_audio" ? "window.recording" : "window.image");
}

/** Return the words that name a turn: its question, or its first text. */
export function readTitle(turn) {
  const question = turn.messages.find((message) => message.role === "user") ?? turn.messages[0];
  return readText(question);
}

export function readAnswer(turn) {
  const answer = turn.messages.findLast((message) => message.role === "assistant" && message.content);
  return answer ? readText(answer) : "";
}

/** Return the tags of a turn or a message that a person has set or understands. */
export function readTags(messages) {
  return [...new Set(messages.flatMap((message) => message.tags))].filter((tag) => !SERVER_TAGS.has(tag));
}

/** Add to each part of a context report the messages that it sends: {name, tokens, stable, messages}. */
export function matchMessages(report) {
  const sent = report.messages ?? [];
  const counts = report.parts.map((part) => (part.name === "tools" || part.name === "window" ? 0 : 1));
  const inWindow = sent.length - counts.reduce((sum, count) => sum + count, 0);
  let start = 0;
  return report.parts.map((part, index) => {
    const count = part.name === "window" ? inWindow : counts[index];
    start += count;
    return { ...part, messages: sent.slice(start - count, start) };
  });
}

/**
 * Return the blocks of all parts that are not turns: [{name, label, hint, tokens, text, part, section}].
 *
 * The memory has a block for each of its sections. `changesTokens` are those of the changes in the house, which the server counts with the window.
 */
export function listFixedBlocks(parts, tools, changesTokens) {
  return parts.flatMap((part) => {
    if (part.name === "window") return changesTokens ? [describeChanges(part, changesTokens)] : [];
    const hint = describeHint(part.name);
    if (!part.sections.length) {
      const text = part.name === "tools" ? tools.map((tool) => tool.function?.name).join(", ") : part.messages.map(readText).join("\n");
      return [{ ...part, label: tValue("window.part", part.name), hint, text, part }];
    }
    return part.sections.map(({ name: section, tokens, text }) => {
      const label = tValue("window.section", section);
      return { name: part.name, section, label, hint, tokens, text, part };
    });
  });
}

function describeChanges(part, tokens) {
  return { name: "house", section: "changes", label: t("window.section.changes"), hint: t("window.changes_hint"), tokens, text: "", part };
}

/** Return the sentence about a part of the prompt, or "" if there is none. */
export function describeHint(name) {
  const hint = tValue("window.part_hint", name);
  return hint === name ? "" : hint;
}

/** Return whether a part has the pins and facts. */
export function isMemory(part) {
  return part.name === "memory" || part.name === "notes";
}

/**
 * Return why a turn slid out: a reason of the last cut, or "earlier". The server keeps the reasons of the last cut only.
 *
 * A turn from before a new start may have left at a cut or at the new start: "earlier_or_reset".
 */
export function findReason(turn, reasons, resetAt) {
  const known = turn.messages.map((message) => reasons.get(message.id)).find(Boolean);
  if (known) return known;
  return resetAt && new Date(turn.messages[0].timestamp) < new Date(resetAt) ? "earlier_or_reset" : "earlier";
}
