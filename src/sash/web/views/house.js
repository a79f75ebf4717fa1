/** The house: what the agent sees, what it did, and what it may do. */

import { html, nothing } from "../vendor/lit.js";
import { getLanguage, t } from "../text.js";
import { SashElement } from "../element.js";
import { Refresher } from "../parts/refresher.js";
import { renderPolicy } from "../parts/policy-card.js";
import "../parts/action-list.js";
import "../parts/entity-list.js";

const REFRESH_MS = 15_000;
// A list of actions reads many turns.
const ACTIONS_MS = 60_000;
// The states of a larger house are not read again by themselves.
const MAX_LIVE_ENTITIES = 500;
const FIRST_ACTIONS = 5;
const MORE_ACTIONS = 20;
const MAX_ACTIONS = 200;

class HouseView extends SashElement {
  static properties = {
    connection: { attribute: false },
    me: { attribute: false },
    home: { state: true },
    /** The page of actions, or the error of its request. */
    actions: { state: true },
    limit: { state: true },
    problem: { state: true },
  };

  constructor() {
    super();
    this.limit = FIRST_ACTIONS;
    new Refresher(this, () => this._refreshHome(), REFRESH_MS);
    new Refresher(this, () => this._loadActions(), ACTIONS_MS);
  }

  _load() {
    return Promise.all([this._loadHome(), this._loadActions()]);
  }

  /** Load what is cheap to load: the states of a large house only once. */
  async _refreshHome() {
    if ((this.home?.entities.length ?? 0) <= MAX_LIVE_ENTITIES) await this._loadHome();
  }

  async _loadHome() {
    try {
      this.home = await this.connection.get("v1/home", { language: getLanguage() });
      this.problem = null;
    } catch (error) {
      this.problem = error;
    }
  }

  async _loadActions() {
    this.actions = await this.connection.get("v1/actions", { limit: this.limit }).catch((error) => error);
  }

  render() {
    return html`<div class="page house" @sash-house-changed=${() => this._load()}>
      <header class="spread">
        <div>
          <h1>${t("house.title")}</h1>
          ${this.home ? this._renderConnection(this.home) : nothing}
        </div>
        <button @click=${() => this._load()}>${t("house.refresh")}</button>
      </header>
      ${this.problem ? html`<p class="error" role="alert">${t("house.problem", { message: this.problem.message })}</p>` : nothing}
      ${this.home ? this._renderHome(this.home) : this.problem ? nothing : html`<p class="loading" role="status">${t("loading")}</p>`}
    </div>`;
  }

  _renderConnection({ name, is_connected: isConnected, time_zone: zone }) {
    if (!name) return nothing;
    return html`<p class="connection">
      <b>${name}</b>
      ${isConnected ? html`<span class="good">● ${t("house.connected")}</span>` : html`<span class="bad">▲ ${t("house.not_connected")}</span>`}
      ${zone ? html`<span class="dim">${zone}</span>` : nothing}
    </p>`;
  }

  _renderHome(home) {
    return html`<div class="columns">
      <section>
        <h2>${t("house.sees")}</h2>
        ${home.is_connected
          ? html`<p class="dim small">${t("house.sees.hint")}</p><sash-entity-list .home=${home}></sash-entity-list>`
          : renderAdvice(home)}
      </section>
      <div>
        <section class="card">
          <h2>${t("action.title")}</h2>
          ${this._renderActions(home)}
        </section>
        ${renderPolicy(this.me)}
      </div>
    </div>`;
  }

  _renderActions(home) {
    const { actions: page } = this;
    if (!page) return nothing;
    if (page instanceof Error) return html`<p class="error">${page.message}</p>`;
    if (!page.actions.length) {
      return html`<p class="dim">${t(home.is_connected && this.me.policy.allow_actuation ? "action.none" : "action.never")}</p>`;
    }
    const names = new Map(home.entities.map((entity) => [entity.entity_id, entity.name]));
    return html`<p class="dim small">${t("action.hint")}</p>
      <sash-action-list .connection=${this.connection} .me=${this.me} .actions=${page.actions} .names=${names}></sash-action-list>
      ${page.next_cursor && this.limit < MAX_ACTIONS ? html`<button @click=${this._showMore}>${t("action.more")}</button>` : nothing}`;
  }

  _showMore() {
    this.limit = Math.min(MAX_ACTIONS, this.limit + MORE_ACTIONS);
    return this._loadActions();
  }
}

/** Draw what to do about a house that is missing or does not answer. */
function renderAdvice({ name, problem }) {
  if (!name) {
    return html`<div class="card">
      <h3>${t("house.none")}</h3>
      <p>${t("house.none.how")}</p>
      <pre>SASH_HOME_URL=http://homeassistant.local:8123
SASH_HOME_TOKEN=…</pre>
    </div>`;
  }
  return html`<div class="card" role="alert">
    <h3>${t("house.broken")}</h3>
    <p>${problem}</p>
    <p>${t("house.broken.how")}</p>
  </div>`;
}

customElements.define("sash-house", HouseView);
