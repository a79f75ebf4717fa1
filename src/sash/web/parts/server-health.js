/** The state of the server, of the sessions and of their windows, in a short list. */

import { html, nothing } from "../vendor/lit.js";
import { formatNumber, t, tValue } from "../text.js";

/** `readiness` is the answer of `GET ready` or its error. */
export function renderHealth(me, stats, readiness) {
  const { windows } = stats;
  const { nearly_full: nearlyFull = 0, over_budget: overBudget = 0 } = windows.health;
  return html`<dl class="health">
    ${renderEntry("server", renderReadiness(readiness))}
    ${renderEntry("version", me.version ?? t("unknown"))}
    ${renderEntry("model", me.model ?? t("costs.health.no_model"))}
    ${renderEntry("home", me.home ?? t("costs.health.no_home"))}
    ${renderEntry("sessions", formatNumber(stats.sessions))}
    ${renderEntry(
      "windows",
      html`${windows.windows ? t("costs.health.windows.ok", { count: windows.health.ok ?? 0 }) : t("costs.health.windows.none")}
      ${nearlyFull ? html`<br><span class="warn">${t("costs.health.windows.nearly_full", { count: nearlyFull })}</span>` : nothing}
      ${overBudget ? html`<br><span class="bad">${t("costs.health.windows.over_budget", { count: overBudget })}</span>` : nothing}`,
    )}
    ${renderEntry("in_windows", `${t("costs.messages", { count: windows.message_count })} · ${t("tokens", { count: windows.current_tokens })}`)}
    ${renderEntry("evicted", t("costs.messages", { count: windows.evicted_count }))}
  </dl>`;
}

function renderReadiness(readiness) {
  if (!(readiness instanceof Error)) return html`<span class="good">● ${t("costs.health.ready")}</span>`;
  if (readiness.status === 404) return t("unknown");
  return html`<span class="bad">▲ ${t("costs.health.not_ready")}</span><br>${readiness.message}`;
}

function renderEntry(key, content) {
  const hint = tValue("costs.health.hint", key);
  return html`<div>
    <dt>${t(`costs.health.${key}`)}</dt>
    <dd>${content}${hint === key ? nothing : html`<span class="dim small">${hint}</span>`}</dd>
  </div>`;
}
