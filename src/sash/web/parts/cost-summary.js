/** What yesterday, today and the last days cost, in large numbers. */

import { html, nothing } from "../vendor/lit.js";
import { formatDay, t } from "../text.js";
import { formatSpent } from "./spent.js";

/** Draw the three periods. `stats` are those of `GET v1/stats` with at least two days. */
export function renderCostSummary(stats) {
  const { days, period } = stats;
  const [yesterday, today] = days.slice(-2);
  return html`<div class="glance">
    ${renderPeriod(t("costs.yesterday"), formatDay(yesterday.day), yesterday)}
    ${renderPeriod(t("costs.today"), t("costs.so_far", { day: formatDay(today.day) }), stats.today)}
    ${renderPeriod(t("costs.last_days", { count: days.length }), t("costs.since", { day: formatDay(days[0].day) }), period)}
  </div>`;
}

function renderPeriod(name, when, summary) {
  const { total_requests: turns, total_tokens: tokens, unpriced_calls: unpriced } = summary;
  return html`<section class="card">
    <h2>${name} <span class="dim small">${when}</span></h2>
    <p class="big ${unpriced ? "is-bound" : ""}">${formatSpent(summary)}</p>
    <p class="dim small">${turns ? [t("costs.turns", { count: turns }), tokens ? t("tokens", { count: tokens }) : null].filter(Boolean).join(" · ") : t("costs.no_turns")}</p>
    ${unpriced ? html`<p class="warn small">${t("costs.unpriced", { count: unpriced })}</p>` : nothing}
  </section>`;
}
