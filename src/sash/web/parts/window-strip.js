/** All that the model gets, as two rows of blocks: the fixed parts of the prompt, and the conversation with its cut. */

import { classMap, html, nothing, repeat } from "../vendor/lit.js";
import { formatNumber, joinPair, t } from "../text.js";
import { SashElement } from "../element.js";
import { findOrigin } from "./token-bar.js";
import { readAnswer, readTags, readTitle } from "./window-blocks.js";
import "./block-preview.js";

// The part of the row's width that the window takes if turns slid out of it. The rest shows these turns.
const FRAME_SHARE = 0.8;
const MIN_BLOCK_REM = 0.8;
const ARROWS = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
const PIN = html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d="M9 3h6l-1 6 3 3v2H7v-2l3-3zM12 14v7" /></svg>`;
const BANDS = ["user", "assistant", "tool", "next", "gone"];

class WindowStrip extends SashElement {
  static properties = {
    /** The blocks of `listFixedBlocks`. */
    fixed: { attribute: false },
    kept: { attribute: false },
    evicted: { attribute: false },
    /** The number of older messages that are not loaded yet. */
    olderCount: { type: Number },
    limits: { attribute: false },
    nextCut: { attribute: false },
    shown: { state: true },
  };

  updated(changed) {
    // The newest turn stays in view, and so does the place of a reader who loads older turns.
    const strip = this.querySelector(".strip");
    if (changed.has("evicted") && this._isPrepended) strip.scrollLeft += strip.scrollWidth - this._widthBefore;
    else if (changed.has("kept")) strip.scrollLeft = strip.scrollWidth;
    if (changed.has("evicted")) this._isPrepended = false;
    this._widthBefore = strip.scrollWidth;
  }

  render() {
    const fixed = sumTokens(this.fixed);
    const used = sumTokens(this.kept);
    const limit = Math.max(used, this.limits.max_tokens ?? 0, 1);
    const hasPast = this.evicted.length > 0 || this.olderCount > 0;
    // Both rows have one scale, unless the fixed parts are wider than the conversation.
    const whole = limit / (hasPast ? FRAME_SHARE : 1);
    return html`
      <div @pointerleave=${() => this._show(null)} @keydown=${this._onKey}>
        <p class="row-name">${t("window.fixed_row", { count: fixed })}</p>
        <div class="prompt-strip" role="group" aria-label=${t("window.fixed_row", { count: fixed })} .style=${`width: ${Math.min(100, (100 * fixed) / whole)}%`}>
          ${this.fixed.map((block, index) => this._renderFixed(block, index))}
        </div>
        <p class="row-name">${t("window.turns_row", { count: used })}</p>
        <div class="strip" role="group" aria-label=${t("window.strip")}>
          ${hasPast ? this._renderPast(whole) : nothing}
          <div class="frame" .style=${`width: ${(100 * limit) / whole}%; min-width: ${this.kept.length * MIN_BLOCK_REM}rem`}>
            ${repeat(this.kept, (turn) => turn.id, (turn) => this._renderTurn(turn, whole, true))}
            ${used < limit ? this._renderFree(limit - used) : nothing}
            ${this._renderMarks()}
          </div>
        </div>
      </div>
      <ul class="legend">${this._listBands().map((name) => html`<li><i class="band-${name}"></i>${t(`window.band.${name}`)}</li>`)}</ul>
      <sash-block-preview .block=${this.shown}></sash-block-preview>
    `;
  }

  _renderPast(whole) {
    return html`<div class="past">
        ${this.olderCount ? this._renderOlder() : nothing}
        ${repeat(this.evicted, (turn) => turn.id, (turn) => this._renderTurn(turn, whole, false))}
      </div>
      <div class="cut" title=${t("window.cut_hint")}><span>${t("window.cut")}</span></div>`;
  }

  _renderOlder() {
    return html`<button class="block older" tabindex="-1" title=${t("window.older_hint")} @click=${this._askOlder}>
      <span class="block-label">${t("window.older", { count: this.olderCount })}</span>
    </button>`;
  }

  _renderFixed(block, index) {
    const words = joinPair(block.label, t("tokens", { count: block.tokens }));
    return html`<button
      class="block part"
      data-part=${block.name}
      data-section=${block.section ?? nothing}
      data-tokens=${block.tokens}
      .style=${`flex: ${block.tokens} 1 0`}
      tabindex=${index ? -1 : 0}
      aria-label=${words}
      @pointerenter=${() => this._show(block)}
      @focus=${() => this._show(block)}
      @click=${() => this.emit("sash-open-part", block.part)}
    >
      <span class="block-label">${block.label}</span>
      <span class="band"><i .style=${`flex: 1 1 0; background: var(--part-${findOrigin(block.name)})`}></i></span>
    </button>`;
  }

  _renderTurn(turn, whole, isKept) {
    const isPinned = readTags(turn.messages).includes("pinned");
    const isNext = isKept && turn.messages.some((message) => this.nextCut.has(message.id));
    const classes = { block: true, kept: isKept, gone: !isKept, next: isNext, pinned: isPinned };
    const size = isKept ? `flex: ${turn.tokens} 1 0` : `width: calc(100cqw * ${turn.tokens / whole})`;
    const block = { turn, isKept, isNext };
    return html`<button
      class=${classMap(classes)}
      .style=${size}
      data-reason=${isKept ? nothing : turn.reason}
      tabindex=${this._isEntry(turn, isKept) ? 0 : -1}
      aria-label=${this._describe(turn, isKept)}
      @pointerenter=${() => this._show(block)}
      @focus=${() => this._show(block)}
      @click=${() => this.emit("sash-open-turn", block)}
    >
      <span class="block-label">${isPinned ? PIN : nothing}${readTitle(turn)}</span>
      <span class="band">
        ${turn.messages.map(
          (message) => html`<i
            class=${message.role}
            data-message-id=${message.id}
            data-tokens=${message.token_count}
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

  /** Draw the limit at the end of the window, and the low-water mark. */
  _renderMarks() {
    const { max_tokens, evict_to } = this.limits;
    if (!max_tokens) return nothing;
    const low = Math.floor(max_tokens * evict_to);
    const percent = 100 / Math.max(max_tokens, sumTokens(this.kept));
    return html`<span class="limit" .style=${`right: ${100 - max_tokens * percent}%`} title=${t("window.limit_hint")}>${t("window.limit", { count: max_tokens })}</span>
      ${evict_to < 1
        ? html`<div class="low-water" .style=${`left: ${low * percent}%`} title=${t("window.low_water_hint")} data-tokens=${low}>
            <span>${t("window.low_water", { count: formatNumber(low) })}</span>
          </div>`
        : nothing}`;
  }

  /** Return the names of the patterns that this strip has. */
  _listBands() {
    const roles = new Set(this.kept.flatMap((turn) => turn.messages.map((message) => message.role)));
    const others = { next: this.nextCut.size > 0, gone: this.evicted.length > 0 };
    return BANDS.filter((name) => others[name] ?? roles.has(name));
  }

  /** Each row is one stop of the Tab key; the arrow keys move inside. The turns are entered at the newest one. */
  _isEntry(turn, isKept) {
    const last = this.kept.at(-1) ?? this.evicted.at(-1);
    return turn === last && isKept === this.kept.length > 0;
  }

  _describe(turn, isKept) {
    const state = isKept ? t("window.state_kept") : `${t("window.state_gone")} ${t(`evicted.${turn.reason}`)}`;
    return `${readTitle(turn)} ${readAnswer(turn)}`.slice(0, 200) + `. ${t("tokens", { count: turn.tokens })}. ${state}`;
  }

  _show(block) {
    this.shown = block;
  }

  _askOlder() {
    this._isPrepended = true;
    this.emit("sash-load-older");
  }

  _onKey(event) {
    const step = ARROWS[event.key];
    const button = event.target.closest("button.block");
    if (step === undefined || !button) return;
    const blocks = [...button.closest("[role=group]").querySelectorAll("button.block")];
    event.preventDefault();
    blocks[Math.max(0, Math.min(blocks.length - 1, blocks.indexOf(button) + step))].focus();
  }
}

function sumTokens(blocks) {
  return blocks.reduce((sum, block) => sum + block.tokens, 0);
}

customElements.define("sash-window-strip", WindowStrip);
