/** Costs and health: money and tokens by day, times, errors, turns that wait or failed, and the state of the server. */

import { html, nothing } from "../vendor/lit.js";
import { formatCost, formatDuration, formatNumber, formatShare, getLanguage, t } from "../text.js";
import { SashElement } from "../element.js";
import { Refresher } from "../parts/refresher.js";
import { renderCostSummary } from "../parts/cost-summary.js";
import { renderErrors, renderFigures } from "../parts/figures-table.js";
import { findRights } from "../parts/rights.js";
import { renderHealth } from "../parts/server-health.js";
import { formatSpent, readSpent } from "../parts/spent.js";
import "../parts/chart.js";
import "../parts/turn-list.js";

const RANGES = [7, 30, 90];
const REFRESH_MS = 60_000;
const MAX_OPEN = 50;
const MAX_FAILED = 10;

class CostsView extends SashElement {
  static properties = {
    connection: { attribute: false },
    me: { attribute: false },
    range: { state: true },
    data: { state: true },
    problem: { state: true },
  };

  constructor() {
    super();
    this.range = 30;
    new Refresher(this, () => this._load(), REFRESH_MS);
  }

  async _load() {
    const { connection, range } = this;
    // The view stands with the statistics. Each of the others may fail for itself.
    const orError = (promise) => promise.catch((error) => error);
    try {
      const [stats, open, failed, readiness] = await Promise.all([
        connection.get("v1/stats", { days: range }),
        orError(connection.get("v1/continuations", { open: true, limit: MAX_OPEN })),
        orError(connection.get("v1/continuations", { status: "failed", limit: MAX_FAILED })),
        orError(connection.get("ready")),
      ]);
      if (range !== this.range) return;
      this.data = { stats, open, failed, readiness, days: stats.days.map(({ day }) => day), charts: describeCharts(stats) };
      this.problem = null;
    } catch (error) {
      this.problem = error;
    }
  }

  render() {
    return html`<div class="page costs" @sash-turn-cancelled=${() => this._load()}>
      <header class="spread">
        <h1>${t("costs.title")}</h1>
        <div class="row">${this._renderRanges()}<button @click=${() => this._load()}>${t("costs.refresh")}</button></div>
      </header>
      ${this.problem ? html`<p class="error" role="alert">${t("costs.problem", { message: this.problem.message })}</p>` : nothing}
      ${this.data ? this._renderData(this.data) : this.problem ? nothing : html`<p class="loading" role="status">${t("loading")}</p>`}
    </div>`;
  }

  _renderRanges() {
    return html`<div class="ranges" role="group" aria-label=${t("costs.range")}>
      ${RANGES.map(
        (days) => html`<button aria-pressed=${days === this.range} @click=${() => this._choose(days)}>${t("costs.days", { count: days })}</button>`,
      )}
    </div>`;
  }

  _renderData({ stats, open, failed, readiness, days, charts }) {
    return html`
      ${renderCostSummary(stats)}
      ${this._renderWaiting(open)}
      <h2>${t("costs.by_day")}</h2>
      ${stats.period.total_requests ? this._renderCharts(days, charts, stats.period) : html`<p class="card empty">${t("costs.nothing")} <a href="#/chat">${t("costs.nothing.chat")}</a></p>`}
      <div class="columns">
        <section class="card">
          <h2 id="open-turns">${t("costs.open")}</h2>
          <p class="dim small">${t("costs.open.hint")}</p>
          ${this._renderTurns(open, true)}
          <h2>${t("costs.failed")}</h2>
          ${this._renderTurns(failed, false)}
          <h2>${t("costs.errors", { count: days.length })}</h2>
          ${renderErrors(stats.period)}
        </section>
        <section class="card">
          <h2>${t("costs.health")}</h2>
          ${renderHealth(this.me, stats, readiness)}
        </section>
      </div>
      <section class="card">
        <h2>${t("costs.figures")}</h2>
        ${renderFigures(stats)}
      </section>
    `;
  }

  /** Draw how many turns wait, with a button that leads to them. */
  _renderWaiting(open) {
    const count = open.continuations?.length;
    if (!count) return nothing;
    const show = () => this.querySelector("#open-turns").scrollIntoView({ block: "start" });
    return html`<p class="waiting"><span class="warn">${t("costs.waiting", { count })}</span> <button class="link" @click=${show}>${t("costs.waiting.show")}</button></p>`;
  }

  _renderCharts(days, charts, { unpriced_calls: unpriced }) {
    return html`<div class="charts">
      ${charts.map(
        ({ key, kind, top, format, series }) => html`<sash-chart
          class=${key === "cost" ? "wide" : ""}
          .heading=${t(`costs.chart.${key}`)}
          .hint=${t(`costs.chart.${key}.hint`)}
          .kind=${kind}
          .top=${top}
          .emptyText=${key === "cost" && unpriced ? t("costs.unpriced", { count: unpriced }) : undefined}
          .isWhole=${format === formatCount || format === formatNumber}
          .format=${format}
          .formatExact=${format === formatCount ? formatNumber : format}
          .days=${days}
          .series=${series}
        ></sash-chart>`,
      )}
    </div>`;
  }

  _renderTurns(found, isOpen) {
    if (found instanceof Error) return html`<p class="error">${found.message}</p>`;
    const turns = found.continuations;
    if (!turns.length) return html`<p class="dim">${t(isOpen ? "costs.open.none" : "costs.failed.none")}</p>`;
    // The list has no policies of sessions. The server refuses to cancel a turn of a session that may do more.
    const mayCancel = isOpen && findRights(this.me).mayTalk;
    return html`<sash-turn-list .connection=${this.connection} .turns=${turns} ?isOpen=${isOpen} ?canCancel=${mayCancel}></sash-turn-list>`;
  }

  _choose(days) {
    this.range = days;
    this._load();
  }
}

/** Return the charts of the last days. A day without turns has no times and no cached share. */
function describeCharts({ days, period }) {
  const chart = (key, kind, format, series, top) => ({
    key,
    kind,
    format,
    top,
    // Each series: the key of its words, its colour, and the number of a summary.
    series: series.map(([name, color, read, formatWhole = (whole) => format(read(whole))]) => ({
      label: t(`costs.series.${name}`),
      color,
      values: days.map(read),
      whole: formatWhole(period),
    })),
  });
  return [
    chart("cost", "bars", formatCost, [["cost", "--part-window", readSpent, formatSpent]]),
    chart("tokens", "bars", formatCount, [
      ["cached", "--part-home", (each) => each.cached_tokens],
      ["fresh", "--part-facts", (each) => each.input_tokens - each.cached_tokens],
      ["output", "--part-system", (each) => each.output_tokens],
    ]),
    chart("cached", "lines", formatShare, [["cached_share", "--part-home", (each) => (each.input_tokens ? each.cached_share : null)]], 1),
    chart("turns", "bars", formatNumber, [
      ["local", "--part-turn", (each) => each.local_count],
      ["model", "--part-window", (each) => each.model_count],
    ]),
    chart("times", "lines", formatDuration, [
      ["mean", "--part-recalled", (each) => each.mean_ms || null],
      ["p95", "--part-window", (each) => each.p95_ms || null],
    ]),
    chart("failed", "bars", formatNumber, [
      ["failed", "--bad", (each) => each.failed_requests],
      ["cancelled", "--part-other", (each) => each.cancelled_requests],
    ]),
    chart("evicted", "bars", formatCount, [["evicted", "--part-other", (each) => each.evicted_messages]]),
  ];
}

/** Return a count in full below 10,000, and as "12.5K" above. */
function formatCount(value) {
  if (value === null || value < 10_000) return formatNumber(value);
  return new Intl.NumberFormat(getLanguage(), { notation: "compact", maximumFractionDigits: 1 }).format(value);
}

customElements.define("sash-costs", CostsView);
