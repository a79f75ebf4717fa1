/** A session as the chat shows it: its turns, which the event stream keeps up to date. It draws nothing. */

import { Unreachable } from "../connection.js";
import { groupMessages } from "./turn-messages.js";

const PAGE = 60;
const ACTIONS = 10;
const LARGE_PAGE = 500;
const TURN_PAGE = 50;
const NEWEST = 2 ** 53;
const RETRY_MS = 1000;
const FINAL = new Set(["completed", "failed", "cancelled", "expired"]);
const UNDER_WAY = new Set(["sending", "unsent", "pending", "running", "streaming"]);

/** Return true if the turn has ended and its status can no longer change. */
export const isFinal = (turn) => FINAL.has(turn.status);

/** Return true if the agent works on the turn, or will do so without a person's help. */
export const isUnderWay = (turn) => UNDER_WAY.has(turn.status);

/** Return true if the turn cannot be run again before it ends or is stopped. */
export const isOpen = (turn) => isUnderWay(turn) || turn.status === "awaiting_approval";

/** Return true for a message that the server has not received yet. */
const isLocal = (turn) => turn.id.startsWith("~");

/**
 * Dispatches "change" after each change, and "answer" with a turn that has ended or waits for an approval.
 *
 * `state` is "loading", "connected", "waiting" while the server cannot be reached, "ended", or an error that
 * lasts. A turn is a plain object that is replaced when it changes: the fields of the continuation, `message`,
 * `answer`, `calls` of tools, `position`, `isEvicted`, `isCopy`, `partial` text and the last `progress`.
 */
export class Conversation extends EventTarget {
  constructor(connection, sessionId) {
    super();
    this.sessionId = sessionId;
    this.session = null;
    this.state = "loading";
    this.turns = [];
    this._connection = connection;
    this._byId = new Map();
    this._closing = new AbortController();
    this._before = NEWEST;
    this._turnCursor = undefined;
    this._reading = new Map();
    this._dropped = new Set();
    this._sent = Promise.resolve();
    this._sentCount = 0;
  }

  get hasOlder() {
    return this.sessionId !== null && (this._before !== null || this._turnCursor !== null);
  }

  /** Read the newest turns and follow the events after them. Retry while the server cannot be reached. */
  async open() {
    if (this.sessionId === null) return this._setState("connected");
    while (!this._closing.signal.aborted) {
      try {
        await Promise.all([this._readSession(), this.loadOlder()]);
        // Its last step comes before those of a turn that has none yet.
        const ended = this.turns.findLast((turn) => isFinal(turn) && !turn.isCopy);
        if (ended && !ended.steps) await this.read(ended.id).catch(() => {});
        await this._readOpenTurns();
        await this._readUndoable();
        return this._follow();
      } catch (error) {
        if (error.code !== "unreachable") return this._setState(error);
        this._setState("waiting");
        await sleep(RETRY_MS);
      }
    }
    return undefined;
  }

  close() {
    this._closing.abort();
  }

  /** Load the page of turns before the oldest loaded one. */
  async loadOlder(limit = PAGE) {
    this._older ??= this._loadOlder(limit).finally(() => (this._older = null));
    return this._older;
  }

  /** Load older pages until a turn is known. Return false if the session does not have it. */
  async loadUntil(turnId) {
    while (!this._byId.has(turnId) && this.hasOlder) await this.loadOlder(LARGE_PAGE);
    return this._byId.has(turnId);
  }

  /**
   * Send a message, after those before it. While the server cannot be reached, it is sent again with the same key,
   * so it counts once. That goes on after `close`, because the person believes that it was sent.
   */
  send(message, language) {
    this._sentCount += 1;
    const localId = `~${String(this._sentCount).padStart(9, "0")}`;
    const status = this.turns.some((turn) => turn.status === "unsent") ? "unsent" : "sending";
    this._put(localId, { message, status, created_at: new Date().toISOString() });
    const body = { message, language, idempotency_key: makeKey(), stream: true, busy: "enqueue" };
    const sent = this._sent.then(() => this._deliver(localId, body));
    this._sent = sent.catch(() => {});
    return sent;
  }

  async _deliver(localId, body) {
    let id = null;
    while (id !== null || !this._dropped.has(localId)) {
      try {
        await this._startSession();
        id ??= (await this._connection.post(`${this._path}/messages`, body)).continuation_id;
        // The person may have stopped it meanwhile.
        if (this._dropped.has(localId)) return await this.cancel({ id });
        this._byId.delete(localId);
        // A yes or no to a question for an approval continues that turn, which has its own message.
        const known = this._byId.get(id);
        return this._put(id, { status: "pending", created_at: new Date().toISOString(), ...known, message: known?.message ?? body.message });
      } catch (error) {
        if (!(error instanceof Unreachable)) {
          this.drop(localId);
          throw error;
        }
        for (const turn of this.turns.filter(isLocal)) this._put(turn.id, { status: "unsent" });
        await sleep(RETRY_MS);
      }
    }
    return undefined;
  }

  /** Forget a message that the server has not received. */
  drop(localId) {
    this._dropped.add(localId);
    this._byId.delete(localId);
    this._changed();
  }

  async cancel(turn) {
    if (isLocal(turn)) return this.drop(turn.id);
    await this._connection.post(`v1/continuations/${turn.id}/cancel`, {});
    return this.read(turn.id);
  }

  async resume(turn) {
    this._merge(await this._postWhenFree(`v1/continuations/${turn.id}/resume`));
  }

  async retry(turn) {
    const { continuation_id: id } = await this._postWhenFree(`v1/continuations/${turn.id}/retry`);
    await this.read(id);
  }

  async approve(turn, callId, approved) {
    this._merge(await this._connection.post(`v1/continuations/${turn.id}/approve`, { call_id: callId, approved }));
  }

  /** Undo the action that the button named. The server refuses if another one is the last by now. */
  async undo(language) {
    const { continuation_id: id } = await this._postWhenFree(`${this._path}/undo`, { language, ...this.undoable });
    await this.read(id);
  }

  /** Find the action that an undo would take back: {continuation_id, call_id}, or null. */
  async _readUndoable() {
    this.undoable = null;
    if (!this.turns.some((turn) => turn.response?.actions?.length)) return;
    const { actions } = await this._connection.get("v1/actions", { session_id: this.sessionId, limit: ACTIONS });
    const found = actions.find((action) => action.can_undo);
    if (found) this.undoable = { continuation_id: found.continuation_id, call_id: found.call_id };
  }

  /** Send a request that starts work, after the turn that is under way. */
  async _postWhenFree(path, body) {
    for (;;) {
      try {
        return await this._connection.post(path, body);
      } catch (error) {
        if (error.code !== "session_busy" || this._closing.signal.aborted) throw error;
        await sleep(RETRY_MS);
      }
    }
  }

  /** Read a turn with its steps. A call during another one lets that one read again, because its answer may be older. */
  read(turnId) {
    const known = this._reading.get(turnId);
    const reading = known ?? {};
    reading.isStale = true;
    if (known) return known.done;
    this._reading.set(turnId, reading);
    reading.done = this._readWhileStale(turnId, reading).finally(() => this._reading.delete(turnId));
    return reading.done;
  }

  async _readWhileStale(turnId, reading) {
    while (reading.isStale) {
      reading.isStale = false;
      this._merge(await this._connection.get(`v1/continuations/${turnId}`));
    }
  }

  get _path() {
    return `v1/sessions/${encodeURIComponent(this.sessionId)}`;
  }

  async _startSession() {
    if (this.sessionId !== null) return;
    this.sessionId = (await this._connection.post("v1/sessions", {})).session_id;
    this._before = this._turnCursor = null;
    this.dispatchEvent(new Event("start"));
    this._follow();
    this._readNewSession();
  }

  /** Read the session until it is known. Its events are shown meanwhile. */
  async _readNewSession() {
    while (!this.session && !this._closing.signal.aborted) {
      try {
        await this._readSession();
        this._changed();
      } catch (error) {
        if (!(error instanceof Unreachable)) return;
        await sleep(RETRY_MS);
      }
    }
  }

  async _readSession() {
    const shown = await this._connection.get(this._path);
    this.session = shown.session;
    this._open = shown.open_continuations;
    return shown.window_stats;
  }

  async _readOpenTurns() {
    const known = [...this._byId.values()].filter((turn) => !isFinal(turn) && !isLocal(turn));
    const ids = new Set([...this._open, ...known.map((turn) => turn.id)]);
    await Promise.all([...ids].map((id) => this.read(id)));
  }

  async _loadOlder(limit) {
    if (this._before !== null) {
      const page = await this._connection.get(`${this._path}/messages`, { before: this._before, limit });
      this._before = page.next_cursor === null ? null : Number(page.next_cursor);
      this._addMessages(page.messages);
    }
    while (this._turnCursor !== null && !(this._listed < this._oldestId)) await this._listTurns();
    this._changed();
  }

  /** The id of the oldest turn with messages, or "" if all of them are loaded. */
  get _oldestId() {
    return this._before === null ? "" : (this._order()[0]?.id ?? "");
  }

  async _listTurns() {
    const query = { session_id: this.sessionId, limit: TURN_PAGE, cursor: this._turnCursor };
    const page = await this._connection.get("v1/continuations", query);
    for (const shown of page.continuations) this._merge({ ...shown, steps: undefined, waiting_calls: undefined }, true);
    this._turnCursor = page.next_cursor ?? null;
    this._listed = page.continuations.at(-1)?.continuation_id ?? "";
  }

  _addMessages(messages) {
    for (const found of groupMessages(messages)) {
      const known = this._byId.get(found.id);
      // A page may begin in the middle of a turn.
      const calls = known?.position > found.position ? [...found.calls, ...(known.calls ?? [])] : found.calls;
      this._byId.set(found.id, { status: "completed", ...dropEmpty(found), ...known, ...pickStored(found, known), calls });
    }
  }

  /**
   * Read the newest messages. If others were evicted since the last time, read on as far as the window reaches:
   * each loaded turn before that is evicted.
   */
  async _refreshNewest() {
    const { message_count: count, evicted_count: evictedCount } = await this._readSession();
    const hasEvicted = evictedCount !== this._evictedCount;
    const oldest = this.turns.find((turn) => turn.position !== undefined)?.position ?? Infinity;
    let messages = [];
    let before = NEWEST;
    do {
      const page = await this._connection.get(`${this._path}/messages`, { before, limit: messages.length ? LARGE_PAGE : PAGE });
      messages = [...page.messages, ...messages];
      before = Number(page.next_cursor ?? 0);
    } while (hasEvicted && before > oldest && messages.filter((each) => each.in_window).length < count);
    const found = new Map(groupMessages(messages).map((turn) => [turn.id, turn]));
    for (const [id, known] of this._byId) {
      const { message = null, isEvicted = true, position, calls } = found.get(id) ?? {};
      // The first turn may have begun before these messages.
      if (message !== null) this._byId.set(id, { ...known, isEvicted, position, calls });
      else if (hasEvicted && known.position < before) this._byId.set(id, { ...known, isEvicted });
    }
    this._evictedCount = evictedCount;
    await this._readUndoable();
    this._changed();
  }

  _follow() {
    const findLast = (turn) => Math.max(0, ...(turn.steps ?? []).map((step) => step.cursor));
    const ended = Math.max(0, ...this.turns.filter(isFinal).map(findLast));
    // The open turns were read one by one. The events after the oldest answer are repeated, which changes nothing.
    const open = this.turns.filter((turn) => !isFinal(turn)).map((turn) => findLast(turn) || ended);
    const options = {
      after: open.length ? Math.min(...open) : ended,
      signal: this._closing.signal,
      onEvent: (event) => this._apply(event),
      onState: (state) => this._onState(state),
    };
    this._connection.follow(this.sessionId, options);
  }

  _onState(state) {
    const wasLost = this.state === "waiting";
    if (state === "connected") {
      // The server sends the whole text of a running model call again.
      for (const turn of this.turns) if (turn.partial) this._put(turn.id, { partial: "" });
      if (wasLost) this._resync();
    }
    if (state === "ended") this._readSession().then(() => this._changed(), () => {});
    this._setState(state);
  }

  async _resync() {
    try {
      await this._readSession();
      await this._readOpenTurns();
    } catch {
      // The stream reconnects again, and then this is tried again.
    }
  }

  _apply({ type, continuation_id: id, payload }) {
    const turn = this._byId.get(id);
    if (!turn) {
      if (id < this._oldestId || (type === "final" && !payload.step)) return;
      // Another device has started this turn.
      this._put(id, { message: null, status: "running", created_at: new Date().toISOString() });
      this.read(id).catch(() => {});
    }
    if (type === "progress") this._put(id, { progress: payload.message });
    else if (type === "partial") this._addPartial(id, payload);
    else if (type === "final") this._finish(id, payload);
    else this._addStep(id, payload.step);
  }

  _addPartial(id, payload) {
    const turn = this._byId.get(id);
    if (isFinal(turn)) return;
    const partial = (turn.partial ?? "") + payload.partial_response;
    this._put(id, { partial, isProvisional: payload.is_provisional === true, status: "running" });
  }

  _addStep(id, step) {
    const turn = this._byId.get(id);
    const steps = mergeSteps(turn.steps, [step]);
    if (isFinal(turn)) return this._put(id, { steps });
    const event = step.type === "observed_event" ? step.detail.event : null;
    // A step that is known says nothing about the status.
    const status = steps.length === turn.steps?.length ? turn.status : "running";
    this._put(id, { steps, partial: "", progress: null, status });
    // Only the server knows the effect of a waiting call in words.
    if (event === "approval_requested" || event === "interrupted") this.read(id).catch(() => {});
    return undefined;
  }

  _finish(id, { step, final_response: response, status, error }) {
    const turn = this._byId.get(id);
    const steps = step ? mergeSteps(turn.steps, [step]) : turn.steps;
    const isNews = !isFinal(turn);
    this._put(id, { status, error, response, steps, partial: "", progress: null, waiting_calls: [], answer: findAnswer(response, turn) });
    if (!isNews) return;
    this.dispatchEvent(new CustomEvent("answer", { detail: this._byId.get(id) }));
    this.read(id).catch(() => {});
    this._refreshNewest().catch(() => {});
  }

  /** Take over what the server says of a turn. An answer that was under way cannot undo a later event. */
  _merge(shown, isQuiet = false) {
    const { continuation_id: id, steps, ...fields } = shown;
    const known = this._byId.get(id) ?? {};
    if (known.status && isFinal(known) && !isFinal(shown)) return;
    const merged = dropEmpty({
      ...fields,
      message: shown.request.message,
      attachments: shown.request.attachments,
      answer: findAnswer(shown.response, known),
    });
    if (steps) merged.steps = mergeSteps(known.steps, steps);
    if (isQuiet) this._byId.set(id, { ...known, id, ...merged });
    else this._put(id, merged);
    if (isQuiet) return;
    const isWaiting = shown.status === "awaiting_approval" && known.status !== "awaiting_approval";
    const hasEnded = isFinal(shown) && known.status !== undefined && !isFinal(known);
    if (isWaiting || hasEnded) this.dispatchEvent(new CustomEvent("answer", { detail: this._byId.get(id) }));
    if (hasEnded) this._refreshNewest().catch(() => {});
  }

  _put(id, changes) {
    this._byId.set(id, { ...this._byId.get(id), id, ...changes });
    this._changed();
  }

  _changed() {
    this.turns = this._order();
    this.dispatchEvent(new Event("change"));
  }

  /** Return the turns by their place in the transcript. A turn without messages stands where it was asked. */
  _order() {
    const all = [...this._byId.values()];
    const stored = all.filter((turn) => turn.position !== undefined).sort((one, two) => one.position - two.position);
    const oldest = this._before === null ? "" : (stored[0]?.id ?? "");
    const others = all.filter((turn) => turn.position === undefined && turn.id >= oldest);
    others.sort((one, two) => (one.id < two.id ? -1 : 1));
    const ordered = [];
    for (const turn of stored) {
      while (others.length && others[0].id < turn.id) ordered.push(others.shift());
      ordered.push(turn);
    }
    return [...ordered, ...others];
  }

  _setState(state) {
    this.state = state;
    this.dispatchEvent(new Event("change"));
  }
}

function findAnswer(response, turn) {
  return response?.final_message ?? turn.answer;
}

/** Return the fields of a stored turn that replace what is known. */
function pickStored(found, known) {
  const position = Math.min(found.position, known?.position ?? Infinity);
  return { position, message: found.message ?? known?.message ?? null, isEvicted: found.isEvicted };
}

function dropEmpty(fields) {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function mergeSteps(known = [], found) {
  const byNumber = new Map([...known, ...found].map((step) => [step.n, step]));
  return [...byNumber.values()].sort((one, two) => one.n - two.n);
}

/** Return a random key. `crypto.randomUUID` exists only on pages that were loaded by HTTPS. */
function makeKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
