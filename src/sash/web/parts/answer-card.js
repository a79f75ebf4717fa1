/** The card of an answer: what was heard, which way it went and why, what was done, and what it cost. */

import { html, nothing } from "../vendor/lit.js";
import { formatDuration, formatMoment, formatNumber, formatShare, t } from "../text.js";
import { SashElement } from "../element.js";
import { listChanges, nameAction } from "./action-text.js";
import { explainWay, findResult, OFFLINE } from "./answer-way.js";
import { findBills, renderPrompts } from "./prompt-view.js";
import { formatSpent } from "./spent.js";
import { renderOutcome } from "./step-list.js";

class AnswerCard extends SashElement {
  static properties = {
    connection: { attribute: false },
    turnId: { attribute: false },
    /** The owner of the session. */
    owner: { attribute: false },
    _turn: { state: true },
    _prompts: { state: true },
    _problem: { state: true },
  };

  firstUpdated() {
    this.querySelector("dialog").showModal();
    this._load();
  }

  async _load() {
    const path = `v1/continuations/${encodeURIComponent(this.turnId)}`;
    try {
      this._turn = await this.connection.get(path);
      this._prompts = this._turn.stats?.model_calls === 0 ? [] : (await this.connection.get(`${path}/prompts`)).prompts;
    } catch (error) {
      this._problem = error.message;
    }
  }

  render() {
    return html`<dialog class="answer-card" aria-labelledby="card-title" @close=${this._onClose} @click=${this._onClick}>
      <header class="spread">
        <h2 id="card-title">${t("card.title")}</h2>
        <button class="plain" aria-label=${t("close")} @click=${() => this.querySelector("dialog").close()}>×</button>
      </header>
      ${this._problem ? html`<p class="error" role="alert">${this._problem}</p>` : nothing}
      ${this._turn ? this._renderTurn(this._turn) : this._problem ? nothing : html`<p class="dim">${t("loading")}</p>`}
    </dialog>`;
  }

  _onClose(event) {
    event.stopPropagation();
    this.dispatchEvent(new CustomEvent("close"));
  }

  /** Close on a click beside the card. */
  _onClick(event) {
    if (event.target === event.currentTarget) event.target.close();
  }

  _renderTurn(turn) {
    const sent = turn.steps.some((step) => step.detail.usage?.model === OFFLINE) ? "card.would_sent" : "card.sent";
    return html`
      ${section("card.heard", html`<blockquote>${turn.request.message}</blockquote>${renderAsker(turn, this.owner)}`)}
      ${section("card.way", html`<ul class="ways">${explainWay(turn).map((way) => html`<li class=${way.tone ?? ""}>${way.words}</li>`)}</ul>`)}
      ${section("card.actions", renderActions(turn))}
      ${section("card.cost", renderNumbers(turn))}
      ${turn.stats?.model_calls === 0 ? nothing : section(sent, renderPrompts(turn, this._prompts))}
      <p><a href="#/turn/${encodeURIComponent(this.turnId)}" @click=${() => this.querySelector("dialog").close()}>${t("window.open_timeline")}</a></p>
    `;
  }
}

function section(key, content) {
  return html`<section><h3>${t(key)}</h3>${content}</section>`;
}

/** Say who asked, when, from which place and in which language. */
function renderAsker({ request, created_at: at }, owner) {
  const { caller, area, language } = request;
  const name = caller?.user_name ?? caller?.user_id;
  const facts = [
    ["card.who", name ? t(`card.certainty_${caller.certainty}`, { name }) : t("card.who_owner", { owner: owner ?? t("unknown") })],
    ["card.when", formatMoment(at)],
    ["card.area", area ?? t("unknown")],
    ["card.device", caller?.device_id ?? t("card.no_device")],
    ["card.language", language ?? t("card.language_default")],
  ];
  return renderFacts(facts);
}

function renderFacts(facts) {
  return html`<dl class="facts">
    ${facts.map(([key, value]) => html`<div data-fact=${key}><dt>${t(key)}</dt><dd>${value}</dd></div>`)}
  </dl>`;
}

function renderActions({ response, steps }) {
  const actions = response?.actions ?? [];
  if (!actions.length) return html`<p class="dim">${t("card.no_actions")}</p>`;
  return html`<ul class="card-actions">
    ${actions.map(
      (action) => html`<li>
        <div class="row"><code>${nameAction(action)}</code>${renderOutcome(action)}</div>
        ${listChanges(action, findResult(steps, action.call_id)).map(
          ({ entityId, before, after, changed }) => html`<p class="small">
            <code>${entityId}</code> ${before ?? t("unknown")} → <b>${after ?? t("unknown")}</b>
            ${changed.length ? html`<span class="dim">${changed.map(([name, value]) => `${name} ${write(value)}`).join(", ")}</span>` : nothing}
          </p>`,
        )}
        <p class="dim small">${explainRight(action)}</p>
      </li>`,
    )}
  </ul>`;
}

function write(value) {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Say which rule or person allowed an action. */
function explainRight({ approved, allowed_by: rule, undoes }) {
  const words = [];
  if (approved !== null && approved !== undefined) words.push(t(approved ? "card.approved" : "card.refused"));
  if (rule) words.push(rule === "*" ? t("card.allowed_all") : t("card.allowed_by", { rule }));
  if (undoes) words.push(t("card.undoes"));
  return words.join(" ");
}

function renderNumbers(turn) {
  const { stats, status } = turn;
  if (!stats) return html`<p class="dim">${t("card.not_over")}</p>`;
  const time = ["card.time", formatDuration(stats.duration_ms)];
  // Nobody pays for a turn without a model, so it has no tokens and no costs.
  if (!stats.model_calls) return html`${renderFacts([time])}<p class="dim">${t(status === "failed" ? "card.no_answer" : "card.no_model")}</p>`;
  const models = [...new Set(findBills(turn.steps).map((bill) => bill.model))];
  if (models.includes(OFFLINE)) return html`${renderFacts([time])}<p class="dim">${t("card.offline")}</p>`;
  const { input_tokens: input, reported_tokens: reported } = stats;
  return html`${renderFacts([
      time,
      ["card.model", models.join(", ") || t("unknown")],
      ["card.calls", formatNumber(stats.model_calls)],
      ["card.input", t("tokens", { count: input })],
      ["card.cached", formatShare(reported ? stats.cached_tokens / reported : null)],
      ["card.output", t("tokens", { count: stats.output_tokens })],
      ...(stats.reasoning_tokens ? [["card.reasoning", t("tokens", { count: stats.reasoning_tokens })]] : []),
      ["card.price", formatSpent(stats)],
    ])}
    ${stats.unpriced_calls ? html`<p class="small warn">${t("costs.unpriced", { count: stats.unpriced_calls })}</p>` : nothing}
    <p class="small dim">
      ${t("card.cached_hint")} ${reported < input ? t(reported ? "card.estimated_partly" : "card.estimated") : nothing}
    </p>`;
}

customElements.define("sash-answer-card", AnswerCard);
