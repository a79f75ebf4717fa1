/** The model calls of a turn: the parts of each prompt by origin, what differs, its bill, and the exact text. */

import { html, nothing } from "../vendor/lit.js";
import { formatCost, formatNumber, formatShare, t, tValue } from "../text.js";
import { SashElement } from "../element.js";
import { OFFLINE } from "./answer-way.js";
import { prettify } from "./step-list.js";
import { findOrigin } from "./token-bar.js";

/** Return the bills of the model calls in the steps, in order: those of lost calls come before their step. */
export function findBills(steps) {
  return steps.flatMap(({ n, detail }) => [...(detail.lost ?? []), detail.usage].filter(Boolean).map((bill) => ({ n, ...bill })));
}

/** Draw the prompts of a turn. `prompts` is undefined while they are read. */
export function renderPrompts(turn, prompts) {
  if (prompts === undefined) return html`<p class="dim">${t("loading")}</p>`;
  if (!prompts.length) return html`<p class="dim">${t("card.prompts_gone")}</p>`;
  return prompts.map((prompt, index) => renderPrompt(turn, prompts, index));
}

function renderPrompt(turn, prompts, index) {
  const prompt = prompts[index];
  const end = prompts[index + 1]?.step_count ?? Infinity;
  const bill = findBills(turn.steps).findLast((each) => each.n > prompt.step_count && each.n <= end);
  return html`<div class="prompt">
    ${prompts.length > 1 ? html`<h4>${t("card.call", { number: index + 1, count: prompts.length })}</h4>` : nothing}
    ${prompt.parts?.length
      ? html`<sash-token-bar .parts=${prompt.parts}></sash-token-bar>
          <p class="small dim">${describeCount(prompt.parts)}</p>
          <p class="small">${describeChanges(prompt.parts)}</p>`
      : nothing}
    ${prompts.length > 1 && bill && bill.model !== OFFLINE ? html`<p class="small dim">${describeBill(bill)}</p>` : nothing}
    <sash-exact-prompt .prompt=${prompt}></sash-exact-prompt>
  </div>`;
}

function describeCount(parts) {
  if (parts.some((part) => part.tokens === null)) return t("card.count_partial");
  return t("card.count", { count: parts.reduce((sum, part) => sum + part.tokens, 0) });
}

/** Say which parts are not the same as in the session's model call before. */
function describeChanges(parts) {
  if (parts.every((part) => part.change === null || part.name === "turn")) return t("card.change_unknown");
  const changes = new Map();
  for (const { name, change } of parts) changes.set(findOrigin(name), joinChanges(changes.get(findOrigin(name)), change));
  const named = (wanted) => [...changes].filter(([, change]) => change === wanted).map(([origin]) => t(`origin.${origin}`));
  const words = ["same", "extended", "changed", "new"].map((change) => [change, named(change)]).filter(([, names]) => names.length);
  return words.map(([change, names]) => t(`card.change_${change}`, { names: names.join(", ") })).join(" ");
}

/** Return the change of two parts of the same origin: one that is the same and one that is new are longer. */
function joinChanges(one, two) {
  if (one === undefined || one === two) return two;
  return [one, two].includes("changed") ? "changed" : "extended";
}

function describeBill(bill) {
  const cached = bill.estimated || !bill.input_tokens ? null : bill.cached_tokens / bill.input_tokens;
  return t("card.bill", {
    model: bill.model,
    input: formatNumber(bill.input_tokens),
    cached: formatShare(cached),
    output: formatNumber(bill.output_tokens),
    cost: formatCost(bill.cost_usd),
  });
}

/** The exact text of a prompt. It may be long, so it is drawn only while it is open. */
class ExactPrompt extends SashElement {
  static properties = {
    prompt: { attribute: false },
    _isOpen: { state: true },
  };

  render() {
    const { prompt } = this;
    return html`<details class="exact small" @toggle=${(event) => (this._isOpen = event.currentTarget.open)}>
      <summary>${t("card.exact")}</summary>
      ${prompt.is_exact ? nothing : html`<p class="warn">${t("card.not_exact")}</p>`}
      ${this._isOpen ? listTexts(prompt).map(([label, text]) => html`<p class="dim">${label}</p><pre>${text}</pre>`) : nothing}
    </details>`;
  }
}

/** Return the tools and the messages of a prompt: [[label, text]]. */
function listTexts({ messages, tools }) {
  const blocks = messages.map((message) => {
    const text = typeof message.content === "string" ? message.content : JSON.stringify(message.content, null, 2);
    const calls = message.tool_calls?.length ? `\n${JSON.stringify(message.tool_calls, null, 2)}` : "";
    return [tValue("card.role", message.role), `${prettify(text)}${calls}`];
  });
  if (tools.length) blocks.unshift([t("card.tools", { count: tools.length }), JSON.stringify(tools, null, 2)]);
  return blocks;
}

customElements.define("sash-exact-prompt", ExactPrompt);
