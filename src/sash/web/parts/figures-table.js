/** The figures of today, yesterday, the last days and all time, side by side. */

import { html, nothing } from "../vendor/lit.js";
import { formatDuration, formatNumber, formatShare, t } from "../text.js";
import { formatSpent } from "./spent.js";

const ifAny = (count, text) => (count ? text : "–");

// The rows: the key of their words, and the figure of a period.
const ROWS = [
  ["turns", (each) => formatNumber(each.total_requests)],
  ["local", (each) => ifAny(each.total_requests, `${formatNumber(each.local_count)} (${formatShare(each.local_share)})`)],
  ["failed", (each) => formatNumber(each.failed_requests)],
  ["cancelled", (each) => formatNumber(each.cancelled_requests)],
  ["mean", (each) => ifAny(each.mean_ms, formatDuration(each.mean_ms))],
  ["p95", (each) => ifAny(each.p95_ms, formatDuration(each.p95_ms))],
  ["cost", formatSpent],
  ["model_calls", (each) => formatNumber(each.model_calls)],
  ["tool_calls", (each) => formatNumber(each.tool_calls)],
  ["input", (each) => formatNumber(each.input_tokens)],
  ["cached", (each) => ifAny(each.input_tokens, `${formatNumber(each.cached_tokens)} (${formatShare(each.cached_share)})`)],
  ["output", (each) => formatNumber(each.output_tokens)],
  ["reasoning", (each) => formatNumber(each.reasoning_tokens)],
  ["evicted", (each) => formatNumber(each.evicted_messages)],
];

export function renderFigures(stats) {
  const periods = [
    [t("costs.today"), stats.today],
    [t("costs.yesterday"), stats.days.at(-2)],
    [t("costs.last_days", { count: stats.days.length }), stats.period],
    [t("costs.all_time"), stats],
  ];
  return html`<table class="figures">
    <caption class="visually-hidden">${t("costs.figures")}</caption>
    <thead>
      <tr><td></td>${periods.map(([name]) => html`<th scope="col" class="number">${name}</th>`)}</tr>
    </thead>
    <tbody>
      ${ROWS.map(
        ([key, read]) => html`<tr>
          <th scope="row">${t(`costs.figure.${key}`)}<span class="dim small">${t(`costs.figure.${key}.hint`)}</span></th>
          ${periods.map(([, summary]) => html`<td class="number">${read(summary)}</td>`)}
        </tr>`,
      )}
    </tbody>
  </table>`;
}

/** Draw how often each error happened in the last days, in words. */
export function renderErrors({ errors }) {
  const found = Object.entries(errors).sort(([, one], [, two]) => two - one);
  if (!found.length) return html`<p class="dim">${t("costs.no_errors")}</p>`;
  return html`<table class="errors">
    <thead><tr><th scope="col">${t("costs.error")}</th><th scope="col" class="number">${t("costs.times")}</th></tr></thead>
    <tbody>
      ${found.map(
        ([code, count]) => html`<tr>
          <td>${describeError(code)}</td>
          <td class="number">${formatNumber(count)}</td>
        </tr>`,
      )}
    </tbody>
  </table>`;
}

function describeError(code) {
  const key = `costs.error.${code}`;
  const words = t(key);
  return html`${words === key ? nothing : html`${words} `}<code>${code}</code>`;
}
