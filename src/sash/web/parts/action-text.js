/** Actions of the agent in words: what was called, whether it worked, and the states before and after. */

import { t } from "../text.js";

/** The tones of outcomes that say nothing about a verified effect. */
export const TONES = { done: "dim", failed: "bad", denied: "warn", unknown: "warn", dry_run: "dim" };

/** Return {tone, words} of the outcome of an action: only an effect that was observed is "verified". */
export function describeOutcome({ outcome, verified }) {
  if (outcome === "done" && verified === true) return { tone: "good", words: t("status.verified") };
  if (outcome === "done" && verified === false) return { tone: "warn", words: t("status.not_verified") };
  return { tone: TONES[outcome] ?? "dim", words: t(`status.action_${outcome}`) };
}

/** Return the service of an action, or the name of its tool. */
export function nameAction(action) {
  return action.arguments?.service ?? action.name;
}

/**
 * Return the changed entities of an action: [{entityId, before, after, changed}], with null for an unknown state.
 *
 * `result` is the text that the tool returned. It has the states of an undo.
 */
export function listChanges(action, result) {
  if (action.undoes) return readEntities(result).map((each) => ({ entityId: each.entity_id, before: each.before, after: each.after, changed: [] }));
  const ids = new Set([...Object.keys(action.before ?? {}), ...Object.keys(action.after ?? {})]);
  for (const id of [action.arguments?.entity_ids ?? []].flat()) ids.add(id);
  return [...ids].map((entityId) => {
    const before = action.before?.[entityId];
    const after = action.after?.[entityId];
    return { entityId, before: readState(before), after: readState(after), changed: listAttributes(before, after) };
  });
}

function readEntities(result) {
  try {
    return JSON.parse(result).entities ?? [];
  } catch {
    return [];
  }
}

function readState(state) {
  return state?.state ?? (typeof state === "string" ? state : null);
}

/** Return the attributes that differ, such as "brightness: 140". */
function listAttributes(before, after) {
  const old = before?.attributes ?? {};
  const now = after?.attributes ?? {};
  return Object.entries(now).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(old[name]));
}
