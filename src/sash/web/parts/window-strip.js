/** The window as a strip of blocks, sized by tokens: turns that slid out, the cut, the turns in the window, free space. */

import { classMap, html, nothing, repeat } from "../vendor/lit.js";
import { t } from "../text.js";
import { SashElement } from "../element.js";
import { readAnswer, readTags, readTitle } from "./window-blocks.js";
import "./block-preview.js";

// The part of the strip's width that the window itself takes. The rest shows that older turns slid out to the left.
const FRAME_SHARE = 0.8;
const MIN_BLOCK_REM = 0.8;

class WindowStrip extends SashElement {
  static properties = {
    kept: { attribute: false },
    evicted: { attribute: false },
    /** The number of older messages that are not loaded yet. */
    olderCount: { type: Number },
    limits: { attribute: false },
    nextCut: { attribute: false },
    shown: { state: true },
  };

  firstUpdated() {
    this._scrollToNewest();
  }

  updated(changed) {
    // The newest turn stays in view, and so does the place of a reader who loads older turns.
    const strip = this.querySelector(".strip");
    if (changed.has("evicted") && this._widthBefore && this._isPrepended) {
      strip.scrollLeft += strip.scrollWidth - this._widthBefore;
    } else if (changed.has("kept")) {
      this._scrollToNewest();
    }
    this._isPrepended = false;
    this._widthBefore = strip.scrollWidth;
  }

  _scrollToNewest() {
    const strip = this.querySelector(".strip");
    strip.scrollLeft = strip.scrollWidth;
  }

  render() {
    const used = this.kept.reduce((sum, turn) => sum + turn.tokens, 0);
    const whole = Math.max(used, this.limits.max_tokens ?? 0, 1);
    return html`
      <div class="strip" role="group" aria-label=${t("window.strip")} @keydown=${this._onKey} @pointerleave=${() => this._show(null)}>
        <div class="past">
          ${this.olderCount ? this._renderOlder() : nothing}
          ${repeat(this.evicted, (turn) => turn.id, (turn) => this._renderTurn(turn, whole, false))}
        </div>
        <div class="cut" title=${t("window.cut_hint")}><span>${t("window.cut")}</span></div>
        <div class="frame" .style=${`width: ${FRAME_SHARE * 100}%; min-width: ${this.kept.length * MIN_BLOCK_REM}rem`}>
          ${repeat(this.kept, (turn) => turn.id, (turn) => this._renderTurn(turn, whole, true))}
          ${used < whole ? this._renderFree(whole - used) : nothing}
          ${this._renderLowWater()}
        </div>
      </div>
      <sash-block-preview .block=${this.shown}></sash-block-preview>
    `;
  }

  _renderOlder() {
    return html`<button class="block older" tabindex="-1" title=${t("window.older_hint")} @click=${this._askOlder}>
      <span class="block-label">${t("window.older", { count: this.olderCount })}</span>
    </button>`;
  }

  _renderTurn(turn, whole, isKept) {
    const tags = readTags(turn.messages);
    const isNext = isKept && turn.messages.some((message) => this.nextCut.has(message.id));
    const classes = { block: true, kept: isKept, gone: !isKept, next: isNext, pinned: tags.includes("pinned") };
    const size = isKept ? `flex: ${turn.tokens} 1 0` : `width: calc(${FRAME_SHARE * 100}cqw * ${turn.tokens / whole})`;
    const block = { turn, isKept, isNext };
    return html`<button
      class=${classMap(classes)}
      .style=${size}
      tabindex=${this._isEntry(turn, isKept) ? 0 : -1}
      aria-label=${this._describe(turn, isKept)}
      @pointerenter=${() => this._show(block)}
      @focus=${() => this._show(block)}
      @click=${() => this.emit("sash-open-turn", block)}
    >
      <span class="block-label">${tags.includes("pinned") ? html`<b aria-hidden="true">⌖</b> ` : nothing}${readTitle(turn)}</span>
      <span class="band">
        ${turn.messages.map(
          (message) => html`<i
            class=${message.role}
            data-message-id=${message.id}
            data-tokens=${message.token_count}
            data-kept=${isKept}
            .style=${`flex: ${message.token_count} 1 0`}
          ></i>`,
        )}
      </span>
    </button>`;
  }

  _renderFree(tokens) {
    return html`<div class="free" .style=${`flex: ${tokens} 1 0`} data-free=${tokens} title=${t("window.free_hint")}>
      <span>${t("window.free", { count: tokens })}</span>
    </div>`;
  }

  _renderLowWater() {
    const { max_tokens, evict_to } = this.limits;
    if (!max_tokens || evict_to >= 1) return nothing;
    const words = t("window.low_water", { count: Math.floor(max_tokens * evict_to) });
    return html`<div class="low-water" .style=${`left: ${100 * evict_to}%`} title=${t("window.low_water_hint")}>
      <span>${words}</span>
    </div>`;
  }

  /** The strip is one stop of the Tab key; the arrow keys move inside. It is entered at the newest turn. */
  _isEntry(turn, isKept) {
    const last = this.kept.at(-1) ?? this.evicted.at(-1);
    return turn === last && isKept === this.kept.length > 0;
  }

  _describe(turn, isKept) {
    const state = t(isKept ? "window.state_kept" : "window.state_gone");
    return `${readTitle(turn)} ${readAnswer(turn)}`.slice(0, 200) + `. ${t("tokens", { count: turn.tokens })}, ${state}`;
  }

  _show(block) {
    this.shown = block;
  }

  _askOlder() {
    this._isPrepended = true;
    this.emit("sash-load-older");
  }

  _onKey(event) {
    const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    if (step === undefined) return;
    const blocks = [...this.querySelectorAll("button.block")];
    const index = blocks.indexOf(event.target.closest("button"));
    event.preventDefault();
    blocks[Math.max(0, Math.min(blocks.length - 1, index + step))]?.focus();
  }
}

customElements.define("sash-window-strip", WindowStrip);
