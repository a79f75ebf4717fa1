/** The text of the block under the pointer or the focus. It keeps its height, so that nothing jumps. */

import { html, nothing } from "../vendor/lit.js";
import { formatMoment, t } from "../text.js";
import { SashElement } from "../element.js";
import { readAnswer, readTitle } from "./window-blocks.js";

class BlockPreview extends SashElement {
  static properties = {
    /** {turn, isKept, isNext}, or null. */
    block: { attribute: false },
  };

  render() {
    if (!this.block) return html`<p class="preview dim">${t("window.preview_hint")}</p>`;
    const { turn, isKept, isNext } = this.block;
    const state = isNext ? "window.state_next" : isKept ? "window.state_kept" : "window.state_gone";
    const answer = readAnswer(turn);
    return html`<div class="preview">
      <p class="small dim">
        ${formatMoment(turn.messages[0].timestamp)} · ${t("tokens", { count: turn.tokens })} · ${t(state)}
      </p>
      <p class="line"><b>${readTitle(turn)}</b></p>
      ${answer ? html`<p class="line">${answer}</p>` : nothing}
    </div>`;
  }
}

customElements.define("sash-block-preview", BlockPreview);
