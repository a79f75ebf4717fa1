/** What the model still sees of a conversation, what slid out and why, and what happens next. */

import { html, nothing } from "../vendor/lit.js";
import { formatMoment, formatNumber, formatShare, t } from "../text.js";
import { SashElement } from "../element.js";
import { findRights } from "../parts/rights.js";
import { readSessionTitle } from "../parts/session-title.js";
import { findReason, groupTurns, listFixedBlocks, matchMessages } from "../parts/window-blocks.js";
import "../parts/context-report.js";
import "../parts/part-panel.js";
import "../parts/turn-panel.js";
import "../parts/window-strip.js";
import "../parts/window-turns.js";

const PAGE = 100;
// Old messages stay in the window if they are pinned. They are looked for in larger pages.
const SEARCH_PAGE = 500;
const NEWEST = 2 ** 53;
const SETTLE_MS = 250;

class WindowView extends SashElement {
  static properties = {
    connection: { attribute: false },
    me: { attribute: false },
    sessionId: { attribute: false },
    /** The turn whose panel the address opens, or null. */
    turnId: { attribute: false },
    sessions: { state: true },
    titles: { state: true },
    shown: { state: true },
    problem: { state: true },
    panel: { state: true },
    isLoading: { state: true },
  };

  constructor() {
    super();
    this.sessions = null;
    this.titles = {};
    this.shown = null;
    this.panel = null;
    this.addEventListener("sash-open-turn", (event) => (this.panel = { block: event.detail }));
    this.addEventListener("sash-open-part", (event) => (this.panel = { part: event.detail }));
    this.addEventListener("sash-close-panel", () => (this.panel = null));
    this.addEventListener("sash-message-changed", () => this._reload());
    this.addEventListener("sash-notes-changed", () => this._reload());
    this.addEventListener("sash-load-older", () => this._loadOlder());
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this._close();
  }

  connectedCallback() {
    super.connectedCallback();
    if (this.hasUpdated) this._open();
  }

  updated(changed) {
    if (changed.has("sessionId") || changed.has("connection")) this._open();
  }

  /** Show the session of the address, or else the newest one. */
  async _open() {
    this._close();
    const { signal } = (this._opened = new AbortController());
    this.shown = null;
    this.panel = null;
    this.problem = null;
    try {
      if (!this.sessions) await this._loadSessions();
      if (signal.aborted) return;
      if (!this.sessionId) {
        if (this.sessions.length) location.replace(`#/window/${this.sessions[0].id}`);
        return;
      }
      await this._load(signal);
      if (signal.aborted) return;
      this.emit("sash-session", this.sessionId);
      await this._showTurn(signal);
      await this._follow(signal);
    } catch (error) {
      if (!signal.aborted) this.problem = error;
    }
  }

  /** Open the panel of the turn that the address names. */
  async _showTurn(signal) {
    while (this.turnId && !signal.aborted) {
      const { kept, evicted } = this._arrange();
      const turn = [...kept, ...evicted].find((each) => each.id === this.turnId);
      if (turn) this.panel = { block: { turn, isKept: kept.includes(turn) } };
      const { length } = this.shown.messages;
      if (!turn && this.shown.cursor) await this._loadOlder();
      if (this.shown?.messages.length === length) return;
    }
  }

  /** Stop what `_open` started. */
  _close() {
    this._opened?.abort();
    clearTimeout(this._timer);
  }

  async _loadSessions() {
    const page = await this.connection.get("v1/sessions", { include: "titles", limit: 100 });
    this.sessions = page.sessions;
    this.titles = page.titles ?? {};
  }

  /** Load the session, unless `signal` is aborted meanwhile. */
  async _load(signal) {
    const id = this.sessionId;
    const path = `v1/sessions/${encodeURIComponent(id)}`;
    const [about, report, page] = await Promise.all([
      this.connection.get(path),
      this.connection.get(`${path}/context`, { include: "messages" }),
      this.connection.get(`${path}/messages`, { before: NEWEST, limit: this.shown ? SEARCH_PAGE : PAGE }),
    ]);
    const loaded = { messages: page.messages, cursor: page.next_cursor };
    // A reader who has opened older turns keeps them, and all messages of the window are needed.
    const oldest = this.shown?.messages[0]?.position ?? Infinity;
    const count = about.window_stats.message_count;
    const isEnough = () => loaded.messages[0].position <= oldest && loaded.messages.filter((message) => message.in_window).length >= count;
    while (!signal.aborted && loaded.cursor && !isEnough()) await this._prepend(path, loaded, SEARCH_PAGE);
    if (!signal.aborted) this.shown = { id, path, about, report, ...loaded };
  }

  async _prepend(path, loaded, limit) {
    const page = await this.connection.get(`${path}/messages`, { before: loaded.cursor, limit });
    loaded.messages = [...page.messages, ...loaded.messages];
    loaded.cursor = page.next_cursor;
  }

  async _loadOlder() {
    if (this.isLoading) return;
    this.isLoading = true;
    const loaded = { ...this.shown };
    const isDone = await this.attempt(async () => (await this._prepend(loaded.path, loaded, PAGE), true));
    if (isDone && loaded.id === this.shown?.id) this.shown = loaded;
    this.isLoading = false;
  }

  async _reload() {
    await this.attempt(() => this._load(this._opened.signal));
  }

  /** Load again when a turn ends. The stream starts after the last known step, so that it repeats nothing. */
  async _follow(signal) {
    const after = await this._findCursor();
    const onEvent = (event) => {
      if (event.type !== "final" || signal.aborted) return;
      clearTimeout(this._timer);
      this._timer = setTimeout(() => this._reload(), SETTLE_MS);
    };
    if (!signal.aborted) this.connection.follow(this.sessionId, { after, signal, onEvent });
  }

  async _findCursor() {
    const turnId = this.shown?.messages.findLast((message) => message.continuation_id)?.continuation_id;
    if (!turnId) return 0;
    try {
      const turn = await this.connection.get(`v1/continuations/${turnId}`);
      return turn.steps.at(-1)?.cursor ?? 0;
    } catch {
      return 0;
    }
  }

  render() {
    return html`<div class="page window-view">
      <header class="spread">
        <h1>${t("window.title")}</h1>
        ${this.sessions?.length ? this._renderPicker() : nothing}
      </header>
      ${this._renderBody()}
    </div>`;
  }

  _renderBody() {
    if (this.problem) return html`<p class="empty" role="alert">${this.problem.message}</p>`;
    if (this.sessions && !this.sessions.length && !this.sessionId) {
      return html`<p class="empty">${t("window.no_sessions")} <a href="#/chat">${t("window.start_chat")}</a></p>`;
    }
    if (!this.shown) return html`<p class="loading" role="status">${t("loading")}</p>`;
    const view = this._arrange();
    const hasTurns = view.kept.length + view.evicted.length + view.olderCount > 0;
    return html`
      ${this._renderSummary(view)}
      <section class="window-strips">
        <h2>${t("window.strip_title")}</h2>
        <sash-window-strip
          .fixed=${view.fixed}
          .kept=${view.kept}
          .evicted=${view.evicted}
          .olderCount=${view.olderCount}
          .limits=${view.limits}
          .nextCut=${view.nextCut}
        ></sash-window-strip>
      </section>
      <div class="window-columns">
        <sash-context-report
          class="card" .connection=${this.connection} .report=${this.shown.report} .parts=${view.parts} .turns=${view.kept}
        ></sash-context-report>
        ${hasTurns
          ? html`<sash-window-turns
              .kept=${view.kept}
              .evicted=${view.evicted}
              .nextCut=${view.nextCut}
              .olderCount=${view.olderCount}
              .isLoading=${this.isLoading}
            ></sash-window-turns>`
          : html`<p class="empty">${t("window.no_turns")} <a href="#/chat/${this.sessionId}">${t("window.open_chat")}</a></p>`}
      </div>
      ${this.panel ? this._renderPanel(view) : nothing}
    `;
  }

  /** Sort what was loaded into what the parts of the view show. */
  _arrange() {
    const { about, report, messages, cursor } = this.shown;
    if (this._arranged?.source === this.shown) return this._arranged;
    const { window: limits, memory } = about.session;
    const reasons = new Map(report.evicted.map((each) => [each.message_id, each.reason]));
    const keptMessages = messages.filter((message) => message.in_window);
    const parts = matchMessages(report);
    const used = keptMessages.reduce((sum, message) => sum + message.token_count, 0);
    const windowTokens = parts.find((part) => part.name === "window")?.tokens ?? 0;
    this._arranged = {
      source: this.shown,
      limits,
      parts,
      // The server counts what it tells about changes in the house with the window.
      fixed: listFixedBlocks(parts, report.tools ?? [], Math.max(0, windowTokens - used)),
      kept: groupTurns(keptMessages),
      evicted: groupTurns(messages.filter((message) => !message.in_window)).map((turn) => ({
        ...turn,
        reason: findReason(turn, reasons, memory.reset_at),
      })),
      olderCount: cursor ? messages[0].position - 1 : 0,
      nextCut: new Set(report.next_evicted),
    };
    return this._arranged;
  }

  _renderPicker() {
    const isKnown = this.sessions.some((session) => session.id === this.sessionId);
    const choices = isKnown || !this.shown ? this.sessions : [this.shown.about.session, ...this.sessions];
    return html`<div class="row">
      <label for="window-session">${t("window.session")}</label>
      <select id="window-session" @change=${(event) => (location.hash = `#/window/${event.target.value}`)}>
        ${choices.map(
          (session) => html`<option value=${session.id} ?selected=${session.id === this.sessionId}>
            ${readSessionTitle(session, this.titles).slice(0, 60)}
          </option>`,
        )}
      </select>
      ${this.sessionId ? html`<a class="button" href="#/chat/${this.sessionId}">${t("window.open_chat")}</a>` : nothing}
    </div>`;
  }

  /** Say in words how full the window is, what slid out, and what happens next. */
  _renderSummary(view) {
    const { window_stats: stats } = this.shown.about;
    return html`<div class="window-summary" aria-live="polite">
      <p class="headline">${this._describeFill(stats, view)}</p>
      <p>${this._describeNext(stats, view)}</p>
      ${stats.evicted_count ? this._renderGone(stats) : stats.message_count ? html`<p>${t("window.nothing_gone")}</p>` : nothing}
    </div>`;
  }

  /** Say how many messages slid out, and when and why the last of them did. */
  _renderGone(stats) {
    const { about, report } = this.shown;
    const [last] = report.evicted;
    const time = about.session.memory.cut_at;
    return html`<p>
      ${t("window.gone_count", { count: stats.evicted_count })}
      ${last && time ? html`<b>${t(`window.last_cut.${last.reason}`, { time: formatMoment(time) })}</b>` : nothing}
    </p>`;
  }

  _describeFill(stats, view) {
    const { max_tokens, max_turns } = view.limits;
    if (!stats.message_count) return max_tokens ? t("window.fill_empty", { limit: max_tokens }) : t("window.fill_nothing");
    const turns = t("window.turns_in", { count: view.kept.length });
    if (max_tokens) {
      const values = { share: formatShare(stats.current_tokens / max_tokens), used: stats.current_tokens, limit: max_tokens, turns };
      return t("window.fill_tokens", values);
    }
    if (max_turns) return t("window.fill_turns", { used: stats.turn_count, limit: max_turns });
    return t("window.fill_unlimited", { used: formatNumber(stats.current_tokens), turns });
  }

  _describeNext(stats, view) {
    const { max_tokens, max_turns, evict_to } = view.limits;
    if (stats.over_budget) return t("window.next_over");
    const sentences = [];
    if (max_tokens) {
      const low = Math.floor(max_tokens * evict_to);
      sentences.push(t("window.next_tokens", { free: max_tokens - stats.current_tokens, low }));
    }
    if (max_turns) {
      sentences.push(t("window.next_turns", { count: max_turns - stats.turn_count, low: Math.floor(max_turns * evict_to) }));
    }
    return sentences.length ? sentences.join(" ") : t("window.next_never");
  }

  _renderPanel(view) {
    const { block, part } = this.panel;
    const { mayChange: canChange, mayTalk, mayPin } = findRights(this.me, this.shown.about.session);
    if (part) {
      const current = view.parts.find((each) => each.name === part.name) ?? part;
      return html`<sash-part-panel
        .connection=${this.connection} .sessionId=${this.sessionId} .part=${current}
        .tools=${this.shown.report.tools ?? []} .rights=${{ session: canChange, facts: mayTalk, pins: mayPin }}
      ></sash-part-panel>`;
    }
    const turns = block.isKept ? view.kept : view.evicted;
    const turn = turns.find((each) => each.id === block.turn.id) ?? block.turn;
    return html`<sash-turn-panel
      .connection=${this.connection} .sessionId=${this.sessionId} .block=${{ ...block, turn }}
      .reason=${turn.reason} .canChange=${canChange}
    ></sash-turn-panel>`;
  }
}

customElements.define("sash-window", WindowView);
