/** What the agent may do in the house and spend, in plain sentences. */

import { html, nothing } from "../vendor/lit.js";
import { formatCost, formatDuration, t } from "../text.js";
import { renderServices } from "./service-words.js";

/** Draw the policy and the budgets of `GET v1/me`. */
export function renderPolicy({ policy, budgets, scopes }) {
  return html`<section class="card policy">
    <h2>${t("policy.title")}</h2>
    <p class="dim small">${t("policy.hint")}</p>
    <ul>
      ${policy.allow_actuation ? renderActuation(policy) : renderRule("no", t("policy.no_actuation"), renderWhy(scopes))}
      ${renderRule("fact", t(policy.approvers === "act" ? "policy.approvers.act" : "policy.approvers.owner"))}
      ${policy.grounded_answers ? renderRule("yes", t("policy.grounded")) : nothing}
      ${policy.resume_interrupted ? renderRule("yes", t("policy.resume")) : nothing}
      ${policy.enforce_fixed_model ? renderRule("no", t("policy.fixed_model")) : nothing}
    </ul>
    <h3>${t("policy.budgets")}</h3>
    <ul>${describeBudgets(budgets).map((sentence) => renderRule("fact", sentence))}</ul>
  </section>`;
}

/** Say who could let it act. The policy of a sign-in without the right to act never allows it. */
function renderWhy(scopes) {
  return html`<p class="dim small">${t(scopes.includes("act") ? "policy.no_actuation.hint" : "policy.you_may_not_act")}</p>`;
}

function renderActuation(policy) {
  const { allowlisted_services: allowed, denylisted_services: denied, require_confirmation: confirmed } = policy;
  return html`
    ${policy.dry_run ? renderRule("no", t("policy.dry_run")) : renderRule("yes", t("policy.actuation"))}
    ${allowed.length ? renderRule("yes", t("policy.allowed"), renderServices(allowed)) : renderRule("no", t("policy.none_allowed"))}
    ${confirmed.length ? renderRule("ask", t("policy.confirmed"), renderServices(confirmed)) : renderRule("yes", t("policy.none_confirmed"))}
    ${denied.length
      ? renderRule("no", t("policy.denied"), html`<details><summary class="small">${t("policy.denied.show", { count: denied.length })}</summary>${renderServices(denied)}</details>`)
      : nothing}
    ${renderRule("fact", policy.max_actions_per_minute === null ? t("policy.no_rate") : t("policy.rate", { count: policy.max_actions_per_minute }))}
  `;
}

const MARKS = { yes: "✓", no: "✕", ask: "?", fact: "•" };

function renderRule(kind, sentence, details = nothing) {
  return html`<li class=${kind}><span class="mark" aria-hidden="true">${MARKS[kind]}</span><div>${sentence}${details}</div></li>`;
}

function describeBudgets(budgets) {
  const { max_cost_per_turn_usd: perTurn, max_cost_per_day_usd: perDay } = budgets;
  return [
    perDay === null ? t("policy.no_day_cost") : t("policy.day_cost", { cost: formatCost(perDay) }),
    perTurn === null ? t("policy.no_turn_cost") : t("policy.turn_cost", { cost: formatCost(perTurn) }),
    t("policy.turn_time", { time: formatDuration(budgets.max_duration_ms) }),
    t("policy.turn_steps", { count: budgets.max_steps }),
    t("policy.turn_tools", { count: budgets.max_tool_calls }),
    t("policy.turn_tokens", { count: budgets.max_tokens_per_turn }),
  ];
}
