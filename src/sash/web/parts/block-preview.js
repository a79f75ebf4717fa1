/** The text of the block under the pointer or the focus. It keeps its height, so that nothing jumps. */

import { html, nothing } from "../vendor/lit.js";
import { formatMoment, t } from "../text.js";
import { SashElement } from "../element.js";
import { readAnswer, readTitle } from "./window-blocks.js";

class BlockPreview extends SashElement {
  static properties = {
    /** A turn as {turn, isKept, isNext}, a block of `listFixedBlocks`, or null. */
    block: { attribute: false },
  };

  render() {
    const { block } = this;
    if (!block) return html`<div class="preview dim">${t("window.preview_hint")}</div>`;
    return block.turn ? this._renderTurn(block) : this._renderPart(block);
  }

  _renderTurn({ turn, isKept, isNext }) {
    const state = isNext ? "window.state_next" : isKept ? "window.state_kept" : "window.state_gone";
    const answer = readAnswer(turn);
    return html`<div class="preview">
      <p class="small dim">
        ${formatMoment(turn.messages[0].timestamp)} · ${t("tokens", { count: turn.tokens })} · ${t(state)}
        ${isKept ? nothing : html`<b>${t(`evicted.${turn.reason}`)}</b>`}
      </p>
      <p class="lines"><b>${readTitle(turn)}</b></p>
      ${answer ? html`<p class="lines">${answer}</p>` : nothing}
    </div>`;
  }

  _renderPart({ label, hint, text, tokens }) {
    return html`<div class="preview">
      <p class="small dim">${t("tokens", { count: tokens })} · ${t("window.state_fixed")}</p>
      <p><b>${label}.</b> ${hint}</p>
      <p class="lines">${text}</p>
    </div>`;
  }
}

customElements.define("sash-block-preview", BlockPreview);
