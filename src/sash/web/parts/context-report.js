/** The report of the next model call: its parts with their tokens, the cached share, and the exact text. */

import { html, nothing } from "../vendor/lit.js";
import { formatNumber, formatShare, t, tValue } from "../text.js";
import { SashElement } from "../element.js";
import { readText } from "./window-blocks.js";
import "./token-bar.js";

class ContextReport extends SashElement {
  static properties = {
    report: { attribute: false },
    /** The parts of the report, each with the messages that it sends. */
    parts: { attribute: false },
    isOpen: { state: true },
  };

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
        <b>${t("window.cached")}: ${formatShare(report.prefix_share)}</b><br>
        <span class="small dim">${t(report.prefix_share === null ? "window.cached_unknown" : "window.cached_hint")}</span>
      </p>
      <details class="sent" @toggle=${(event) => (this.isOpen = event.target.open)}>
        <summary>${t("window.sent")}</summary>
        ${this.isOpen ? this._renderSent() : nothing}
      </details>
    `;
  }

  _renderRow(part) {
    const hint = tValue("window.part_hint", part.name);
    return html`<tr>
      <td>
        <button class="link" @click=${() => this.emit("sash-open-part", part)}>${tValue("window.part", part.name)}</button>
        <span class="small dim">${hint === part.name ? nothing : hint}${part.stable ? nothing : ` ${t("window.not_stable")}`}</span>
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
}

customElements.define("sash-context-report", ContextReport);
