/** The history: all sessions, a search in everything that was said, and files of sessions. */

import { html, nothing, repeat } from "../vendor/lit.js";
import { t } from "../text.js";
import { withQuery } from "../connection.js";
import { SashElement } from "../element.js";
import { splitWords } from "../parts/highlight.js";
import { Refresher } from "../parts/refresher.js";
import { findRights } from "../parts/rights.js";
import { importSession } from "../parts/session-file.js";
import { readSessionTitle } from "../parts/session-title.js";
import "../parts/search-hits.js";
import "../parts/session-row.js";

const PAGE = 30;
const MAX_PAGE = 500;
const MAX_HITS = 100;
// Names are searched in this many of the newest sessions.
const MAX_NAMED = 200;
const MAX_OPEN_TURNS = 100;
const REFRESH_MS = 60_000;
const DAY_MS = 86_400_000;
const ID_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const STATUSES = ["", "active", "ended", "expired"];
const PERIODS = ["", "today", "week", "month", "older"];
const SPEAKERS = ["", "user", "assistant"];
const NO_FILTERS = { status: "", period: "", speaker: "" };

class HistoryView extends SashElement {
  static properties = {
    connection: { attribute: false },
    me: { attribute: false },
    /** The words to search for, or an empty text for the list of all sessions. */
    query: { attribute: false },
    _filters: { state: true },
    /** {sessions, titles, cursor, openTurns}, and `hits` of a search; null before the first answer. */
    _found: { state: true },
    _problem: { state: true },
  };

  constructor() {
    super();
    this._filters = NO_FILTERS;
    this._found = null;
    new Refresher(this, () => this._load(), REFRESH_MS);
  }

  updated(changed) {
    if (!changed.has("query") || changed.get("query") === undefined) return;
    this._found = null;
    this._load();
  }

  /** Load what is shown. An answer that comes after a newer request is ignored. */
  async _load() {
    const number = (this._number = (this._number ?? 0) + 1);
    try {
      const found = this.query ? await this._search() : await this._list(Math.max(PAGE, this._found?.sessions.length ?? 0));
      if (number !== this._number) return;
      this._found = found;
      this._problem = null;
    } catch (error) {
      if (number === this._number) this._problem = error;
    }
  }

  async _list(limit) {
    const [page, open] = await Promise.all([
      this._readSessions(Math.min(MAX_PAGE, limit)),
      this.connection.get("v1/continuations", { open: true, limit: MAX_OPEN_TURNS }),
    ]);
    // The newest turn comes first, so the last one of a session to be set has to be it.
    const openTurns = new Map(open.continuations.toReversed().map((turn) => [turn.session_id, turn]));
    return { ...page, openTurns };
  }

  /** Return a page of sessions that match the filters: {sessions, titles, cursor}. `cursor` is null at the end. */
  async _readSessions(limit, after) {
    const { start, end } = findBounds(this._filters.period);
    const query = { include: "titles", status: this._filters.status, limit, cursor: after ?? (end && makeBound(end)) };
    const page = await this.connection.get("v1/sessions", query);
    // Sessions are listed by their ids, and the first part of an id is its time.
    const sessions = start ? page.sessions.filter(({ id }) => id >= makeBound(start)) : page.sessions;
    const isOver = sessions.length < page.sessions.length;
    return { sessions, titles: page.titles, cursor: isOver ? null : page.next_cursor };
  }

  async _search() {
    const [{ messages }, page] = await Promise.all([
      this.connection.get("v1/search", { q: this.query, limit: MAX_HITS }),
      this.connection.get("v1/sessions", { include: "titles", limit: MAX_NAMED }),
    ]);
    const words = splitWords(this.query);
    const isWanted = ({ name }) => name && words.length && words.every((word) => splitWords(name).some((each) => each.startsWith(word)));
    return { hits: messages, sessions: page.sessions.filter(isWanted), titles: page.titles, cursor: null, openTurns: new Map() };
  }

  async _showMore() {
    const { sessions, titles, cursor, openTurns } = this._found;
    const page = await this.attempt(() => this._readSessions(PAGE, cursor));
    if (!page || this._found?.cursor !== cursor) return;
    this._found = { sessions: [...sessions, ...page.sessions], titles: { ...titles, ...page.titles }, cursor: page.cursor, openTurns };
    await this.updateComplete;
    this._focusRow(sessions.length);
  }

  _focusRow(index) {
    const rows = this.querySelectorAll("sash-session-row");
    const row = rows[Math.min(index, rows.length - 1)];
    if (row) row.focusTitle();
    else this.querySelector("h1").focus();
  }

  async _onDeleted({ detail: id }) {
    const index = this._found.sessions.findIndex((session) => session.id === id);
    this._found = { ...this._found, sessions: this._found.sessions.filter((session) => session.id !== id) };
    if (this._found.hits) this._found.hits = this._found.hits.filter((hit) => hit.session_id !== id);
    await this.updateComplete;
    this._focusRow(index);
  }

  _submit(event) {
    event.preventDefault();
    const words = new FormData(event.target).get("q").trim();
    if (words === this.query) this._load();
    else location.hash = withQuery("#/history", { q: words });
  }

  _choose(name, value) {
    this._filters = { ...this._filters, [name]: value };
    if (this.query) return;
    this._found = null;
    this._load();
  }

  _clearFilters() {
    this._filters = NO_FILTERS;
    this._found = null;
    this._load();
    this.querySelector("#search-words").focus();
  }

  async _import(event) {
    const [file] = event.target.files;
    event.target.value = "";
    if (!file) return;
    const imported = await this.attempt(() => importSession(this.connection, file));
    if (!imported) return;
    this.notify(t(imported.isKnown ? "history.import_known" : "history.imported"));
    location.hash = `#/chat/${encodeURIComponent(imported.id)}`;
  }

  render() {
    return html`<div class="page history" @sash-session-changed=${() => this._load()} @sash-session-deleted=${this._onDeleted}>
      <header class="spread">
        <h1 tabindex="-1">${t("history.title")}</h1>
        ${findRights(this.me).mayTalk
          ? html`<button title=${t("history.import_hint")} @click=${() => this.querySelector("#session-file").click()}>${t("history.import")}</button>
              <input id="session-file" type="file" accept=".json,application/json" aria-label=${t("history.import")} hidden @change=${this._import}>`
          : nothing}
      </header>
      <form class="search" role="search" @submit=${this._submit}>
        <label for="search-words">${t("history.search")}</label>
        <div class="row">
          <input id="search-words" name="q" type="search" maxlength="256" autocomplete="off" .value=${this.query ?? ""} aria-describedby="search-hint">
          <button class="primary">${t("history.search_submit")}</button>
          ${this.query ? html`<a class="button" href="#/history">${t("history.all")}</a>` : nothing}
        </div>
        <p id="search-hint" class="small dim">${t("history.search_hint")}</p>
      </form>
      <div class="row history-filters" role="group" aria-label=${t("history.filters")}>
        ${this.query ? this._renderFilter("speaker", SPEAKERS) : this._renderFilter("status", STATUSES)} ${this._renderFilter("period", PERIODS)}
      </div>
      ${this._problem ? this._renderProblem(this._problem) : nothing}
      ${this._found ? this._renderFound(this._found) : this._problem ? nothing : html`<p class="loading" role="status">${t("loading")}</p>`}
    </div>`;
  }

  _renderFilter(name, values) {
    return html`<div class="row">
      <label for="filter-${name}">${t(this.query && name === "period" ? "history.filter.said" : `history.filter.${name}`)}</label>
      <select id="filter-${name}" @change=${(event) => this._choose(name, event.target.value)}>
        ${values.map((value) => html`<option value=${value} ?selected=${value === this._filters[name]}>${t(`history.${name}.${value || "any"}`)}</option>`)}
      </select>
    </div>`;
  }

  _renderProblem({ message }) {
    return html`<p class="error" role="alert">${t("history.problem", { message })} <button @click=${() => this._load()}>${t("history.again")}</button></p>`;
  }

  _renderFound(found) {
    return found.hits ? this._renderSearch(found) : this._renderList(found);
  }

  _renderList({ sessions, cursor }) {
    if (!sessions.length) return this._renderNone();
    const count = sessions.length;
    return html`<div role="status"><h2>${t(cursor ? "history.first" : "history.count", { count })}</h2></div>
      ${this._renderSessions()}
      ${cursor ? html`<button @click=${this._showMore}>${t("history.older")}</button>` : nothing}`;
  }

  /** Draw the sessions. Also one that has ended can be copied and deleted. */
  _renderSessions() {
    const { sessions, titles, openTurns } = this._found;
    return html`<ul class="sessions">
      ${repeat(
        sessions,
        (session) => session.id,
        (session) => html`<li>
          <sash-session-row
            .connection=${this.connection}
            .session=${session}
            .title=${readSessionTitle(session, titles)}
            .openTurn=${openTurns.get(session.id)}
            ?canChange=${findRights(this.me, session).mayChange}
          ></sash-session-row>
        </li>`,
      )}
    </ul>`;
  }

  _renderNone() {
    const { status, period } = this._filters;
    if (status || period) {
      return html`<div class="empty" role="status">
        <p>${t("history.none_filtered")}</p>
        <button @click=${this._clearFilters}>${t("history.clear_filters")}</button>
      </div>`;
    }
    return html`<div class="empty" role="status">
      <p>${t("history.none")}</p>
      <p><a class="button" href="#/chat">${t("history.start_chat")}</a></p>
    </div>`;
  }

  _renderSearch({ hits, sessions, titles }) {
    const shown = this._filterHits(hits);
    return html`
      ${sessions.length ? html`<h2>${t("history.named")}</h2>${this._renderSessions()}<h2>${t("history.said_title")}</h2>` : nothing}
      ${shown.length
        ? html`<p class="small dim" role="status">${t(hits.length < MAX_HITS ? "history.hits" : "history.best_hits", { count: shown.length })}</p>
            <sash-search-hits .connection=${this.connection} .hits=${shown} .titles=${titles} .query=${this.query}></sash-search-hits>`
        : html`<div class="empty" role="status">
            <p>${t("history.no_hits", { words: this.query })}</p>
            ${hits.length ? html`<button @click=${this._clearFilters}>${t("history.clear_filters")}</button>` : html`<p>${t("history.no_hits_how")}</p>`}
          </div>`}
    `;
  }

  _filterHits(hits) {
    const { start, end } = findBounds(this._filters.period);
    const { speaker } = this._filters;
    return hits.filter(({ role, timestamp }) => {
      const at = Date.parse(timestamp);
      return (!speaker || role === speaker) && (!start || at >= start) && (!end || at < end);
    });
  }
}

/** Return the first moment and the end of a period in milliseconds, as far as it has them. */
function findBounds(period) {
  const now = Date.now();
  switch (period) {
    case "today":
      return { start: new Date().setHours(0, 0, 0, 0) };
    case "week":
      return { start: now - 7 * DAY_MS };
    case "month":
      return { start: now - 30 * DAY_MS };
    case "older":
      return { end: now - 30 * DAY_MS };
    default:
      return {};
  }
}

/** Return the smallest id of a session that can start at a moment. The ids are ULIDs. */
function makeBound(ms) {
  let rest = ms;
  let text = "";
  for (let place = 0; place < 10; place += 1) {
    text = ID_DIGITS[rest % 32] + text;
    rest = Math.floor(rest / 32);
  }
  return text.padEnd(26, "0");
}

customElements.define("sash-history", HistoryView);
