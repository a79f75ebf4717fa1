/** The steps of a turn as a list: model calls, tool calls with arguments and result, approvals, and others. */

import { html, nothing, repeat } from "../vendor/lit.js";
import { formatCost, formatDuration, formatTime, t } from "../text.js";
import { SashElement } from "../element.js";
import { describeOutcome } from "./action-text.js";
import { OFFLINE } from "./answer-way.js";

const MAX_CHARS = 4000;
const MAX_BRIEF_CHARS = 90;

/**
 * Return the rows of a list of steps: {key, kind, name, brief, blocks, usage, ms, action, isOpen}.
 *
 * A tool call and its result are one row. `start` is the time at which the turn began.
 */
export function makeRows(steps, start) {
  const rows = [];
  const calls = new Map();
  let before = Date.parse(start);
  for (const step of steps) {
    const at = Date.parse(step.ts);
    if (step.type === "tool_call") {
      const row = makeCallRow(step.detail, { key: step.n, at });
      calls.set(step.detail.call_id, row);
      rows.push(row);
    } else if (step.type === "tool_result") {
      const row = calls.get(step.detail.call_id) ?? makeCallRow(step.detail, { key: step.n, at });
      if (!rows.includes(row)) rows.push(row);
      addResult(row, step.detail, at);
    } else {
      noteEvent(step.detail, calls);
      const row = makeOtherRow(step, at - before);
      if (row) rows.push({ key: step.n, at, ...row });
    }
    before = at;
  }
  return rows;
}

/** A call that waits for an approval, or that was interrupted, does not run. */
function noteEvent({ event, call_id: callId }, calls) {
  for (const [id, row] of calls) {
    if (event === "interrupted") row.isOpen = false;
    else if (id === callId && !row.hasResult) row.isOpen = event === "approval";
  }
}

/** Return the rows of tool calls that the transcript keeps, for a turn whose steps are gone. */
export function makeRowsOfCalls(calls) {
  return calls.map((call, index) => {
    const row = makeCallRow(call, { key: index });
    if (call.result !== null) addResult(row, { content: call.result });
    return row;
  });
}

function makeCallRow({ name, arguments: given }, place) {
  return { ...place, kind: "tool", name, brief: summarize(given), blocks: [["arguments", given]], isOpen: true };
}

function addResult(row, { content, action }, at) {
  row.blocks = [...row.blocks.slice(0, 1), ["result", content]];
  row.ms = at === undefined || row.at === undefined ? undefined : at - row.at;
  row.action = action;
  row.isOpen = false;
  row.hasResult = true;
}

function makeOtherRow({ type, detail }, ms) {
  if (type === "plan") {
    if (!detail.usage && !detail.content) return null;
    const blocks = detail.content ? [["text", detail.content]] : [];
    return { kind: detail.usage ? "model" : "plan", usage: findPaid(detail.usage), ms: detail.usage ? ms : undefined, blocks };
  }
  if (type === "retrieval") return { kind: "recalled", brief: describeReason(detail), blocks: [["text", detail.text]] };
  if (type === "error") return { kind: "failed", brief: detail.message, blocks: [] };
  if (type === "summary") return makeEndRow(detail, ms);
  switch (detail.event) {
    case "told":
      return { kind: "told", blocks: [["text", detail.text]] };
    case "sent_back":
      return { kind: "sent_back", usage: findPaid(detail.usage), ms, blocks: [["text", detail.content]] };
    case "approval_requested":
      return { kind: "approval_requested", brief: detail.reason, blocks: [["would", JSON.stringify(detail.would)]] };
    case "approval":
      return { kind: detail.approved ? "approved" : "refused", blocks: [] };
    case "interrupted":
      return { kind: "interrupted", brief: detail.message ?? "", blocks: [] };
    default:
      return { kind: "other", brief: detail.event ?? type, blocks: [["text", JSON.stringify(detail)]] };
  }
}

/** Return why old messages were recalled: the words that were found, or what else they were found by. */
function describeReason({ query, found_words: found, reason }) {
  return reason === "meaning" || reason === "time" ? t(`step.recalled_by_${reason}`) : (found ?? query).join(", ");
}

/** Return the usage of a model call, or undefined if it has no tokens: nobody pays for the offline model. */
function findPaid(usage) {
  return usage && usage.model !== OFFLINE ? usage : undefined;
}

function makeEndRow(detail, ms) {
  if (detail.recorded) return { kind: "recorded", blocks: [] };
  if (detail.amended) return { kind: "amended", blocks: [] };
  if (detail.status === "completed") return { kind: "answered", usage: findPaid(detail.usage), ms: detail.usage ? ms : undefined, blocks: [] };
  return { kind: detail.status, brief: detail.reason, blocks: [] };
}

class StepList extends SashElement {
  static properties = { rows: { attribute: false } };

  render() {
    return html`<ol class="steps">
      ${repeat(this.rows ?? [], (row) => row.key, (row) => html`<li class="step ${row.kind}">${this._renderRow(row)}</li>`)}
    </ol>`;
  }

  _renderRow(row) {
    if (!row.blocks.length) return html`<div class="step-line">${this._renderLine(row)}</div>`;
    return html`<details>
      <summary class="step-line">${this._renderLine(row)}</summary>
      ${row.blocks.map(([label, text]) => html`<p class="dim small">${t(`step.${label}`)}</p><pre class="small">${cut(prettify(text))}</pre>`)}
    </details>`;
  }

  _renderLine(row) {
    return html`<span class="step-name">${row.kind === "tool" ? html`<code>${row.name}</code>` : t(`step.${row.kind}`)}</span>
      ${row.brief ? html`<span class="step-brief dim">${row.brief}</span>` : nothing}
      ${row.action ? renderOutcome(row.action) : nothing}
      ${row.usage ? html`<span class="dim" title=${describeUsage(row.usage)}>${t("tokens", { count: row.usage.input_tokens + row.usage.output_tokens })}</span>` : nothing}
      ${row.isOpen ? html`<span class="dim">${t("step.running")}</span>` : nothing}
      ${row.ms >= 0 ? html`<time class="dim" title=${row.at ? formatTime(row.at) : nothing}>${formatDuration(row.ms)}</time>` : nothing}`;
  }
}

export function renderOutcome(action) {
  const { tone, words } = describeOutcome(action);
  return html`<span class="badge ${tone}">${words}</span>`;
}

/** Return the model, the tokens and the costs of a model call as a sentence. */
export function describeUsage({ model, input_tokens: input, cached_tokens: cached, output_tokens: output, cost_usd: cost, estimated }) {
  return t(estimated ? "step.usage_estimated" : "step.usage", { model, input, cached, output, cost: formatCost(cost) });
}

/** Return the values of the arguments on one line, such as "light.turn_on, light.floor_lamp". */
function summarize(text) {
  let line = text ?? "";
  try {
    line = listValues(JSON.parse(line)).join(", ");
  } catch {
    // A model may write arguments that are not JSON.
  }
  return line.length > MAX_BRIEF_CHARS ? `${line.slice(0, MAX_BRIEF_CHARS)}…` : line;
}

function listValues(value) {
  if (value === null || value === undefined) return [];
  if (typeof value === "object") return Object.entries(value).flatMap(([key, each]) => (each === true ? [key] : listValues(each)));
  return [String(value)];
}

/** Return JSON with one value on each line, and another text as it is. */
export function prettify(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text ?? "";
  }
}

function cut(text) {
  return text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS)}\n${t("step.cut", { count: text.length - MAX_CHARS })}` : text;
}

customElements.define("sash-step-list", StepList);
