/** Turns the messages of a transcript and the parts of a prompt into blocks: turns in the window, turns that slid out, the next cut. */

import { t, tValue } from "../text.js";

// The tags that change when a message slides out, in the order of the buttons.
export const KEEPING_TAGS = ["pinned", "important", "ephemeral"];
// The server accepts pins and facts up to this length.
export const MAX_NOTE_CHARS = 400;
// Only the server sets these tags. They say nothing to a person.
const SERVER_TAGS = new Set(["system", "input", "output", "tool_call", "local_intent", "recorded"]);
// The headings of the memory part of a prompt, by the name of the section.
const MEMORY_SECTIONS = {
  "Where the user is": "place",
  "What the user prefers": "preferences",
  "Always keep in mind": "pins",
  "What is known": "facts",
  "Earlier turns, summarised": "summary",
  "Earlier turns, shortened": "digest",
};

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

/**
 * Return the ids of the messages that slide out at the next cut, if that turn is as small as possible.
 *
 * This follows the rules of the server: `ephemeral` messages go first and `important` ones last, `pinned` and
 * system messages stay, and a tool call goes together with its results.
 */
export function findNextCut(kept, limits) {
  if (!limits.max_tokens) return findNextTurns(kept, limits);
  const groups = groupCalls(kept);
  const stays = new Set(groups.filter((group) => isKept(group, limits)));
  for (const group of [...stays]) {
    // A pinned answer keeps its question.
    const question = groups.find((each) => each[0].role === "user" && isSameTurn(each[0], group[0]));
    if (group[0].role === "assistant" && question) stays.add(question);
  }
  let surplus = limits.max_tokens + 1 - limits.max_tokens * limits.evict_to;
  const out = new Set();
  const queue = groups.filter((group) => !stays.has(group)).sort((one, other) => rank(one) - rank(other));
  for (const group of queue) {
    if (surplus <= 0) break;
    for (const message of group) {
      out.add(message.id);
      surplus -= message.token_count;
    }
  }
  return dropLeadingAnswers(groups, stays, out);
}

/** Return the messages of the oldest turns, if the window is limited by turns only. */
function findNextTurns(kept, limits) {
  if (!limits.max_turns) return new Set();
  const count = limits.max_turns + 1 - Math.floor(limits.max_turns * limits.evict_to);
  const turns = groupTurns(kept).filter((turn) => !isKept(turn.messages, limits));
  const queue = turns.sort((one, other) => rank(one.messages) - rank(other.messages));
  return new Set(queue.slice(0, count).flatMap((turn) => turn.messages.map((message) => message.id)));
}

/** Without its question an answer at the beginning slides out, too. */
function dropLeadingAnswers(groups, stays, out) {
  for (const group of groups) {
    if (group[0].role === "system" || out.has(group[0].id)) continue;
    if (group[0].role === "user" || stays.has(group)) break;
    for (const message of group) out.add(message.id);
  }
  return out;
}

function groupCalls(messages) {
  const groups = [];
  for (const message of messages) {
    if (message.role === "tool" && groups.length) groups.at(-1).push(message);
    else groups.push([message]);
  }
  return groups;
}

function hasTag(group, tag) {
  return group.some((message) => message.tags.includes(tag));
}

function isKept(group, limits) {
  return hasTag(group, "pinned") || (group[0].role === "system" && limits.preserve_system);
}

function isSameTurn(one, other) {
  return one.continuation_id !== null && one.continuation_id === other.continuation_id;
}

function rank(group) {
  if (hasTag(group, "important")) return 2;
  return hasTag(group, "ephemeral") ? 0 : 1;
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
 * Split the memory part into pins, facts, digest and so on: [{name, tokens, text}].
 *
 * The server counts the part as a whole, so each section gets a share by its length. The shares add up.
 */
export function splitMemory(part) {
  const text = part.messages[0]?.content ?? "";
  const headings = Object.keys(MEMORY_SECTIONS).join("|");
  const pieces = text.split(new RegExp(`^(${headings}):\n`, "m"));
  const sections = [];
  for (let index = 1; index < pieces.length; index += 2) {
    sections.push({ name: MEMORY_SECTIONS[pieces[index]], text: pieces[index + 1].trim() });
  }
  const length = sections.reduce((sum, each) => sum + each.text.length, 0);
  let rest = part.tokens;
  sections.forEach((section, index) => {
    const isLast = index === sections.length - 1;
    section.tokens = isLast ? rest : Math.round((part.tokens * section.text.length) / length);
    rest -= section.tokens;
  });
  return sections;
}

/**
 * Return the blocks of all parts that are not turns: [{name, label, hint, tokens, text, part, section, isShare}].
 *
 * The memory has a block for each of its sections. `isShare` tells that the tokens are a share by length.
 * `changesTokens` are those of the changes in the house, which the server counts with the window.
 */
export function listFixedBlocks(parts, tools, changesTokens) {
  return parts.flatMap((part) => {
    if (part.name === "window") return changesTokens ? [describeChanges(part, changesTokens)] : [];
    const sections = isMemory(part) ? splitMemory(part) : [];
    const hint = describeHint(part.name);
    if (!sections.length) {
      const text = part.name === "tools" ? tools.map((tool) => tool.function?.name).join(", ") : part.messages.map(readText).join("\n");
      return [{ ...part, label: tValue("window.part", part.name), hint, text, part }];
    }
    return sections.map(({ name: section, tokens, text }) => {
      const label = tValue("window.section", section);
      return { name: part.name, section, label, hint, tokens, text, part, isShare: sections.length > 1 };
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
