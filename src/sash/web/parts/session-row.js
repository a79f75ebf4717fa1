/** One session in the history: its title, its state, and what can be done with it. */

import { html, nothing } from "../vendor/lit.js";
import { formatMoment, formatNumber, t, tValue } from "../text.js";
import { SashElement } from "../element.js";
import { readSession } from "../app.js";
import { askPerson } from "./ask-person.js";
import { saveSession } from "./session-file.js";
import { formatSpent } from "./spent.js";

const MAX_QUESTION_CHARS = 120;

class SessionRow extends SashElement {
  static properties = {
    connection: { attribute: false },
    session: { attribute: false },
    title: { attribute: false },
    /** The newest turn of the session that has not ended, or undefined. */
    openTurn: { attribute: false },
    /** Whether this person may copy, end and delete sessions. */
    canChange: { type: Boolean },
    _isOpen: { state: true },
  };

  /** Put the focus on the link to the session. */
  focusTitle() {
    this.querySelector("a").focus();
  }

  get _path() {
    return `v1/sessions/${encodeURIComponent(this.session.id)}`;
  }

  render() {
    const { session, title } = this;
    const partId = `session-${session.id}`;
    return html`<article class="card session">
      <div class="session-line">
        <h3><a href="#/chat/${encodeURIComponent(session.id)}">${title}</a></h3>
        <p class="small dim">${this._describe()}</p>
        ${this._renderState()}
        <button
          aria-expanded=${Boolean(this._isOpen)}
          aria-controls=${partId}
          aria-label=${t("history.more_of", { title: title.slice(0, MAX_QUESTION_CHARS) })}
          @click=${() => (this._isOpen = !this._isOpen)}
        >${t(this._isOpen ? "history.less" : "history.more")}</button>
      </div>
      <div id=${partId} ?hidden=${!this._isOpen}>${this._isOpen ? this._renderMore() : nothing}</div>
    </article>`;
  }

  _describe() {
    const { stats, updated_at: usedAt } = this.session;
    const words = [t("history.used", { time: formatMoment(usedAt) })];
    if (stats.turns) words.push(t("history.turns", { count: stats.turns }));
    if (stats.failed_turns) words.push(t("history.failed_turns", { count: stats.failed_turns }));
    return words.join(" · ");
  }

  _renderState() {
    const { session, openTurn } = this;
    if (session.status !== "active") return html`<span class="badge dim">${tValue("history.status", session.status)}</span>`;
    if (!openTurn) return nothing;
    const tone = openTurn.status === "awaiting_approval" || openTurn.status === "interrupted" ? "warn" : "good";
    const link = `#/chat/${encodeURIComponent(session.id)}?turn=${encodeURIComponent(openTurn.continuation_id)}`;
    return html`<a class="badge ${tone}" href=${link}>${tValue("costs.status", openTurn.status)}</a>`;
  }

  _renderMore() {
    const { session, canChange } = this;
    const isActive = session.status === "active";
    const path = encodeURIComponent(session.id);
    return html`
      ${isActive ? nothing : html`<p>${t(`history.over.${session.status}`)}</p>`}
      ${canChange ? nothing : html`<p>${t("history.read_only")}</p>`}
      ${renderFacts(session)}
      <div class="row">
        <a class="button" href="#/chat/${path}">${t(isActive && canChange ? "history.continue" : "history.read")}</a>
        ${canChange ? this._button("history.fork", () => this._fork(), { hint: t("history.fork_hint") }) : nothing}
        <a class="button" href="#/window/${path}">${t("history.window")}</a>
        ${this._button("history.export", () => saveSession(this.connection, session, this.title), { hint: t("history.export_hint") })}
        ${canChange && isActive ? this._button("history.end", () => this._end()) : nothing}
        ${canChange ? this._button("history.delete", () => this._delete(), { kind: "danger" }) : nothing}
      </div>
    `;
  }

  _button(key, action, { kind = "", hint } = {}) {
    return html`<button class=${kind} title=${hint ?? nothing} @click=${() => this._run(action)}>${t(key)}</button>`;
  }

  /** Run one action at a time. A button that was disabled meanwhile would lose the focus. */
  async _run(action) {
    if (this._isBusy) return;
    this._isBusy = true;
    await this.attempt(action);
    this._isBusy = false;
  }

  async _fork() {
    const { session_id: id } = await this.connection.post(`${this._path}/fork`, {});
    this.notify(t("history.forked"));
    location.hash = `#/chat/${encodeURIComponent(id)}`;
  }

  async _end() {
    if (!(await this._ask("history.end_question", "history.end"))) return;
    await this.connection.post(`${this._path}/end`, {});
    this.notify(t("history.ended", { title: this._shortTitle }));
    this.emit("sash-session-changed");
    this.querySelector("[aria-expanded]").focus();
  }

  async _delete() {
    if (!(await this._ask("history.delete_question", "history.delete", true))) return;
    await this.connection.delete(this._path);
    if (readSession() === this.session.id) this.emit("sash-session", null);
    this.notify(t("history.deleted", { title: this._shortTitle }));
    this.emit("sash-session-deleted", this.session.id);
  }

  get _shortTitle() {
    return this.title.slice(0, MAX_QUESTION_CHARS);
  }

  _ask(question, action, isDanger = false) {
    return askPerson(this, t(question, { title: this._shortTitle }), t(action), { isDanger });
  }
}

function renderFacts({ created_at: startedAt, stats, area, model }) {
  // Nobody pays for turns without a model, so they have no tokens and no costs.
  const tokens = stats.input_tokens + stats.output_tokens;
  const facts = [
    ["history.started", formatMoment(startedAt)],
    ["history.model_calls", formatNumber(stats.model_calls)],
    ["history.tokens", tokens && formatNumber(tokens)],
    ["history.cost", tokens && formatSpent(stats)],
    ["history.model", model.name],
    ["history.area", area],
  ];
  return html`<dl class="facts">${facts.map(([key, value]) => (value ? html`<div><dt>${t(key)}</dt><dd>${value}</dd></div>` : nothing))}</dl>`;
}

customElements.define("sash-session-row", SessionRow);
