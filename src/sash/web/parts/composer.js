/** The field in which a person writes a message. Enter sends, Shift+Enter starts a new line. */

import { html, nothing } from "../vendor/lit.js";
import { t } from "../text.js";
import { SashElement } from "../element.js";

class Composer extends SashElement {
  static properties = {
    /** Why nothing can be sent: {words, canStartNew}, or null. */
    obstacle: { attribute: false },
    _text: { state: true },
  };

  constructor() {
    super();
    this._text = "";
  }

  get field() {
    return this.querySelector("textarea");
  }

  /** Put a text into the empty field, such as one that could not be sent. */
  restore(text) {
    if (!this._text) this._text = text;
    this.field?.focus();
  }

  render() {
    if (this.obstacle) {
      return html`<div class="composer obstacle">
        <p>${this.obstacle.words}</p>
        ${this.obstacle.canStartNew ? html`<a class="button" href="#/chat" @click=${() => this.emit("sash-session", null)}>${t("chat.new")}</a>` : nothing}
      </div>`;
    }
    return html`<form class="composer" @submit=${this._submit}>
      <label class="visually-hidden" for="message">${t("chat.message")}</label>
      <textarea
        id="message"
        rows="1"
        enterkeyhint="send"
        autocomplete="off"
        placeholder=${t("chat.placeholder")}
        .value=${this._text}
        @input=${(event) => (this._text = event.target.value)}
        @keydown=${this._onKey}
      ></textarea>
      <button class="primary" ?disabled=${!this._text.trim()} title=${t("chat.send_hint")}>${t("chat.send")}</button>
    </form>`;
  }

  updated() {
    if (this.obstacle) return;
    // Browsers without `field-sizing` need the height in pixels.
    if (CSS.supports("field-sizing", "content")) return;
    this.field.style.height = "auto";
    this.field.style.height = `${this.field.scrollHeight + 2}px`;
  }

  _onKey(event) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    this._submit(event);
  }

  _submit(event) {
    event.preventDefault();
    const text = this._text.trim();
    if (!text) return;
    this._text = "";
    this.emit("sash-say", text);
  }
}

customElements.define("sash-composer", Composer);
