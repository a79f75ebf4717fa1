/** Costs and health: money and tokens by day, times, errors, turns that wait or failed, and the state of the server. */

import { html } from "../vendor/lit.js";
import { formatCost, formatDuration, formatNumber, formatShare, t } from "../text.js";
import { SashElement } from "../element.js";
import { Refresher } from "../parts/refresher.js";
import { renderCostSummary } from "../parts/cost-summary.js";
import { renderErrors, renderFigures } from "../parts/figures-table.js";
import { renderHealth } from "../parts/server-health.js";
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
      ${this.problem ? html`<p class="error" role="alert">${t("costs.problem", { message: this.problem.message })}</p>` : null}
      ${this.data ? this._renderData(this.data) : this.problem ? null : html`<p class="loading" role="status">${t("loading")}</p>`}
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
      <h2>${t("costs.by_day")}</h2>
      <div class="charts">
        ${charts.map(
          ({ key, kind, top, format, series }) => html`<sash-chart
            .heading=${t(`costs.chart.${key}`)}
            .hint=${t(`costs.chart.${key}.hint`)}
            .kind=${kind}
            .top=${top}
            .format=${format}
            .days=${days}
            .series=${series}
          ></sash-chart>`,
        )}
      </div>
      <div class="columns">
        <section class="card">
          <h2>${t("costs.open")}</h2>
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

  _renderTurns(found, canCancel) {
    if (found instanceof Error) return html`<p class="error">${found.message}</p>`;
    const turns = found.continuations;
    if (!turns.length) return html`<p class="dim">${t(canCancel ? "costs.open.none" : "costs.failed.none")}</p>`;
    return html`<sash-turn-list .connection=${this.connection} .turns=${turns} ?canCancel=${canCancel}></sash-turn-list>`;
  }

  _choose(days) {
    this.range = days;
    this._load();
  }
}

/** Return the charts of the last days. A day without turns has no times and no cached share. */
function describeCharts({ days, period }) {
  const line = (key, color, field, read) => ({ label: t(`costs.series.${key}`), color, values: days.map(read), whole: period[field] });
  const bar = (key, color, read) => ({ label: t(`costs.series.${key}`), color, values: days.map(read), whole: read(period) });
  return [
    { key: "cost", kind: "bars", format: formatCost, series: [bar("cost", "--part-window", (each) => each.estimated_cost_usd)] },
    {
      key: "tokens",
      kind: "bars",
      format: formatCount,
      series: [
        bar("cached", "--part-home", (each) => each.cached_tokens),
        bar("fresh", "--part-facts", (each) => each.input_tokens - each.cached_tokens),
        bar("output", "--part-system", (each) => each.output_tokens),
      ],
    },
    {
      key: "cached",
      kind: "lines",
      top: 1,
      format: formatShare,
      series: [line("cached_share", "--part-home", "cached_share", (each) => (each.input_tokens ? each.cached_share : null))],
    },
    {
      key: "turns",
      kind: "bars",
      format: formatNumber,
      series: [
        bar("local", "--part-turn", (each) => each.local_count),
        bar("model", "--part-window", (each) => each.model_count),
      ],
    },
    {
      key: "times",
      kind: "lines",
      format: formatDuration,
      series: [
        line("mean", "--part-recalled", "mean_ms", (each) => each.mean_ms || null),
        line("p95", "--part-window", "p95_ms", (each) => each.p95_ms || null),
      ],
    },
    {
      key: "failed",
      kind: "bars",
      format: formatNumber,
      series: [
        bar("failed", "--bad", (each) => each.failed_requests),
        bar("cancelled", "--part-other", (each) => each.cancelled_requests),
      ],
    },
  ];
}

/** Return a count in full below 10,000, and as "12.5K" above. */
function formatCount(value) {
  if (value === null || value < 10_000) return formatNumber(value);
  return new Intl.NumberFormat(document.documentElement.lang || "en", { notation: "compact", maximumFractionDigits: 1 }).format(value);
}

customElements.define("sash-costs", CostsView);
