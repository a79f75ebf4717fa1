/** One turn: its state, what can be done with it, and the timeline of its steps. */

import { html, nothing } from "../vendor/lit.js";
import { formatDuration, formatMoment, formatNumber, t, tValue } from "../text.js";
import { SashElement } from "../element.js";
import { isFinal, isOpen } from "../parts/conversation.js";
import { renderMarkdown } from "../parts/markdown.js";
import { findRights } from "../parts/rights.js";
import { readSessionTitle } from "../parts/session-title.js";
import { formatSpent } from "../parts/spent.js";
import "../parts/answer-card.js";
import "../parts/approval.js";
import "../parts/journal.js";

const TONES = { failed: "bad", awaiting_approval: "warn", interrupted: "warn", completed: "good" };
// A turn with such a status cannot be run again before it is stopped.

class TurnView extends SashElement {
  static properties = {
    connection: { attribute: false },
    me: { attribute: false },
    turnId: { attribute: false },
    _turn: { state: true },
    _session: { state: true },
    _problem: { state: true },
    _isLost: { state: true },
    _hasCard: { state: true },
  };

  willUpdate(changed) {
    if (!changed.has("turnId")) return;
    this._stopFollowing();
    this._turn = this._session = this._problem = null;
    this._load();
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this._stopFollowing();
  }

  get _path() {
    return `v1/continuations/${encodeURIComponent(this.turnId)}`;
  }

  get _sessionPath() {
    return encodeURIComponent(this._turn.session_id);
  }

  get _chatLink() {
    return `#/chat/${this._sessionPath}?turn=${encodeURIComponent(this.turnId)}`;
  }

  async _load() {
    const { turnId } = this;
    try {
      const turn = await this.connection.get(this._path);
      const { session } = this._session ? { session: this._session } : await this.connection.get(`v1/sessions/${encodeURIComponent(turn.session_id)}`);
      if (turnId !== this.turnId) return;
      this._turn = turn;
      this._session = session;
      this._problem = null;
      this._follow(turn);
    } catch (error) {
      if (turnId === this.turnId) this._problem = error;
    }
  }

  /** Read the turn again at each event of it, until it ends. */
  _follow(turn) {
    if (isFinal(turn)) return this._stopFollowing();
    if (this._following || !this.isConnected) return undefined;
    this._following = new AbortController();
    const after = Math.max(0, ...turn.steps.map((step) => step.cursor));
    const onEvent = (event) => event.continuation_id === this.turnId && event.type !== "partial" && this._load();
    const onState = (state) => {
      if (state === "connected" && this._isLost) this._load();
      this._isLost = state === "waiting";
    };
    this.connection.follow(turn.session_id, { after, signal: this._following.signal, onEvent, onState });
    return undefined;
  }

  _stopFollowing() {
    this._following?.abort();
    this._following = null;
    this._isLost = false;
  }

  async _run(action) {
    if (this._isBusy) return;
    this._isBusy = true;
    await this.attempt(action);
    this._isBusy = false;
  }

  async _post(verb, body = {}) {
    await this.connection.post(`${this._path}/${verb}`, body);
    await this._load();
    await this.updateComplete;
    // The button that had the focus may be gone.
    if (!this.contains(this.getRootNode().activeElement)) this.querySelector("h1").focus();
  }

  async _retry() {
    const { continuation_id: id } = await this.connection.post(`${this._path}/retry`);
    location.hash = `#/turn/${encodeURIComponent(id)}`;
  }

  async _fork() {
    const { session_id: id } = await this.connection.post(`v1/sessions/${this._sessionPath}/fork`, { at: this.turnId });
    this.notify(t("history.forked"));
    location.hash = `#/chat/${encodeURIComponent(id)}`;
  }

  render() {
    return html`<div class="page turn-page">
      ${this._turn ? nothing : html`<h1>${t("journal.title")}</h1>`}
      ${this._problem ? this._renderProblem(this._problem) : nothing}
      ${this._turn ? this._renderTurn(this._turn) : this._problem ? nothing : html`<p class="loading" role="status">${t("loading")}</p>`}
    </div>`;
  }

  _renderProblem({ message, status }) {
    return html`<p class="error" role="alert">${status === 404 ? t("journal.gone") : t("journal.problem", { message })}</p>
      <p class="row"><button @click=${() => this._load()}>${t("history.again")}</button><a class="button" href="#/history">${t("history.title")}</a></p>`;
  }

  _renderTurn(turn) {
    const { steps, request, response, retry_of: old } = turn;
    return html`
      <header>
        <p class="small">
          <a href="#/history">${t("history.title")}</a> ›
          <a href=${this._chatLink}>${readSessionTitle(this._session)}</a>
        </p>
        <h1 tabindex="-1">${t("journal.title")}</h1>
        <blockquote>${request.message || t("costs.turn.no_words")}</blockquote>
        <p><span class="badge ${TONES[turn.status] ?? "dim"}">${tValue("costs.status", turn.status)}</span> <span class="dim">${describe(turn)}</span></p>
        ${old ? html`<p class="small dim">${t("way.retry")} <a href="#/turn/${encodeURIComponent(old)}">${t("journal.first_attempt")}</a></p>` : nothing}
      </header>
      ${this._renderState(turn)} ${this._renderButtons(turn)}
      ${this._isLost ? html`<p class="warn" role="status">${t("chat.reconnecting")}</p>` : nothing}
      <h2>${t("journal.timeline")}</h2>
      ${steps.length
        ? html`<p class="small dim">${t("journal.hint")}</p><sash-journal .turn=${turn}></sash-journal>`
        : html`<p class="dim">${t(isFinal(turn) ? "way.steps_gone" : "journal.no_steps")}</p>`}
      ${response?.final_message ? html`<h2>${t("journal.answer")}</h2><div class="card markdown">${renderMarkdown(response.final_message)}</div>` : nothing}
      ${this._hasCard
        ? html`<sash-answer-card .connection=${this.connection} .turnId=${this.turnId} .owner=${this._session.owner} @close=${() => (this._hasCard = false)}></sash-answer-card>`
        : nothing}
    `;
  }

  _renderState({ status, error, waiting_calls: calls }) {
    if (status === "failed") {
      return html`<section class="card failed" role="alert">
        <p><b class="bad">${t("chat.failed")}</b> <span>${error?.message}</span></p>
        <p>${findRemedy(error?.code)}</p>
      </section>`;
    }
    if (status === "interrupted") return html`<p class="warn">${t("chat.interrupted")}</p>`;
    if (status !== "awaiting_approval") return nothing;
    const { mayApprove } = findRights(this.me, this._session);
    return html`<h2 class="visually-hidden">${tValue("costs.status", status)}</h2>
      ${calls.map(
        (call) => html`<sash-approval
          .call=${call}
          .obstacle=${mayApprove ? null : t("chat.may_not_approve")}
          .answer=${(approved) => this._post("approve", { call_id: call.call_id, approved })}
        ></sash-approval>`,
      )}`;
  }

  _renderButtons(turn) {
    const { status } = turn;
    const isActive = this._session.status === "active";
    // A turn of an ended session can still be copied.
    const { mayChange: canChange } = findRights(this.me, this._session);
    return html`<div class="row">
        ${canChange && isActive && status === "interrupted" ? this._button("chat.resume", () => this._post("resume"), "primary") : nothing}
        ${canChange && isActive && !isOpen(turn) && status !== "completed" ? this._button("chat.retry", () => this._retry()) : nothing}
        ${canChange && !isFinal(turn) ? this._button("journal.cancel", () => this._post("cancel")) : nothing}
        <a class="button" href=${this._chatLink}>${t("journal.open_chat")}</a>
        <a class="button" href="#/window/${this._sessionPath}">${t("history.window")}</a>
        <button aria-haspopup="dialog" @click=${() => (this._hasCard = true)}>${t("journal.card")}</button>
        ${canChange && status === "completed" ? this._button("journal.fork", () => this._fork()) : nothing}
        ${canChange && isActive && status === "completed" ? this._button("journal.ask_again", () => this._retry()) : nothing}
      </div>
      ${isActive ? nothing : html`<p class="small dim">${t(`history.over.${this._session.status}`)}</p>`}
      ${canChange && status === "completed" ? html`<p class="small dim">${t("journal.fork_hint")}</p>` : nothing}`;
  }

  _button(key, action, kind = "") {
    return html`<button class=${kind} @click=${() => this._run(action)}>${t(key)}</button>`;
  }
}

/** Return the time of a turn, how long it took, its model calls, tokens and costs. */
function describe(turn) {
  const { created_at: at, stats } = turn;
  const words = [formatMoment(at)];
  if (stats && isFinal(turn)) words.push(formatDuration(stats.duration_ms));
  const count = (stats?.input_tokens ?? 0) + (stats?.output_tokens ?? 0);
  if (stats?.local_turns || (stats?.model_calls && !count)) words.push(t("chat.no_model"));
  if (!count) return words.join(" · ");
  const tokens = formatNumber(count);
  const cost = formatSpent(stats);
  return [...words, t("chat.model_calls", { count: stats.model_calls }), t("journal.tokens", { tokens }), t("journal.cost", { cost })].join(" · ");
}

/** Return what a person can do about an error. */
function findRemedy(code) {
  const remedy = tValue("journal.remedy", code);
  return remedy === code ? t("journal.remedy.other") : remedy;
}

customElements.define("sash-turn", TurnView);
