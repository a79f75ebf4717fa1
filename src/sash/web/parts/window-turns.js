/** The turns as a list, newest first: above the cut those that the model sees, below it those that slid out. */

import { classMap, html, nothing, repeat } from "../vendor/lit.js";
import { formatMoment, t, tValue } from "../text.js";
import { SashElement } from "../element.js";
import { readAnswer, readTags, readTitle } from "./window-blocks.js";

const TOPIC = "context:";

class WindowTurns extends SashElement {
  static properties = {
    kept: { attribute: false },
    evicted: { attribute: false },
    nextCut: { attribute: false },
    olderCount: { type: Number },
    isLoading: { type: Boolean },
  };

  render() {
    const largest = Math.max(1, ...[...this.kept, ...this.evicted].map((turn) => turn.tokens));
    const row = (turn, isKept) => this._renderRow(turn, isKept, largest);
    return html`
      <h2>${t("window.turns_title")}</h2>
      <ol class="turn-rows">
        ${repeat(this.kept.toReversed(), (turn) => turn.id, (turn) => row(turn, true))}
      </ol>
      ${this.evicted.length || this.olderCount
        ? html`<p class="cut-line"><span>${t("window.cut_line")}</span></p>
            <ol class="turn-rows gone">
              ${repeat(this.evicted.toReversed(), (turn) => turn.id, (turn) => row(turn, false))}
            </ol>`
        : nothing}
      ${this.olderCount
        ? html`<button ?disabled=${this.isLoading} @click=${() => this.emit("sash-load-older")}>
            ${t("window.show_older", { count: this.olderCount })}
          </button>`
        : nothing}
    `;
  }

  _renderRow(turn, isKept, largest) {
    const isNext = isKept && turn.messages.some((message) => this.nextCut.has(message.id));
    const width = `${(100 * turn.tokens) / largest}%`;
    const reason = isKept ? (isNext ? t("window.goes_next") : nothing) : t(`evicted.${turn.reason}`);
    return html`<li>
      <button class=${classMap({ "turn-row": true, next: isNext })} @click=${() => this.emit("sash-open-turn", { turn, isKept, isNext })}>
        <span class="meta">
          <span>${formatMoment(turn.messages[0].timestamp)}</span>
          ${readTags(turn.messages).map((tag) => html`<span class="badge">${describeTag(tag)}</span>`)}
        </span>
        <span class="line title">${readTitle(turn)}</span>
        <span class="line">${readAnswer(turn)}</span>
        ${reason === nothing ? nothing : html`<span class="reason">${reason}</span>`}
        <span class="size"><i .style=${`width: ${width}`}></i><b>${t("tokens", { count: turn.tokens })}</b></span>
      </button>
    </li>`;
  }
}

/** Return a tag in words. The server gives each turn its topics, such as `context:lights`. */
function describeTag(tag) {
  return tag.startsWith(TOPIC) ? tag.slice(TOPIC.length) : tValue("window.badge", tag);
}

customElements.define("sash-window-turns", WindowTurns);
