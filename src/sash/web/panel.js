/** Starts the page in the sidebar of Home Assistant, with Home Assistant's sign-in, language and theme. */

import { Connection } from "./connection.js";
import { chooseLanguage, getLanguage, loadLanguage, t } from "./text.js";
import { rememberSession } from "./app.js";

const BASE = "/api/sash/";
const AGENT_HEADER = "Sash-Agent";
const AGENT_KEY = "sash.agent";
const RETRY_MS = 1000;

const STYLE = `
  :host { display: flex; flex-direction: column; height: 100vh; height: 100dvh; box-sizing: border-box; padding-top: var(--safe-area-inset-top, 0px); }
  header { display: flex; align-items: center; gap: .5rem; padding: 0 .5rem;
    background: var(--app-header-background-color); color: var(--app-header-text-color); }
  select { font: inherit; padding: .35rem; max-width: 60vw; margin: .3rem 0; }
  sash-app { flex: 1; height: auto; min-height: 0; }
`;

/** Home Assistant sets `hass`, `narrow` and `panel`. The page is made when all of them are there. */
class SashPanel extends HTMLElement {
  constructor() {
    super();
    this.attachShadow({ mode: "open" });
    this._agent = null;
    this._onNavigation = () => window.dispatchEvent(new HashChangeEvent("hashchange"));
    // Home Assistant may have set these before this class was loaded. Then they hide the setters.
    for (const name of ["hass", "narrow", "panel"].filter((each) => Object.hasOwn(this, each))) {
      const value = this[name];
      delete this[name];
      this[name] = value;
    }
  }

  set hass(hass) {
    this._hass = hass;
    this._update();
  }

  set narrow(narrow) {
    this._narrow = narrow;
    this._update();
  }

  set panel(panel) {
    this._agents = panel.config.agents;
    this._update();
  }

  connectedCallback() {
    // Home Assistant follows links itself, and then the browser does not tell of the new hash.
    window.addEventListener("location-changed", this._onNavigation);
    this._update();
  }

  disconnectedCallback() {
    window.removeEventListener("location-changed", this._onNavigation);
  }

  async _update() {
    if (!this._hass || !this._agents) return;
    this._starting ??= this._start();
    try {
      await this._starting;
    } catch {
      return this._startLater();
    }
    if (this._menu) Object.assign(this._menu, { hass: this._hass, narrow: this._narrow });
    const scheme = this._hass.themes?.darkMode ? "dark" : "light";
    this.style.colorScheme = scheme;
    if (this._app) this._app.style.colorScheme = scheme;
    return undefined;
  }

  /** Try again to start, because the words of the page could not be loaded. */
  _startLater() {
    clearTimeout(this._retry);
    this._retry = setTimeout(() => {
      this._starting = null;
      if (this.isConnected) this._update();
    }, RETRY_MS);
  }

  async _start() {
    await loadLanguage(chooseLanguage([this._hass.locale?.language ?? this._hass.language ?? "en"]));
    const style = document.createElement("style");
    style.textContent = STYLE;
    const header = document.createElement("header");
    // On a narrow screen, this button of Home Assistant opens the sidebar.
    this._menu = document.createElement("ha-menu-button");
    header.append(this._menu);
    this.shadowRoot.append(style, header);
    this._agent = this._readAgent();
    if (this._agents.length > 1) header.append(this._makeChoice());
    this._showApp();
  }

  _makeChoice() {
    const select = document.createElement("select");
    select.setAttribute("aria-label", t("panel.agent"));
    for (const { id, name } of this._agents) select.append(new Option(name, id, false, id === this._agent));
    select.addEventListener("change", () => {
      this._agent = select.value;
      localStorage.setItem(AGENT_KEY, select.value);
      // The session may belong to the provider of another agent.
      rememberSession(null);
      history.replaceState(null, "", "#/chat");
      this._showApp();
    });
    return select;
  }

  _showApp() {
    this._app?.remove();
    this._app = document.createElement("sash-app");
    this._app.lang = getLanguage();
    this._app.connection = new Connection((path, options) => this._send(path, options));
    this.shadowRoot.append(this._app);
    this._update();
  }

  _send(path, options = {}) {
    // Home Assistant adds its token to these headers, which have to be a plain object.
    const headers = { ...options.headers, [AGENT_HEADER]: this._agent };
    return this._hass.fetchWithAuth(`${BASE}${path}`, { ...options, headers, cache: "no-store" });
  }

  /** Return the agent that was chosen last in this browser, or the first one. */
  _readAgent() {
    const known = localStorage.getItem(AGENT_KEY);
    return this._agents.some(({ id }) => id === known) ? known : this._agents[0].id;
  }
}

customElements.define("sash-panel", SashPanel);
