/** A list of turns that wait or failed, with links to their chats. A waiting turn can be cancelled. */

import { html, nothing, repeat } from "../vendor/lit.js";
import { formatMoment, t, tValue } from "../text.js";
import { SashElement } from "../element.js";
import { askPerson } from "./ask-person.js";

class TurnList extends SashElement {
  static properties = {
    connection: { attribute: false },
    turns: { attribute: false },
    /** Whether the turns are not finished. */
    isOpen: { type: Boolean },
    /** Whether each turn has a button that cancels it. */
    canCancel: { type: Boolean },
  };

  render() {
    return html`<ul class="turn-list">
      ${repeat(this.turns, (turn) => turn.continuation_id, (turn) => this._renderTurn(turn))}
    </ul>`;
  }

  _renderTurn(turn) {
    const { continuation_id: id, session_id: sessionId, status, request, error, waiting_calls: calls } = turn;
    const link = `#/chat/${encodeURIComponent(sessionId)}?turn=${encodeURIComponent(id)}`;
    return html`<li>
      <div>
        <a href=${link}>${request.message.slice(0, 200) || t("costs.turn.no_words")}</a>
        <p class="small">
          <span class="badge ${status === "failed" ? "bad" : status === "awaiting_approval" ? "warn" : "dim"}">${tValue("costs.status", status)}</span>
          <span class="dim">${this.isOpen ? t("costs.turn.since", { time: formatMoment(turn.created_at) }) : formatMoment(turn.updated_at)}</span>
          <a href="#/turn/${encodeURIComponent(id)}">${t("history.steps")}</a>
        </p>
        ${calls?.map((call) => html`<p class="small">${call.question}</p>`)}
        ${error ? html`<p class="small dim">${error.message}</p>` : nothing}
      </div>
      ${this.canCancel
        ? html`<button aria-label=${t("costs.turn.cancel_this", { message: request.message.slice(0, 60) })} @click=${() => this._cancel(turn)}>
            ${t("costs.turn.cancel")}
          </button>`
        : nothing}
    </li>`;
  }

  async _cancel({ continuation_id: id, request }) {
    const question = t("costs.turn.cancel_question", { message: request.message.slice(0, 120) });
    if (!(await askPerson(this, question, t("costs.turn.cancel"), { isDanger: true }))) return;
    const isDone = await this.attempt(() => this.connection.post(`v1/continuations/${encodeURIComponent(id)}/cancel`));
    if (isDone) this.emit("sash-turn-cancelled", id);
  }
}

customElements.define("sash-turn-list", TurnList);
