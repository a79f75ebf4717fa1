/** The chat: one conversation with its turns, and the field for the next message. */

import { html, nothing } from "../vendor/lit.js";
import { formatMoment, getLanguage, t } from "../text.js";
import { SashElement } from "../element.js";
import { readSession } from "../app.js";
import { OFFLINE } from "../parts/answer-way.js";
import { Conversation } from "../parts/conversation.js";
import { findRights } from "../parts/rights.js";
import { readSessionTitle } from "../parts/session-title.js";
import "../parts/answer-card.js";
import "../parts/composer.js";
import "../parts/transcript.js";

const RECENT = 12;
const EXAMPLES = ["chat.example_lights", "chat.example_batteries", "chat.example_help"];

class Chat extends SashElement {
  static properties = {
    connection: { attribute: false },
    me: { attribute: false },
    sessionId: { attribute: false },
    turnId: { attribute: false },
    _turns: { state: true },
    _recent: { state: true },
    _card: { state: true },
    _spoken: { state: true },
  };

  constructor() {
    super();
    this._recent = { sessions: [], titles: {} };
    this._spoken = "";
    this.addEventListener("sash-say", (event) => this._say(event.detail));
    this.addEventListener("sash-card", (event) => (this._card = event.detail.id));
  }

  connectedCallback() {
    super.connectedCallback();
    const remembered = location.hash ? null : readSession();
    if (!this.sessionId && remembered) location.replace(`#/chat/${encodeURIComponent(remembered)}`);
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this._conversation?.close();
    this._conversation = null;
  }

  willUpdate() {
    const wanted = this.sessionId ?? null;
    // A new conversation gets its id with its first message, and stays.
    if (!this._conversation || this._conversation.sessionId !== wanted) this._start(wanted);
  }

  _start(sessionId) {
    this._conversation?.close();
    const conversation = new Conversation(this.connection, sessionId);
    this._conversation = conversation;
    this._turns = [];
    this._remembered = undefined;
    const ifShown = (action) => (event) => conversation === this._conversation && action(event);
    conversation.addEventListener("change", ifShown(() => this._onChange(conversation)));
    conversation.addEventListener("answer", ifShown((event) => this._speak(event.detail)));
    conversation.addEventListener("start", ifShown(() => this._onStart(conversation)));
    conversation.open();
    this._readRecent();
  }

  _onChange(conversation) {
    this._turns = conversation.turns;
    // A session that does not exist any more is not opened again.
    if (conversation.session || isGone(conversation.state)) this._remember(isGone(conversation.state) ? null : conversation.sessionId);
    this.requestUpdate();
  }

  /** Note the session that is shown, once. */
  _remember(sessionId) {
    if (sessionId !== this._remembered) this.emit("sash-session", sessionId);
    this._remembered = sessionId;
  }

  _onStart(conversation) {
    this.sessionId = conversation.sessionId;
    location.hash = `#/chat/${encodeURIComponent(conversation.sessionId)}`;
  }

  /** Tell readers of the screen what has happened. */
  _speak(turn) {
    this.emit("sash-waiting");
    if (turn.status === "awaiting_approval") this._spoken = t("chat.approval");
    else this._spoken = turn.status === "completed" ? t("chat.answered", { text: turn.answer ?? "" }) : t(`chat.${turn.status}`);
    if (this._turns.length < 3) this._readRecent();
  }

  async _readRecent() {
    try {
      this._recent = await this.connection.get("v1/sessions", { limit: RECENT, include: "titles" });
    } catch {
      // The chat works without the list.
    }
  }

  async _say(text) {
    const conversation = this._conversation;
    // The person may have left the chat when an error comes.
    const app = this.getRootNode().host;
    this.querySelector("sash-transcript")?.goToEnd();
    try {
      await conversation.send(text, getLanguage());
    } catch (error) {
      app.dispatchEvent(new CustomEvent("sash-notice", { detail: { message: error.message, kind: "error" } }));
      if (this._conversation?.sessionId === conversation.sessionId) this.querySelector("sash-composer")?.restore(text);
    }
  }

  get _title() {
    const { session } = this._conversation;
    if (session) return readSessionTitle(session, this._recent.titles);
    return this.sessionId ? t("chat.title") : t("chat.new");
  }

  render() {
    const { state } = this._conversation;
    const isBroken = state instanceof Error;
    return html`<div class="chat">
      ${this._renderHead()}
      ${isBroken ? this._renderProblem(state) : this._renderTurns()}
      ${state === "waiting" ? html`<p class="state warn small" role="status">${t("chat.reconnecting")}</p>` : nothing}
      ${isBroken ? nothing : html`<sash-composer .obstacle=${this._findObstacle()}></sash-composer>`}
      <p class="visually-hidden" aria-live="polite">${this._spoken}</p>
      ${this._card
        ? html`<sash-answer-card .connection=${this.connection} .turnId=${this._card} .owner=${this._conversation.session?.owner} @close=${() => (this._card = null)}></sash-answer-card>`
        : nothing}
    </div>`;
  }

  _findObstacle() {
    const { session } = this._conversation;
    const { mayTalk, mayWrite } = findRights(this.me, session);
    if (!mayTalk) return { words: t("chat.read_only") };
    if (session && session.status !== "active") return { words: t("chat.over"), canStartNew: true };
    return mayWrite ? null : { words: t("chat.may_not_act"), canStartNew: true };
  }

  _renderProblem(error) {
    return html`<div class="empty welcome">
      <p class="error" role="alert">${isGone(error) ? t("chat.gone") : error.message}</p>
      <div class="row">
        <a class="button" href="#/chat" @click=${this._forget}>${t("chat.new")}</a>
        <a class="button" href="#/history">${t("chat.all")}</a>
      </div>
    </div>`;
  }

  _renderHead() {
    const path = this.sessionId && encodeURIComponent(this.sessionId);
    return html`<header class="chat-head">
      <h1>${this._title}</h1>
      <nav class="row" aria-label=${t("chat.conversations")}>
        <button popovertarget="recent" aria-haspopup="true" @click=${this._readRecent}>${t("chat.switch")}</button>
        ${path ? html`<a class="button" href="#/window/${path}" title=${t("chat.window_hint")}>${t("chat.window")}</a>` : nothing}
        ${path ? html`<a class="button" href="#/chat" @click=${this._forget}>${t("chat.new_short")}</a>` : nothing}
      </nav>
      <div id="recent" popover class="recent" aria-label=${t("chat.conversations")} @click=${this._closeRecent}>
        ${this._renderRecent()}
        <a href="#/history">${t("chat.all")}</a>
      </div>
    </header>`;
  }

  _renderRecent() {
    const { sessions, titles } = this._recent;
    if (!sessions.length) return html`<p class="dim">${t("chat.none")}</p>`;
    return html`<ul>
      ${sessions.map(
        (session) => html`<li>
          <a href="#/chat/${encodeURIComponent(session.id)}" aria-current=${session.id === this.sessionId ? "true" : nothing}>
            <span>${readSessionTitle(session, titles)}</span>
            <span class="dim small">${formatMoment(session.updated_at)}</span>
          </a>
        </li>`,
      )}
    </ul>`;
  }

  _closeRecent(event) {
    if (event.target.closest("a")) event.currentTarget.hidePopover();
  }

  _forget() {
    this.emit("sash-session", null);
  }

  _renderTurns() {
    const { state } = this._conversation;
    if (!this._turns.length && state === "loading") return html`<p class="loading" role="status">${t("loading")}</p>`;
    if (!this._turns.length) return this._renderEmpty();
    return html`<sash-transcript
      .connection=${this.connection}
      .conversation=${this._conversation}
      .me=${this.me}
      .turns=${this._turns}
      .state=${state}
      .turnId=${this.turnId}
    ></sash-transcript>`;
  }

  _renderEmpty() {
    return html`<div class="empty welcome">
      <h2>${t("chat.welcome")}</h2>
      <p>${t(this.me?.model === OFFLINE ? "chat.offline" : "chat.welcome_how")}</p>
      ${this._findObstacle()
        ? nothing
        : html`<div class="row">${EXAMPLES.map((key) => html`<button @click=${() => this._say(t(key))}>${t(key)}</button>`)}</div>`}
    </div>`;
  }
}

/** Return true for the error of a session that does not exist. */
function isGone(state) {
  return state?.code === "session_not_found";
}

customElements.define("sash-chat", Chat);
