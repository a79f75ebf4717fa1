/** What the agent did in the house: why, whether it was verified, and a button that undoes it. */

import { html, nothing, repeat } from "../vendor/lit.js";
import { formatMoment, formatNumber, getLanguage, joinPair, t, tValue } from "../text.js";
import { SashElement } from "../element.js";
import { TONES } from "./action-text.js";
import { askPerson } from "./ask-person.js";
import { findRights } from "./rights.js";
import { renderServices } from "./service-words.js";

const UNDO_TOOL = "undo_last_action";
const UNDO_WAIT_MS = 30_000;
const MAX_ATTRIBUTES = 3;
// The server writes "turn on Floor lamp (light.floor_lamp)". The ids stand in the details.
const ENTITY_ID = / \([a-z_]+\.[a-z0-9_]+\)/g;

class ActionList extends SashElement {
  static properties = {
    connection: { attribute: false },
    me: { attribute: false },
    actions: { attribute: false },
    /** The names of entities by their ids. */
    names: { attribute: false },
    /** The key of the action that is undone now. */
    undoing: { state: true },
    /** The turn of the last undo. */
    undone: { state: true },
  };

  render() {
    const { mayAct } = findRights(this.me);
    return html`
      <div role="status">${this.undone ? this._renderUndone(this.undone) : nothing}</div>
      ${!mayAct && this.actions.some((action) => action.can_undo) ? html`<p class="dim small">${t("action.may_not_undo")}</p>` : nothing}
      <ol class="actions">
        ${repeat(this.actions, makeKey, (action) => this._renderAction(action, mayAct && action.can_undo))}
      </ol>
    `;
  }

  _renderAction(action, canUndo) {
    return html`<li>
      <div class="spread">
        <h3>${describeAction(action)}</h3>
        <span class="badge ${action.outcome === "done" ? "good" : TONES[action.outcome]}">${tValue("outcome", action.outcome)}</span>
      </div>
      ${this._renderChanges(action)}
      <ul class="checks small">
        ${renderVerified(action)}
        ${action.approved === null ? nothing : html`<li class=${action.approved ? "good" : "warn"}>${t(action.approved ? "action.approved" : "action.refused")}</li>`}
        ${action.is_undone ? html`<li class="dim">${t("action.is_undone")}</li>` : nothing}
      </ul>
      <p><a href="#/turn/${encodeURIComponent(action.continuation_id)}"><q>${action.sentence}</q></a></p>
      <p class="dim small">${describeOrigin(action).join(" · ")}</p>
      ${renderDetails(action)}
      ${canUndo ? this._renderUndo(action) : nothing}
    </li>`;
  }

  _renderUndo(action) {
    const isBusy = this.undoing === makeKey(action);
    return html`<button ?disabled=${Boolean(this.undoing)} aria-label=${t("action.undo_this", { action: describeAction(action) })} @click=${() => this._undo(action)}>
      ${isBusy ? t("action.undoing") : t("action.undo")}
    </button>`;
  }

  /** Draw the states before and after, of each entity that has changed. */
  _renderChanges({ before, after }) {
    const ids = Object.keys({ ...before, ...after });
    if (!ids.length) return nothing;
    return html`<ul class="changes">
      ${ids.map((id) => html`<li>${joinPair(this.names.get(id) ?? id, describeChange(before[id], after[id]))}</li>`)}
    </ul>`;
  }

  _renderUndone(turn) {
    const link = html`<a href="#/chat/${encodeURIComponent(turn.session_id)}?turn=${encodeURIComponent(turn.continuation_id)}">${t("action.see_chat")}</a>`;
    const words = { awaiting_approval: t("action.undo_waits"), completed: turn.response?.final_message, failed: turn.error?.message };
    return html`<p class="undone">${words[turn.status] ?? t("action.undo_runs")} ${link}</p>`;
  }

  async _undo(action) {
    if (!(await askPerson(this, t("action.undo_question", { action: describeAction(action) }), t("action.undo")))) return;
    this.undoing = makeKey(action);
    this.undone = (await this.attempt(() => this._postUndo(action))) ?? null;
    this.undoing = null;
    this.emit("sash-house-changed");
  }

  /** Undo the action, unless another one was done since. Return the turn of the undo. */
  async _postUndo({ session_id: sessionId, continuation_id, call_id }) {
    const path = `v1/sessions/${encodeURIComponent(sessionId)}/undo`;
    try {
      const { continuation_id: id } = await this.connection.post(path, { language: getLanguage(), continuation_id, call_id });
      return await this.connection.get(`v1/continuations/${encodeURIComponent(id)}`, { wait_ms: UNDO_WAIT_MS });
    } catch (error) {
      if (error.code === "last_action_changed") throw new Error(t("action.undo_changed"));
      throw error;
    }
  }
}

function makeKey({ continuation_id: turn, call_id: call }) {
  return `${turn}:${call}`;
}

function describeOrigin({ caller, acted_at: time, way }) {
  const who = caller ? (caller.user_name ?? t("action.by_unknown")) : t("action.by_you");
  return [t("action.by", { who }), formatMoment(time), way ? t(`action.way.${way}`) : t("action.way.unknown")];
}

/** Return an action in words. An undo that failed has no words of its own. */
function describeAction({ tool, outcome, in_words: words }) {
  return tool === UNDO_TOOL && outcome !== "done" ? t("action.undo_last") : words.replaceAll(ENTITY_ID, "");
}

/** Draw the exact call, and the rule that allowed it. */
function renderDetails({ service, entity_ids: ids, allowed_by: rule }) {
  if (!service && !rule) return nothing;
  return html`<details class="small">
    <summary>${t("action.details")}</summary>
    ${service ? html`<p>${t("action.service")} <code>${service}</code> ${ids.map((id) => html`<code>${id}</code> `)}</p>` : nothing}
    ${rule ? html`<div>${t("action.allowed_by")} ${renderServices([rule])}</div>` : nothing}
  </details>`;
}

function renderVerified({ outcome, verified }) {
  if (outcome === "denied" || outcome === "dry_run" || (outcome === "failed" && verified === null)) return nothing;
  if (verified === null) return html`<li class="dim">${t("action.unverifiable")}</li>`;
  return verified ? html`<li class="good">✓ ${t("action.verified")}</li>` : html`<li class="bad">▲ ${t("action.unverified")}</li>`;
}

/** Return the change of an entity: "off → on (brightness 140)". */
function describeChange(before, after) {
  const from = before?.state ?? t("unknown");
  const to = after?.state ?? t("unknown");
  const changed = Object.entries(after?.attributes ?? {}).filter(
    ([name, value]) => isPlain(value) && JSON.stringify(before?.attributes?.[name]) !== JSON.stringify(value) && name !== "color_mode",
  );
  const details = changed.slice(0, MAX_ATTRIBUTES).map(([name, value]) => `${name.replaceAll("_", " ")} ${typeof value === "number" ? formatNumber(value, 2) : value}`);
  const states = from === to ? to : `${from} → ${to}`;
  return details.length ? `${states} (${details.join(", ")})` : states;
}

function isPlain(value) {
  return typeof value === "number" || typeof value === "string";
}

customElements.define("sash-action-list", ActionList);
