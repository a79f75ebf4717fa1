/** One turn of the chat: the message, the steps as they happen, the answer, and what can be done with it. */

import { html, nothing } from "../vendor/lit.js";
import { formatDuration, formatMoment, getLanguage, t } from "../text.js";
import { SashElement } from "../element.js";
import { OFFLINE } from "./answer-way.js";
import { isFinal, isUnderWay } from "./conversation.js";
import { renderCitation } from "./citation.js";
import { renderMarkdown } from "./markdown.js";
import { findRights } from "./rights.js";
import { makeRows, makeRowsOfCalls } from "./step-list.js";
import "./approval.js";
import "./artifact.js";

const TICK_MS = 1000;
const EARLY_WAIT_S = 8;
// These follow-ups do the same as the button "Undo".
const UNDO_SENTENCES = new Set(["Undo that", "Mach das rückgängig"]);

class ChatTurn extends SashElement {
  static properties = {
    connection: { attribute: false },
    conversation: { attribute: false },
    me: { attribute: false },
    turn: { attribute: false },
    session: { attribute: false },
    /** Only the newest turn shows follow-ups. */
    isLast: { type: Boolean },
    /** Whether its action is the last one of the session. */
    isUndoable: { type: Boolean },
    isMarked: { type: Boolean },
    /** Whether it waits for the end of an earlier turn. */
    isQueued: { type: Boolean },
    /** Whether a later turn is another attempt at it, or took its action back. */
    isRetried: { type: Boolean },
    isUndone: { type: Boolean },
  };

  willUpdate(changed) {
    if (!changed.has("turn")) return;
    const { turn } = this;
    const text = isFinal(turn) ? turn.answer : turn.partial;
    if (text !== this._text) {
      this._text = text;
      this._answer = text ? renderMarkdown(text) : nothing;
    }
    this._rows = turn.steps?.length ? makeRows(turn.steps, turn.created_at) : makeRowsOfCalls(turn.calls ?? []);
    this._keepTime(isUnderWay(turn));
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this._keepTime(false);
  }

  /** Show the time that a running turn takes, once a second. */
  _keepTime(isRunning) {
    if (isRunning) this._timer ??= setInterval(() => this.requestUpdate(), TICK_MS);
    else this._timer = clearInterval(this._timer);
  }

  render() {
    const { turn } = this;
    return html`<article class="turn ${turn.isEvicted ? "evicted" : ""} ${this.isMarked ? "marked" : ""}" data-turn=${turn.id}>
      <h2 class="visually-hidden">${t("chat.asked_at", { time: formatMoment(turn.created_at) })}</h2>
      <div class="said">${this._renderMessage()}</div>
      <div class="answer">
        ${this._renderSteps()}
        ${this._answer === nothing ? nothing : html`<div class="markdown ${turn.isProvisional && !isFinal(turn) ? "provisional" : ""}">${this._answer}</div>`}
        ${(turn.artifacts ?? []).map((each) => html`<sash-artifact .connection=${this.connection} .artifact=${each}></sash-artifact>`)}
        ${this._renderState()} ${isFinal(turn) ? this._renderFoot() : nothing}
      </div>
    </article>`;
  }

  _renderMessage() {
    const { message, attachments } = this.turn;
    const pictures = (attachments ?? []).map((part) => part.image_url?.url ?? part.image_url).filter((url) => url?.startsWith?.("data:image/"));
    return html`<span class="message">${message ?? "…"}</span>
    ${pictures.map((url) => html`<img src=${url} alt=${t("chat.picture")}>`)}`;
  }

  _renderSteps() {
    const { turn } = this;
    if (!this._rows.length) return nothing;
    const list = html`<sash-step-list .rows=${this._rows}></sash-step-list>`;
    if (!isFinal(turn)) return list;
    const count = this._rows.filter((row) => row.kind === "tool").length;
    if (!count) return nothing;
    return html`<details class="past-steps" @toggle=${this._readSteps}>
      <summary class="dim small">${t("chat.steps", { count })}</summary>
      ${list}
    </details>`;
  }

  _readSteps(event) {
    if (event.target.open && !this.turn.steps && !this.turn.isCopy) this.conversation.read(this.turn.id).catch(() => {});
  }

  _renderState() {
    const { turn } = this;
    if (isUnderWay(turn)) return this._renderWork();
    switch (turn.status) {
      case "awaiting_approval":
        return this._renderApprovals();
      case "interrupted":
        return html`<p class="warn">${t("chat.interrupted")}</p>
          ${this._rights.mayWrite
            ? html`<div class="row">
                ${this._button("chat.resume", () => this.conversation.resume(turn), "primary")}
                ${this._button("chat.retry", () => this._start(this.conversation.retry(turn)))} ${this._button("chat.give_up", () => this.conversation.cancel(turn))}
              </div>`
            : nothing}`;
      case "failed":
        return html`<p class="bad" role="alert"><strong>${t("chat.failed")}</strong> ${turn.error?.message}</p>`;
      case "cancelled":
      case "expired":
        return html`<p class="dim">${t(`chat.${turn.status}`)}</p>`;
      default:
        return turn.response?.stopped_by ? html`<p class="warn small">${t("chat.stopped_by")}</p>` : nothing;
    }
  }

  _renderWork() {
    const { turn } = this;
    const seconds = Math.max(0, Math.floor((Date.now() - Date.parse(turn.created_at)) / 1000));
    const isLate = seconds >= (this.me?.early_wait_s ?? EARLY_WAIT_S);
    const words = { sending: "chat.sending", unsent: "chat.unsent", pending: this.isQueued ? "chat.queued" : undefined };
    const line = turn.progress ?? t(words[turn.status] ?? (isLate ? "chat.still_working" : "chat.working"));
    return html`<div class="working">
      <span class="pulse" aria-hidden="true"></span>
      <span>${line}</span>
      ${seconds > 1 ? html`<span class="dim small" aria-hidden="true">${formatDuration(seconds * 1000)}</span>` : nothing}
      ${this._rights.mayTalk ? this._button(turn.status === "unsent" ? "chat.do_not_send" : "chat.stop", () => this.conversation.cancel(turn)) : nothing}
    </div>`;
  }

  _renderApprovals() {
    const { turn, conversation, _rights: rights } = this;
    return html`${(turn.waiting_calls ?? []).map(
        (call) => html`<sash-approval
          .call=${call}
          .obstacle=${rights.mayApprove ? null : t("chat.may_not_approve")}
          .answer=${(approved) => conversation.approve(turn, call.call_id, approved)}
          @sash-answered=${({ target }) => this._keepFocus(target)}
        ></sash-approval>`,
      )}
      ${rights.mayTalk ? html`<div class="row foot small">${this._button("chat.drop_question", () => conversation.cancel(turn), "plain")}</div>` : nothing}`;
  }

  _renderFoot() {
    const { turn } = this;
    const { mayWrite } = this._rights;
    const canRetry = mayWrite && turn.status !== "completed" && !this.isRetried;
    const isUndoable = mayWrite && this.isUndoable;
    const followUps = (mayWrite && this.isLast && turn.response?.follow_ups) || [];
    return html`
      <div class="row foot small">
        <span class="dim">${this._describe()}</span>
        ${canRetry ? this._button("chat.retry", () => this._start(this.conversation.retry(turn))) : nothing}
        ${isUndoable ? this._button("chat.undo", () => this._start(this.conversation.undo(getLanguage()))) : nothing}
        ${this.isUndone ? html`<span class="badge dim">${t("chat.undone")}</span>` : nothing}
        ${turn.isCopy ? nothing : html`<button class="plain" aria-haspopup="dialog" @click=${() => this.emit("sash-card", turn)}>${t("chat.card")}</button>`}
        ${turn.isEvicted ? html`<a class="dim" href="#/window/${this.conversation.sessionId}?turn=${turn.id}" title=${t("chat.evicted_hint")}>${t("chat.evicted")}</a>` : nothing}
        ${this._renderSources()}
      </div>
      ${followUps.length
        ? html`<div class="row follow-ups" role="group" aria-label=${t("chat.follow_ups")}>
            ${followUps
              .filter((sentence) => !(isUndoable && UNDO_SENTENCES.has(sentence)))
              .map((sentence) => html`<button @click=${() => this.emit("sash-say", sentence)}>${sentence}</button>`)}
          </div>`
        : nothing}
    `;
  }

  /** Return the time of the answer, how long it took, and whether a model was asked. */
  _describe() {
    const { stats, created_at: at, isLocal } = this.turn;
    const words = [formatMoment(at)];
    if (stats) words.push(formatDuration(stats.duration_ms));
    const isOffline = this.me?.model === OFFLINE && stats?.reported_tokens === 0;
    if (stats?.model_calls && !isOffline) words.push(t("chat.model_calls", { count: stats.model_calls }));
    else if (stats?.local_turns || isLocal || (isOffline && stats.model_calls)) words.push(t("chat.no_model"));
    return words.join(" · ");
  }

  _renderSources() {
    const citations = this.turn.response?.citations ?? [];
    if (!citations.length) return nothing;
    return html`<details class="sources">
      <summary class="dim">${t("chat.sources", { count: citations.length })}</summary>
      <ul>${citations.map((each) => html`<li>${renderCitation(each)}</li>`)}</ul>
    </details>`;
  }

  /** Let the keyboard continue in the list if the button is gone. */
  async _keepFocus(button) {
    await new Promise(requestAnimationFrame);
    if (!button.isConnected) this.closest(".scroller")?.focus({ preventScroll: true });
  }

  get _rights() {
    return findRights(this.me, this.session);
  }

  /** Show the new turn that a request starts. */
  async _start(request) {
    await request;
    this.closest("sash-transcript")?.goToEnd();
  }

  _button(key, action, kind = "") {
    const press = async ({ currentTarget: button }) => {
      button.disabled = true;
      await this.attempt(action);
      button.disabled = false;
      this._keepFocus(button);
    };
    return html`<button class=${kind} @click=${press}>${t(key)}</button>`;
  }
}

customElements.define("sash-chat-turn", ChatTurn);
