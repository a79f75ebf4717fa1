/** The report of the next model call: its parts with their tokens, the cached share, and the exact text. */

import { html, nothing } from "../vendor/lit.js";
import { formatMoment, formatNumber, formatShare, joinPair, t, tValue } from "../text.js";
import { SashElement } from "../element.js";
import { findBills, renderPrompts } from "./prompt-view.js";
import { describeHint, readText, readTitle } from "./window-blocks.js";
import "./token-bar.js";

// A sentence that is understood without a model sent nothing, so the turn before it is looked at.
const MAX_TURNS_SEARCHED = 8;

class ContextReport extends SashElement {
  static properties = {
    connection: { attribute: false },
    report: { attribute: false },
    /** The parts of the report, each with the messages that it sends. */
    parts: { attribute: false },
    /** The turns in the window. */
    turns: { attribute: false },
    isOpen: { state: true },
    /** {question, turn, prompts} of the last model call. Undefined while it is read, null after an error. */
    last: { state: true },
  };

  willUpdate(changed) {
    if (changed.has("turns") && this._isLastOpen) this._loadLast();
  }

  render() {
    const { report, parts } = this;
    const sum = parts.reduce((total, part) => total + part.tokens, 0);
    return html`
      <h2>${t("window.report_title")}</h2>
      <p class="small dim">${t("window.report_hint")}</p>
      <sash-token-bar .parts=${parts}></sash-token-bar>
      <table class="report">
        <thead>
          <tr>
            <th scope="col">${t("window.column_part")}</th>
            <th scope="col" class="number">${t("window.column_tokens")}</th>
          </tr>
        </thead>
        <tbody>
          ${parts.map((part) => this._renderRow(part))}
          ${report.total_tokens > sum
            ? html`<tr><td>${t("window.part.reply")}</td><td class="number">${formatNumber(report.total_tokens - sum)}</td></tr>`
            : nothing}
        </tbody>
        <tfoot>
          <tr><th scope="row">${t("window.total")}</th><td class="number"><b>${formatNumber(report.total_tokens)}</b></td></tr>
        </tfoot>
      </table>
      <p>
        <b>${joinPair(t("window.cached"), formatShare(report.prefix_share))}</b><br>
        <span class="small dim">${t(report.prefix_share === null ? "window.cached_unknown" : "window.cached_hint")}</span>
      </p>
      <details class="sent" @toggle=${(event) => (this.isOpen = event.target.open)}>
        <summary>${t("window.sent")}</summary>
        ${this.isOpen ? this._renderSent() : nothing}
      </details>
      <details class="sent last" @toggle=${this._toggleLast}>
        <summary>${t("window.last_sent")}</summary>
        ${this._renderLast()}
      </details>
    `;
  }

  _renderRow(part) {
    return html`<tr data-part=${part.name} data-tokens=${part.tokens}>
      <td>
        <button class="link" @click=${() => this.emit("sash-open-part", part)}>${tValue("window.part", part.name)}</button>
        <span class="small dim">${describeHint(part.name)}${part.stable ? nothing : ` ${t("window.not_stable")}`}</span>
      </td>
      <td class="number">${formatNumber(part.tokens)}</td>
    </tr>`;
  }

  _renderSent() {
    const { messages = [], tools = [] } = this.report;
    return html`
      <p class="small dim">${t("window.sent_hint")}</p>
      ${messages.map((message) => html`<p class="role">${tValue("window.role", message.role)}</p><pre>${readText(message)}</pre>`)}
      ${tools.length
        ? html`<details><summary>${t("window.sent_tools", { count: tools.length })}</summary>
            <pre>${JSON.stringify(tools, null, 2)}</pre></details>`
        : nothing}
    `;
  }

  _renderLast() {
    if (this.last === undefined) return this._isLastOpen ? html`<p class="dim">${t("loading")}</p>` : nothing;
    if (!this.last?.prompts.length) return html`<p class="dim">${t(this.last ? "window.last_none" : "unknown")}</p>`;
    const { question, turn, prompts } = this.last;
    const bills = findBills(turn.steps).filter((bill) => !bill.estimated);
    const sent = bills.reduce((sum, bill) => sum + bill.input_tokens, 0);
    const cached = bills.reduce((sum, bill) => sum + bill.cached_tokens, 0);
    return html`
      <h3><q>${readTitle(question)}</q> <span class="small dim">${formatMoment(turn.created_at)}</span></h3>
      <p class="small">${t("window.last_cached", { share: formatShare(sent ? cached / sent : null) })}</p>
      ${renderPrompts(turn, prompts)}
    `;
  }

  _toggleLast(event) {
    this._isLastOpen = event.target.open;
    if (this._isLastOpen && this.last === undefined) this._loadLast();
    this.requestUpdate();
  }

  async _loadLast() {
    this.last = (await this.attempt(() => this._findLast())) ?? null;
  }

  /** Return the newest turn that asked a model, with what was sent. */
  async _findLast() {
    for (const question of this.turns.slice(-MAX_TURNS_SEARCHED).reverse()) {
      const path = `v1/continuations/${encodeURIComponent(question.id)}`;
      const { prompts } = question.messages[0].continuation_id ? await this.connection.get(`${path}/prompts`) : { prompts: [] };
      if (prompts.length) return { question, turn: await this.connection.get(path), prompts };
    }
    return { prompts: [] };
  }
}

customElements.define("sash-context-report", ContextReport);
