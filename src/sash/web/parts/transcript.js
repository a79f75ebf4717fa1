/** The turns of a session in a list that scrolls. Only the turns near the visible part are in the page. */

import { html, nothing, repeat } from "../vendor/lit.js";
import { t } from "../text.js";
import { SashElement } from "../element.js";
import { isFinal } from "./conversation.js";
import "./step-list.js";
import "./turn.js";

const MAX_TURNS = 50;
const MOVE_BY = 15;
// Pixels from the edge at which the next turns are drawn.
const NEAR = 900;
const AT_END = 48;
// Pixels above a turn that the address names.
const MARGIN = 16;

class Transcript extends SashElement {
  static properties = {
    connection: { attribute: false },
    conversation: { attribute: false },
    me: { attribute: false },
    /** The turns of the conversation. A new list is drawn. */
    turns: { attribute: false },
    turnId: { attribute: false },
    /** The state of the conversation. */
    state: { attribute: false },
    /** The last turn that is drawn, or null for the newest one. */
    _lastId: { state: true },
    _isAtEnd: { state: true },
    _isLoading: { state: true },
  };

  constructor() {
    super();
    this._lastId = null;
    this._isAtEnd = true;
    this._top = 0;
    this._onScroll = () => {
      this._hasFailed = false;
      this._look();
    };
    this._sizes = new ResizeObserver(() => this._keepPlace());
  }

  firstUpdated() {
    this._scroller = this.querySelector(".scroller");
    this._scroller.addEventListener("scroll", this._onScroll, { passive: true });
    this._sizes.observe(this.querySelector(".turns"));
    this._sizes.observe(this._scroller);
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this._sizes.disconnect();
  }

  willUpdate(changed) {
    if (changed.has("conversation")) {
      this._lastId = null;
      this._isAtEnd = true;
      this._anchor = null;
      this._shownTurn = null;
    }
    if (changed.has("conversation") || (changed.has("state") && this.state === "connected")) this._hasFailed = false;
  }

  async updated() {
    if (this.turnId && this.turnId !== this._shownTurn) this._show(this.turnId);
    // The turns have no height before they have drawn themselves.
    await Promise.all(Array.from(this.querySelectorAll("sash-chat-turn"), (turn) => turn.updateComplete));
    this._keepPlace();
    this._extend();
  }

  /** Scroll to the newest turn. */
  goToEnd() {
    this._lastId = null;
    this._isAtEnd = true;
    this.requestUpdate();
  }

  async _show(turnId) {
    this._shownTurn = turnId;
    if (!(await this.attempt(() => this.conversation.loadUntil(turnId)))) return;
    const { turns } = this.conversation;
    const index = turns.findIndex((turn) => turn.id === turnId);
    this._isAtEnd = false;
    this._lastId = index + MOVE_BY < turns.length ? turns[index + MOVE_BY].id : null;
    this._anchor = { id: turnId, place: this._scroller.scrollTop + MARGIN };
    this.requestUpdate();
  }

  /** Return the first and the last place (exclusive) of the turns that are drawn. */
  _findRange() {
    const found = this._lastId === null ? -1 : this.turns.findIndex((turn) => turn.id === this._lastId);
    const end = found < 0 ? this.turns.length : found + 1;
    return { start: Math.max(0, end - MAX_TURNS), end };
  }

  /** Note what the reader sees after scrolling. */
  _look() {
    const { scrollTop, scrollHeight, clientHeight } = this._scroller;
    const isNewest = this._findRange().end === this.turns.length;
    // Only a person scrolls up. An answer or a picture that grows does not leave the end.
    const stays = this._isAtEnd && scrollTop >= this._top - 1;
    this._isAtEnd = (stays || scrollHeight - scrollTop - clientHeight < AT_END) && isNewest;
    this._top = scrollTop;
    this._anchor = this._findAnchor();
    this._extend();
  }

  /** Draw or load the next turns if the reader is near the first or the last one that is drawn. */
  _extend() {
    const { scrollTop, scrollHeight, clientHeight } = this._scroller;
    const { start, end } = this._findRange();
    if (scrollTop < NEAR && start > 0) {
      this._lastId = this.turns[Math.max(MAX_TURNS, end - MOVE_BY) - 1].id;
    } else if (scrollTop < NEAR && this.conversation.hasOlder && !this._hasFailed) {
      this._loadOlder();
    } else if (scrollHeight - scrollTop - clientHeight < NEAR && end < this.turns.length) {
      this._lastId = this.turns[end + MOVE_BY]?.id ?? null;
    }
  }

  async _loadOlder() {
    if (this._isLoading) return;
    this._isLoading = true;
    const conversation = this.conversation;
    const isLoaded = await this.attempt(() => conversation.loadOlder().then(() => true));
    // After an error, only a scroll or a new connection loads again.
    this._hasFailed = !isLoaded && conversation === this.conversation;
    this._isLoading = false;
  }

  /** Return the first visible turn and its place in the list, in pixels. */
  _findAnchor() {
    const { scrollTop } = this._scroller;
    for (const element of this.querySelectorAll("article[data-turn]")) {
      const place = this._findPlace(element);
      if (place + element.offsetHeight > scrollTop) return { id: element.dataset.turn, place };
    }
    return null;
  }

  _findPlace(element) {
    return element.getBoundingClientRect().top - this._scroller.getBoundingClientRect().top + this._scroller.scrollTop;
  }

  /** Scroll as far as the first visible turn has moved in the list, or to the end if the end was visible. */
  _keepPlace() {
    if (!this._scroller) return;
    if (this._isAtEnd) {
      this._scroller.scrollTop = this._scroller.scrollHeight;
      this._top = this._scroller.scrollTop;
      return;
    }
    const element = this._anchor && this.querySelector(`article[data-turn="${CSS.escape(this._anchor.id)}"]`);
    if (!element) return;
    const place = this._findPlace(element);
    if (Math.abs(place - this._anchor.place) >= 1) this._scroller.scrollTop += place - this._anchor.place;
    this._anchor.place = place;
  }

  render() {
    const { start, end } = this._findRange();
    const shown = this.turns.slice(start, end);
    const newest = this.turns.at(-1);
    const actionsOf = (turn) => turn.response?.actions ?? [];
    const firstOpen = this.turns.find((turn) => !isFinal(turn));
    const retried = new Set(this.turns.map((turn) => turn.retry_of));
    // The key of an action is that of its turn and that of its call.
    const undone = new Set(this.turns.flatMap(actionsOf).map((action) => action.undoes?.split(":")[0]));
    return html`<div class="scroller" tabindex="0" role="region" aria-label=${t("chat.transcript")}>
        <div class="turns">
          ${this._renderStart(start)}
          ${repeat(
            shown,
            (turn) => turn.id,
            (turn) => html`<sash-chat-turn
              .connection=${this.connection}
              .conversation=${this.conversation}
              .me=${this.me}
              .turn=${turn}
              .session=${this.conversation.session}
              .isLast=${turn === newest}
              .isUndoable=${turn.id === this.conversation.undoable?.continuation_id}
              .isMarked=${turn.id === this.turnId}
              .isQueued=${turn.status === "pending" && turn !== firstOpen}
              .isRetried=${retried.has(turn.id)}
              .isUndone=${undone.has(turn.id)}
            ></sash-chat-turn>`,
          )}
        </div>
      </div>
      ${this._isAtEnd ? nothing : html`<button class="to-end" @click=${this.goToEnd}>${t("chat.to_end")}</button>`}`;
  }

  _renderStart(start) {
    if (start > 0 || this._isLoading || this.conversation.hasOlder) return html`<p class="dim small start">${t("chat.older")}</p>`;
    return this.turns.length > 3 ? html`<p class="dim small start">${t("chat.start")}</p>` : nothing;
  }
}

customElements.define("sash-transcript", Transcript);
