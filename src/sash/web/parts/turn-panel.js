/** A dialog with the messages of one turn, where a person pins and tags them. */

import { html, nothing } from "../vendor/lit.js";
import { formatMoment, t, tValue } from "../text.js";
import { SashElement } from "../element.js";
import { KEEPING_TAGS, MAX_NOTE_CHARS, readTags, readText } from "./window-blocks.js";

const TAG_PATTERN = "[0-9A-Za-zÀ-ÖØ-öø-ʯ_:.@+#\\/\\-]{1,64}";

class TurnPanel extends SashElement {
  static properties = {
    connection: { attribute: false },
    sessionId: { attribute: false },
    /** {turn, isKept, isNext} */
    block: { attribute: false },
    reason: { attribute: false },
    canChange: { type: Boolean },
    isBusy: { state: true },
  };

  firstUpdated() {
    this.querySelector("dialog").showModal();
  }

  render() {
    const { turn, isKept, isNext } = this.block;
    const state = isNext ? "window.state_next" : isKept ? "window.state_kept" : "window.state_gone";
    const isTurn = Boolean(turn.messages[0].continuation_id);
    return html`<dialog class="panel" aria-labelledby="turn-panel-title" @close=${() => this.emit("sash-close-panel")}>
      <header class="spread">
        <h2 id="turn-panel-title">${t("window.turn_of", { time: formatMoment(turn.messages[0].timestamp) })}</h2>
        <form method="dialog"><button class="plain" aria-label=${t("close")}>×</button></form>
      </header>
      <p>
        ${t(state)}${isKept ? nothing : html` ${t(`evicted.${this.reason}`)}`}
        ${isKept ? nothing : html`<br><span class="small dim">${t("window.gone_hint")}</span>`}
      </p>
      ${turn.messages.map((message) => this._renderMessage(message, isKept))}
      ${isTurn
        ? html`<p class="row">
            <a class="button" href="#/chat/${this.sessionId}?turn=${turn.id}">${t("window.open_chat")}</a>
            <a class="button" href="#/turn/${turn.id}">${t("window.open_timeline")}</a>
          </p>`
        : nothing}
    </dialog>`;
  }

  _renderMessage(message, isKept) {
    return html`<article class="panel-message">
      <p class="spread small">
        <b>${message.name ?? tValue("window.role", message.role)}</b>
        <span class="dim">${t("tokens", { count: message.token_count })}</span>
      </p>
      <pre>${readText(message)}</pre>
      ${this.canChange ? (isKept ? this._renderTags(message) : this._renderKeep(message)) : nothing}
    </article>`;
  }

  _renderTags(message) {
    const others = readTags([message]).filter((tag) => !KEEPING_TAGS.includes(tag));
    return html`<div class="row tags">
      ${KEEPING_TAGS.map((tag) => {
        const isOn = message.tags.includes(tag);
        return html`<button
          aria-pressed=${isOn}
          title=${t(`window.tag_hint.${tag}`)}
          ?disabled=${this.isBusy}
          @click=${() => this._toggle(message, tag)}
        >${t(isOn ? `window.untag.${tag}` : `window.tag.${tag}`)}</button>`;
      })}
      ${others.map(
        (tag) => html`<span class="badge">${tag}
          <button class="plain" aria-label=${t("window.remove_tag", { tag })} @click=${() => this._toggle(message, tag)}>×</button></span>`,
      )}
      <form class="row" @submit=${(event) => this._addTag(event, message)}>
        <label class="visually-hidden" for="tag-${message.id}">${t("window.new_tag")}</label>
        <input id="tag-${message.id}" name="tag" size="12" pattern=${TAG_PATTERN} placeholder=${t("window.new_tag")} required>
        <button>${t("window.add_tag")}</button>
      </form>
    </div>`;
  }

  /** A message that slid out does not come back. A pin repeats its text in every prompt. */
  _renderKeep(message) {
    const text = typeof message.content === "string" ? message.content.trim().slice(0, MAX_NOTE_CHARS) : "";
    if (!text || message.role === "tool") return nothing;
    return html`<button ?disabled=${this.isBusy} title=${t("window.keep_hint")} @click=${() => this._keep(text)}>${t("window.keep")}</button>`;
  }

  _toggle(message, tag) {
    const has = message.tags.includes(tag);
    return this._change(message, has ? message.tags.filter((each) => each !== tag) : [...message.tags, tag]);
  }

  async _addTag(event, message) {
    event.preventDefault();
    const tag = new FormData(event.target).get("tag").trim();
    const input = event.target.elements.tag;
    if (tag && !message.tags.includes(tag)) await this._change(message, [...message.tags, tag]);
    input.value = "";
  }

  async _change(message, tags) {
    this.isBusy = true;
    const path = `v1/sessions/${this.sessionId}/messages/${message.id}`;
    const changed = await this.attempt(() => this.connection.patch(path, { tags }));
    this.isBusy = false;
    if (!changed) return;
    message.tags = changed.tags;
    this.requestUpdate();
    this.emit("sash-message-changed", changed);
  }

  async _keep(text) {
    this.isBusy = true;
    const pinned = await this.attempt(() => this.connection.post(`v1/sessions/${this.sessionId}/pins`, { text }));
    this.isBusy = false;
    if (!pinned) return;
    this.notify(t("window.kept"));
    this.emit("sash-notes-changed");
  }
}

customElements.define("sash-turn-panel", TurnPanel);
