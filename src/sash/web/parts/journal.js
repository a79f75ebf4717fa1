/** The journal of a turn as a timeline: each step with its time, its share of the whole time, its tokens, and its details. */

import { html, nothing, repeat } from "../vendor/lit.js";
import { formatDuration, getLanguage, t } from "../text.js";
import { SashElement } from "../element.js";
import { describeUsage, makeRows, prettify, renderOutcome } from "./step-list.js";

class Journal extends SashElement {
  static properties = { turn: { attribute: false } };

  render() {
    const { steps, created_at: createdAt } = this.turn;
    const start = Date.parse(createdAt);
    const rows = [{ key: 0, kind: "asked", at: start, blocks: [] }, ...makeRows(steps, createdAt)].map((row) => place(row, start));
    const whole = Math.max(1, ...rows.map((row) => row.from + (row.ms ?? 0)));
    return html`<ol class="journal">${repeat(rows, (row) => row.key, (row) => html`<li class=${row.kind}>${this._renderRow(row, whole)}</li>`)}</ol>`;
  }

  _renderRow(row, whole) {
    const line = renderLine(row, whole);
    if (!row.blocks.length && !row.usage) return html`<div class="journal-line">${line}</div>`;
    return html`<details>
      <summary class="journal-line">${line}</summary>
      <div class="journal-details">
        <p class="small dim">${t("journal.started_after", { time: formatDuration(row.from) })}</p>
        ${row.usage ? html`<p class="small">${describeUsage(row.usage)}</p>` : nothing}
        ${row.blocks.map(([label, text]) => html`<h3>${t(`step.${label}`)}</h3><pre tabindex="0" role="group" aria-label=${t(`step.${label}`)}>${prettify(text)}</pre>`)}
      </div>
    </details>`;
  }
}

/** Add the time at which a step began, and `from`, the milliseconds since the start of the turn. A model call is noted at its end. */
function place(row, start) {
  const began = row.kind !== "tool" && row.ms > 0 ? row.at - row.ms : row.at;
  return { ...row, began, from: Math.max(0, began - start) };
}

function renderLine(row, whole) {
  return html`<time class="dim" datetime=${new Date(row.began).toISOString()}>${formatClock(row.began)}</time>
    <div class="journal-what">
      <b>${t(row.kind === "tool" ? "journal.tool" : row.kind === "asked" ? "journal.asked" : `step.${row.kind}`)}</b>
      ${row.name ? html`<code>${row.name}</code>` : nothing} ${row.action ? renderOutcome(row.action) : nothing}
      ${row.isOpen ? html`<span class="dim">${t("step.running")}</span>` : nothing}
      ${row.brief ? html`<span class="journal-brief dim">${row.brief}</span>` : nothing}
      ${renderSpan(row, whole)}
    </div>
    <span class="journal-number">${row.usage ? t("tokens", { count: row.usage.input_tokens + row.usage.output_tokens }) : nothing}</span>
    <span class="journal-number">${row.ms >= 0 ? formatDuration(row.ms) : nothing}</span>`;
}

/** Draw where in the turn the step took place. */
function renderSpan({ from, ms }, whole) {
  if (!(ms >= 0)) return nothing;
  const share = (value) => `${((100 * value) / whole).toFixed(2)}%`;
  return html`<svg class="span" aria-hidden="true"><rect x=${share(from)} width=${share(ms)} height="100%" /></svg>`;
}

function formatClock(ms) {
  return new Intl.DateTimeFormat(getLanguage(), { timeStyle: "medium" }).format(ms);
}

customElements.define("sash-journal", Journal);
