/** The frame of the page: sign-in, navigation, notices, and the view that the address names. */

import { css, html, LitElement, nothing, unsafeCSS } from "./vendor/lit.js";
import { Refresher } from "./parts/refresher.js";
import { t } from "./text.js";

const SHEETS = ["base", "chat", "window", "history", "house", "costs"];
const styles = await Promise.all(SHEETS.map(readSheet));

// The view that is shown is loaded first, and the others later.
const VIEWS = {
  chat: () => import("./views/chat.js"),
  window: () => import("./views/window.js"),
  history: () => import("./views/history.js"),
  turn: () => import("./views/turn.js"),
  house: () => import("./views/house.js"),
  costs: () => import("./views/costs.js"),
};
const TABS = ["chat", "window", "history", "house", "costs"];
const ICONS = {
  chat: "M4 5h16v11H9l-5 4z",
  window: "M5 3h14v18H5zM5 10h14M5 13h14M12 3v7M12 13v8",
  history: "M12 7v5l3 2M4.5 12a7.5 7.5 0 1 0 2.4-5.5M4.5 4v3.5H8",
  house: "M4 11 12 4l8 7v9h-6v-5h-4v5H4z",
  waiting: "M12 4 3 20h18zM12 10v5M12 17.5v.5",
  costs: "M5 20V10M10 20V4M15 20v-7M20 20V8",
};
const NOTICE_MS = 8000;
const RETRY_MS = 1000;
const PRELOAD_MS = 500;
const WAITING_MS = 30_000;
const MAX_WAITING = 20;
// The session that the chat showed last in this browser.
const SESSION_KEY = "sash.session";

class SashApp extends LitElement {
  static properties = {
    connection: { attribute: false },
    route: { state: true },
    me: { state: true },
    problem: { state: true },
    notices: { state: true },
    /** The questions that wait for an approval: their number, and the oldest turn. */
    _waiting: { state: true },
  };

  static styles = css`${unsafeCSS(styles.join("\n"))}`;

  constructor() {
    super();
    this.notices = [];
    this._waiting = { count: 0 };
    new Refresher(this, () => this._readWaiting(), WAITING_MS);
    this.addEventListener("sash-waiting", () => this._readWaiting());
    this.problem = null;
    this.me = null;
    this.route = readRoute();
    this._onHash = () => this._isHere() && this._go(readRoute());
    this._onRefused = ({ detail }) => this._signOut(detail);
    this.addEventListener("sash-notice", (event) => this._showNotice(event.detail));
    this.addEventListener("sash-session", (event) => rememberSession(event.detail));
  }

  connectedCallback() {
    super.connectedCallback();
    this._place = findPlace();
    window.addEventListener("hashchange", this._onHash);
    this.connection.addEventListener("refused", this._onRefused);
    this._connect();
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    window.removeEventListener("hashchange", this._onHash);
    this.connection.removeEventListener("refused", this._onRefused);
    clearTimeout(this._retry);
  }

  async _connect() {
    try {
      this.me = await this.connection.get("v1/me");
      this.problem = null;
      await this._go(readRoute());
      // The other views are then there at once, also while the server cannot be reached.
      setTimeout(() => Object.values(VIEWS).forEach((load) => load().catch(() => {})), PRELOAD_MS);
    } catch (error) {
      this.problem = error;
      if (error.code === "unreachable") this._retry = setTimeout(() => this._connect(), RETRY_MS);
    }
  }

  /** Return false if the address is that of another panel of Home Assistant. Its hash is not ours. */
  _isHere() {
    return findPlace() === this._place;
  }

  /** Ask for another token. */
  _signOut(error) {
    this.dispatchEvent(new CustomEvent("sash-token", { detail: null }));
    // A visitor without a token has not tried one yet.
    if (this.me) this._hasTried = true;
    this.me = null;
    this.problem = error;
  }

  async _go(route) {
    this._wanted = route;
    try {
      await VIEWS[route.view]();
    } catch {
      this._showNotice({ message: t("problem.unreachable"), kind: "error" });
      return;
    }
    // The person may have gone on while the view was loaded.
    if (route !== this._wanted) return;
    this.route = route;
    // A reader of the screen hears the name of the new view.
    document.title = `${t(`nav.${tabOf(route.view)}`)} · Sash`;
    this._readWaiting();
  }

  _showNotice(notice) {
    const shown = { ...notice, id: crypto.randomUUID?.() ?? Math.random() };
    this.notices = [...this.notices.slice(-2), shown];
    if (notice.kind !== "error") setTimeout(() => this._closeNotice(shown), NOTICE_MS);
  }

  _closeNotice(notice) {
    this.notices = this.notices.filter((each) => each !== notice);
  }

  render() {
    if (!this.me) return this.problem ? this._renderProblem() : html`<p class="loading" role="status">${t("loading")}</p>`;
    return html`
      <nav class="rail" aria-label=${t("nav.label")}>
        <button class="skip" @click=${() => this.renderRoot.getElementById("main").focus()}>${t("nav.skip")}</button>
        <a class="brand" href="#/chat" aria-label="Sash">${drawIcon("window")}<span>Sash</span></a>
        ${TABS.map((tab) => this._renderTab(tab))}
        ${this._renderWaiting()}
      </nav>
      <main id="main" tabindex="-1">${this._renderView()}</main>
      <div class="notices" role="status" aria-live="polite">
        ${this.notices.map(
          (notice) => html`<p class="notice ${notice.kind}">
            <span>${notice.message}</span>
            <button class="plain" aria-label=${t("close")} @click=${() => this._closeNotice(notice)}>×</button>
          </p>`,
        )}
      </div>
    `;
  }

  _renderTab(tab) {
    const isCurrent = tabOf(this.route.view) === tab;
    return html`<a href=${tabLink(tab, this.route)} aria-current=${isCurrent ? "page" : nothing}>
      ${drawIcon(tab)}<span>${t(`nav.${tab}`)}</span>
    </a>`;
  }

  /** Draw a link to the oldest question that waits for an approval, if there is one. */
  _renderWaiting() {
    const { count, turn } = this._waiting;
    if (!count) return nothing;
    const link = `#/chat/${encodeURIComponent(turn.session_id)}?turn=${encodeURIComponent(turn.continuation_id)}`;
    return html`<a class="waiting" href=${link}>${drawIcon("waiting")}<span>${t("nav.waiting", { count })}</span></a>`;
  }

  async _readWaiting() {
    if (!this.me) return;
    try {
      const { continuations } = await this.connection.get("v1/continuations", { status: "awaiting_approval", limit: MAX_WAITING });
      this._waiting = { count: continuations.length, turn: continuations.at(-1) };
    } catch {
      // The page works without it, and asks again.
    }
  }

  _renderView() {
    const { view, id, query } = this.route;
    const { connection, me } = this;
    switch (view) {
      case "chat":
        return html`<sash-chat .connection=${connection} .me=${me} .sessionId=${id} .turnId=${query.get("turn")}></sash-chat>`;
      case "window":
        return html`<sash-window .connection=${connection} .me=${me} .sessionId=${id} .turnId=${query.get("turn")}></sash-window>`;
      case "history":
        return html`<sash-history .connection=${connection} .me=${me} .query=${query.get("q") ?? ""}></sash-history>`;
      case "turn":
        return html`<sash-turn .connection=${connection} .me=${me} .turnId=${id}></sash-turn>`;
      case "house":
        return html`<sash-house .connection=${connection} .me=${me}></sash-house>`;
      default:
        return html`<sash-costs .connection=${connection} .me=${me}></sash-costs>`;
    }
  }

  _renderProblem() {
    if (this.problem.code !== "unauthorized") {
      return html`<main class="gate">
        <h1>${t("problem.title")}</h1>
        <p role="alert">${this.problem.code === "unreachable" ? t("problem.unreachable") : this.problem.message}</p>
      </main>`;
    }
    return html`<main class="gate">
      <h1>${t("signin.title")}</h1>
      <p>${t("signin.why")} <code>sash token create --owner me --scope read,converse,act</code></p>
      <form @submit=${this._signIn}>
        <label for="token">${t("signin.token")}</label>
        <input id="token" name="token" type="password" autocomplete="off" required>
        <button class="primary">${t("signin.submit")}</button>
      </form>
      ${this._hasTried ? html`<p class="error" role="alert">${t("signin.refused")}</p>` : nothing}
    </main>`;
  }

  async _signIn(event) {
    event.preventDefault();
    const token = new FormData(event.target).get("token").trim();
    this._hasTried = true;
    // A browser cannot send other characters in a header.
    if (!/^[\x21-\x7e]{1,200}$/.test(token)) return this.requestUpdate();
    this.dispatchEvent(new CustomEvent("sash-token", { detail: token }));
    this.notices = [];
    return this._connect();
  }
}

async function readSheet(name) {
  const response = await fetch(new URL(`styles/${name}.css`, import.meta.url));
  return response.text();
}

function tabOf(view) {
  return view === "turn" ? "history" : view;
}

/** Return the link of a tab. The chat and the window show the session that was shown last. */
function tabLink(tab, route) {
  const isOfSession = tab === "chat" || tab === "window";
  const session = route.view === "chat" || route.view === "window" ? route.id : null;
  const shown = session ?? readSession();
  return isOfSession && shown ? `#/${tab}/${encodeURIComponent(shown)}` : `#/${tab}`;
}

/** Return the view, the id and the query of the address: `#/window/01ABC?x=y`. */
function readRoute() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [view, id = ""] = path.split("/");
  const known = Object.hasOwn(VIEWS, view) ? view : "chat";
  return { view: known, id: decodeId(id) || (known === "window" ? readSession() : null), query: new URLSearchParams(query) };
}

/** Return the first part of the path. Each panel of Home Assistant has its own. */
function findPlace() {
  return location.pathname.split("/")[1];
}

function decodeId(id) {
  try {
    return decodeURIComponent(id);
  } catch {
    return "";
  }
}

/** Keep the session that the chat opens next time, or forget it if it is null. */
export function rememberSession(sessionId) {
  try {
    if (sessionId) localStorage.setItem(SESSION_KEY, sessionId);
    else localStorage.removeItem(SESSION_KEY);
  } catch {
    // A browser may forbid it. Then the chat starts with the newest session.
  }
}

export function readSession() {
  try {
    return localStorage.getItem(SESSION_KEY);
  } catch {
    return null;
  }
}

function drawIcon(name) {
  return html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d=${ICONS[name]} /></svg>`;
}

customElements.define("sash-app", SashApp);
