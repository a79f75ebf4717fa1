/** A question of the agent before an action: what would happen, and the buttons that allow or refuse it. */

import { html } from "../vendor/lit.js";
import { t } from "../text.js";
import { SashElement } from "../element.js";
import { prettify } from "./step-list.js";

class Approval extends SashElement {
  static properties = {
    call: { attribute: false },
    /** Called with true or false. */
    answer: { attribute: false },
    /** Why this person may not answer, or null. */
    obstacle: { attribute: false },
    _isSending: { state: true },
  };

  async _answer(approved) {
    this._isSending = true;
    await this.attempt(() => this.answer(approved));
    this._isSending = false;
    this.emit("sash-answered");
  }

  render() {
    const { name, reason, would, in_words: words, question } = this.call;
    return html`<section class="approval" aria-label=${t("chat.approval")}>
      <h3>${t("chat.approval")}</h3>
      <p class="effect">${question}</p>
      <p class="dim small">${t("chat.approval_why")}</p>
      ${this.obstacle
        ? html`<p class="warn">${this.obstacle}</p>`
        : html`<div class="row">
            <button class="primary" ?disabled=${this._isSending} @click=${() => this._answer(true)}>${t("chat.approve")}</button>
            <button ?disabled=${this._isSending} @click=${() => this._answer(false)}>${t("chat.refuse")}</button>
          </div>`}
      <details class="small"><summary>${t("chat.approval_exact")}</summary><p>${words}</p><p>${reason}</p><pre>${name}: ${prettify(JSON.stringify(would))}</pre></details>
    </section>`;
  }
}

customElements.define("sash-approval", Approval);
