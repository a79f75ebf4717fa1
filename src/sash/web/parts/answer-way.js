/** Which way a turn went, and why: a local sentence, the model, recalled turns, the policy, an approval. */

import { t } from "../text.js";

/** The name of the model that answers without a language model. */
export const OFFLINE = "offline";

/** Return the sentences, most important first: [{words, tone}]. */
export function explainWay(turn) {
  return [...explainStart(turn), ...explainRecall(turn), ...explainRules(turn), ...explainEnd(turn)];
}

function explainStart({ stats, steps, request }) {
  if (steps.some((step) => step.detail.recorded)) return [{ words: t("way.recorded") }];
  if (stats?.local_turns) return [{ words: t("way.local") }];
  const count = stats?.model_calls ?? steps.filter((step) => step.detail.usage).length;
  if (!count) return [];
  const model = steps.map((step) => step.detail.usage?.model).find(Boolean);
  if (model === OFFLINE) return [{ words: t("way.offline") }];
  // A plan without a bill is one of Sash itself.
  const wasLocal = steps[0]?.type === "plan" && !steps[0].detail.usage;
  const words = model ? t(wasLocal ? "way.local_refused" : "way.model", { model, count }) : t("way.some_model", { count });
  return [{ words }, ...(request.allow_tools ? [] : [{ words: t("way.no_tools") }])];
}

function explainRecall({ steps, response, request }) {
  const ways = [];
  for (const { type, detail } of steps) {
    if (type === "retrieval") ways.push({ words: explainRecalled(detail, request.message) });
    else if (detail.event === "told") ways.push({ words: t("way.told") });
    else if (detail.event === "sent_back") ways.push({ words: t("way.sent_back"), tone: "warn" });
  }
  if (!steps.length && response?.citations.some((each) => each.type === "turn")) ways.push({ words: t("way.recalled_before") });
  return ways;
}

/** Return why old messages were recalled. Journals of earlier versions know only the words of the question. */
function explainRecalled({ message_ids: ids, query, found_words: found, reason }, message) {
  const count = ids.length;
  if (reason === "meaning") return t("way.recalled_meaning", { count });
  if (reason === "time") return t("way.recalled_time", { count });
  return t("way.recalled", { count, words: nameWords(found ?? query, message) });
}

/** Return the words of the message that the search used. It knows only the beginnings of words. */
function nameWords(stems, message) {
  const words = message.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  return stems.map((stem) => words.find((word) => word.startsWith(stem)) ?? `${stem}…`).join(", ");
}

function explainRules({ steps, response, status }) {
  const ways = [];
  const actions = response?.actions ?? [];
  if (steps.some((step) => step.detail.event === "approval_requested")) ways.push({ words: t("way.asked") });
  if (actions.some((each) => each.approved === true)) ways.push({ words: t("way.approved") });
  if (actions.some((each) => each.approved === false)) ways.push({ words: t("way.refused_by_person"), tone: "warn" });
  const denied = actions.filter((each) => each.outcome === "denied" && each.approved === null);
  for (const reason of new Set(denied.map(({ call_id: id }) => explainDenial(findResult(steps, id) ?? "")))) {
    ways.push({ words: t("way.denied", { reason }), tone: "warn" });
  }
  if (actions.some((each) => each.outcome === "dry_run")) ways.push({ words: t("way.dry_run") });
  if (status === "awaiting_approval") ways.push({ words: t("way.waiting"), tone: "warn" });
  return ways;
}

/** Return in words why the policy refused an action. `result` is the text for the model, which names settings. */
function explainDenial(result) {
  if (result.includes("allow_actuation")) return t("way.denied.off");
  return t(result.includes("max_actions_per_minute") ? "way.denied.rate" : "way.denied.service");
}

/** Return the result of a tool call as the model read it, or undefined if it is not kept. */
export function findResult(steps, callId) {
  return steps.find((step) => step.type === "tool_result" && step.detail.call_id === callId)?.detail.content;
}

function explainEnd({ status, error, response, retry_of: old, steps, stats }) {
  const ways = [];
  if (old) ways.push({ words: t("way.retry") });
  if (steps.some((step) => step.detail.event === "interrupted")) ways.push({ words: t("way.interrupted") });
  if (response?.stopped_by) ways.push({ words: t("way.stopped_by", { limit: response.stopped_by }), tone: "warn" });
  if (status === "failed") ways.push({ words: t("way.failed", { reason: error?.message ?? t("unknown") }), tone: "bad" });
  if (status === "cancelled" || status === "expired") ways.push({ words: t(`way.${status}`) });
  if (!steps.length && stats) ways.push({ words: t("way.steps_gone"), tone: "dim" });
  return ways;
}
