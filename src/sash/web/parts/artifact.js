/** A large result of a tool: a picture is shown, a table is a table, and every file can be downloaded. */

import { html, nothing } from "../vendor/lit.js";
import { formatBytes, t } from "../text.js";
import { SashElement } from "../element.js";
import { saveFile } from "./save-file.js";
import { parseTable } from "./table-file.js";

const MAX_TABLE_BYTES = 512 << 10;
const PICTURES = /^image\/(png|jpeg|gif|webp)$/;
const TABLES = /^(text\/csv|application\/json)/;

class Artifact extends SashElement {
  static properties = {
    connection: { attribute: false },
    artifact: { attribute: false },
    _table: { state: true },
    _address: { state: true },
    _problem: { state: true },
  };

  connectedCallback() {
    super.connectedCallback();
    if (this.hasUpdated) this._load();
  }

  firstUpdated() {
    this._load();
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    if (this._address) URL.revokeObjectURL(this._address);
    this._address = null;
  }

  get _name() {
    return this.artifact.name || t("chat.file");
  }

  async _load() {
    const { type, size } = this.artifact;
    const isPicture = PICTURES.test(type);
    if (!isPicture && !(TABLES.test(type) && size <= MAX_TABLE_BYTES)) return;
    try {
      const blob = await this._fetch();
      if (isPicture) this._address = URL.createObjectURL(blob);
      else this._table = parseTable(type, await blob.text());
    } catch (error) {
      this._problem = error.message;
    }
  }

  _fetch() {
    return this.connection.blob(`v1/artifacts/${this.artifact.id}`);
  }

  _download() {
    return this.attempt(async () => saveFile(await this._fetch(), this._name));
  }

  render() {
    return html`<figure class="artifact">
      ${this._address ? html`<img src=${this._address} alt=${t("chat.plot", { name: this._name })}>` : nothing}
      ${this._table ? this._renderTable() : nothing}
      <figcaption class="row small">
        <span>${this._name} <span class="dim">${formatBytes(this.artifact.size)}</span></span>
        ${this._problem ? html`<span class="bad">${this._problem}</span>` : nothing}
        <button class="plain small" @click=${this._download}>${t("chat.download")}</button>
      </figcaption>
    </figure>`;
  }

  _renderTable() {
    const { columns, rows, rowCount } = this._table;
    const isNumber = columns.map((_, index) => rows.every((row) => row[index] === "" || !Number.isNaN(Number(row[index]))));
    return html`<div class="wide" tabindex="0" role="group" aria-label=${this._name}>
      <table>
        <thead><tr>${columns.map((column, index) => html`<th class=${isNumber[index] ? "number" : ""}>${column}</th>`)}</tr></thead>
        <tbody>
          ${rows.map(
            (row) => html`<tr>${columns.map((_, index) => html`<td class=${isNumber[index] ? "number" : ""}>${row[index]}</td>`)}</tr>`,
          )}
        </tbody>
      </table>
      ${rowCount > rows.length ? html`<p class="dim small">${t("chat.more_rows", { count: rowCount - rows.length })}</p>` : nothing}
    </div>`;
  }
}

customElements.define("sash-artifact", Artifact);
