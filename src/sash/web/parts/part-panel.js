/** A dialog with the text of one part of the prompt. For the memory it lists pins and facts, to add and remove them. */

import { html, nothing } from "../vendor/lit.js";
import { t, tValue } from "../text.js";
import { SashElement } from "../element.js";
import { describeHint, isMemory, MAX_NOTE_CHARS, readText } from "./window-blocks.js";

class PartPanel extends SashElement {
  static properties = {
    connection: { attribute: false },
    sessionId: { attribute: false },
    part: { attribute: false },
    tools: { attribute: false },
    /** What the person may change: {session, facts, pins}. The last two are those of all conversations. */
    rights: { attribute: false },
    notes: { state: true },
  };

  firstUpdated() {
    this.querySelector("dialog").showModal();
    if (this._isMemory) this._loadNotes();
  }

  get _isMemory() {
    return isMemory(this.part) || this.part.name === "pinned";
  }

  /** Load the pins and facts of the session and of the owner. Each keeps the path at which it can be deleted. */
  async _loadNotes() {
    const bases = [`v1/sessions/${this.sessionId}`, "v1"];
    const requests = ["pins", "facts"].flatMap((kind) => bases.map((base) => this._loadKind(base, kind)));
    const found = await this.attempt(() => Promise.all(requests));
    if (found) this.notes = found.flat();
  }

  async _loadKind(base, kind) {
    const list = await this.connection.get(`${base}/${kind}`);
    return list[kind].map((note) => ({ ...note, kind, path: `${base}/${kind}/${note.id}` }));
  }

  render() {
    const { part } = this;
    const hint = describeHint(part.name);
    return html`<dialog class="panel" aria-labelledby="part-panel-title" @close=${() => this.emit("sash-close-panel")}>
      <header class="spread">
        <h2 id="part-panel-title">${tValue("window.part", part.name)} <span class="dim small">${t("tokens", { count: part.tokens })}</span></h2>
        <form method="dialog"><button class="plain" aria-label=${t("close")}>×</button></form>
      </header>
      ${hint ? html`<p class="dim">${hint}</p>` : nothing}
      ${this._isMemory ? this._renderNotes() : nothing}
      ${part.name === "tools" ? this._renderTools() : this._renderText()}
    </dialog>`;
  }

  _renderText() {
    const { sections } = this.part;
    if (!sections.length) return this.part.messages.map((message) => html`<pre>${readText(message)}</pre>`);
    return sections.map(
      (section) => html`<h3>${tValue("window.section", section.name)}
          <span class="dim small">${t("tokens", { count: section.tokens })}</span></h3>
        <pre>${section.text}</pre>`,
    );
  }

  _renderTools() {
    return this.tools.map(
      (tool) => html`<details><summary><code>${tool.function?.name}</code></summary><p>${tool.function?.description}</p>
        <pre>${JSON.stringify(tool.function?.parameters, null, 2)}</pre></details>`,
    );
  }

  _renderNotes() {
    if (!Object.values(this.rights).includes(true)) return nothing;
    const notes = this.notes ?? [];
    return html`
      <h3>${t("window.notes_title")}</h3>
      ${this.notes && !notes.length ? html`<p class="dim">${t("window.no_notes")}</p>` : nothing}
      <ul class="notes">
        ${notes.map(
          (note) => html`<li>
            <span><span class="badge">${t(`window.note.${note.kind}`)}</span> ${note.text || note.entity_id}
              ${note.scope === "owner" ? html`<span class="small dim">${t("window.note_owner")}</span>` : nothing}</span>
            ${this._canRemove(note)
              ? html`<button class="plain" aria-label=${t("window.remove_note", { text: note.text || note.entity_id })} @click=${() => this._remove(note)}>×</button>`
              : nothing}
          </li>`,
        )}
      </ul>
      ${this.rights.session
        ? html`<form class="row" @submit=${this._add}>
            <label for="new-pin">${t("window.new_pin")}</label>
            <input id="new-pin" name="text" maxlength=${MAX_NOTE_CHARS} required>
            <button>${t("window.add_pin")}</button>
          </form>`
        : nothing}
    `;
  }

  _canRemove({ scope, kind }) {
    return this.rights[scope === "owner" ? kind : "session"];
  }

  async _add(event) {
    event.preventDefault();
    const form = event.target;
    const text = new FormData(form).get("text").trim();
    const added = text && (await this.attempt(() => this.connection.post(`v1/sessions/${this.sessionId}/pins`, { text })));
    if (!added) return;
    form.reset();
    await this._changed();
  }

  async _remove(note) {
    const done = await this.attempt(() => this.connection.delete(note.path).then(() => true));
    if (done) await this._changed();
  }

  async _changed() {
    this.emit("sash-notes-changed");
    await this._loadNotes();
  }
}

customElements.define("sash-part-panel", PartPanel);
