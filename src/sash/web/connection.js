/** Talks to the server: JSON requests, and event streams that reconnect without a gap. */

const FIRST_WAIT_MS = 300;
const MAX_WAIT_MS = 5000;
// The server sends a comment every 15 seconds. A stream that is silent for longer is broken.
const SILENCE_MS = 40_000;
// Errors after which another attempt gives the same answer.
const LASTING_STATUS = new Set([400, 401, 403, 404, 410, 421, 422]);
// Answers of a proxy, or of Home Assistant, in place of a server that is starting. Those of Sash have a code.
const FOREIGN_STATUS = new Set([404, 502, 503, 504]);
const RESTART_CODES = new Set(["shutting_down", "no_agent"]);

/** An error of the server. `code` is stable, `message` says the cause and the remedy. */
export class ApiError extends Error {
  constructor(status, problem) {
    super(problem.detail ?? `HTTP ${status}`);
    this.name = "ApiError";
    this.status = status;
    this.code = problem.code ?? "error";
    this.problem = problem;
  }
}

/** The server did not answer, or it is restarting. */
export class Unreachable extends Error {
  constructor() {
    super("The server cannot be reached.");
    this.name = "Unreachable";
    this.code = "unreachable";
  }
}

/** Dispatches "refused" with the `ApiError` if the server does not accept the token. */
export class Connection extends EventTarget {
  /** `send(path, options)` sends a request as `fetch` does, with the sign-in. */
  constructor(send) {
    super();
    this._send = send;
  }

  get(path, query = {}) {
    return this.request("GET", withQuery(path, query));
  }

  post(path, body) {
    return this.request("POST", path, body);
  }

  patch(path, body) {
    return this.request("PATCH", path, body);
  }

  delete(path) {
    return this.request("DELETE", path);
  }

  /** Send a request. Return its JSON, or null if it has none. Throw `ApiError` or `Unreachable`. */
  async request(method, path, body) {
    const options = { method };
    if (body !== undefined) {
      options.headers = { "Content-Type": "application/json" };
      options.body = typeof body === "string" ? body : JSON.stringify(body);
    }
    const response = await this._fetch(path, options);
    if (response.status === 204) return null;
    return readBody(() => response.json());
  }

  /** Return a file, such as an artifact, as a Blob. */
  async blob(path) {
    const response = await this._fetch(path, {});
    return readBody(() => response.blob());
  }

  /**
   * Follow the events of a session until `signal` is aborted or the session ends.
   *
   * `after` is the cursor of the last known event. `onEvent(event)` gets each later event once: {type,
   * session_id, continuation_id, payload, cursor}. `onState` gets "connected", "waiting" while the server
   * cannot be reached, "ended", or an `ApiError` that lasts.
   */
  async follow(sessionId, { after = 0, signal, onEvent, onState = () => {} }) {
    let cursor = after;
    let wait = FIRST_WAIT_MS;
    while (!signal.aborted) {
      const beat = new AbortController();
      const stop = () => beat.abort();
      signal.addEventListener("abort", stop, { once: true });
      try {
        const path = withQuery(`events/${encodeURIComponent(sessionId)}`, { after: cursor });
        const headers = { Accept: "text/event-stream" };
        const response = await this._fetch(path, { headers, signal: beat.signal });
        onState("connected");
        wait = FIRST_WAIT_MS;
        for await (const frame of readFrames(response.body, beat)) {
          if (frame.id !== undefined) cursor = Number(frame.id);
          if (frame.data) onEvent({ ...JSON.parse(frame.data), cursor: frame.id === undefined ? null : cursor });
        }
        // The server closes a stream at the end of the session, and when it stops.
        if (await this._hasEnded(sessionId)) return onState("ended");
      } catch (error) {
        if (signal.aborted) return undefined;
        if (error instanceof ApiError && LASTING_STATUS.has(error.status)) return onState(error);
      } finally {
        signal.removeEventListener("abort", stop);
        beat.abort();
      }
      onState("waiting");
      await sleep(wait, signal);
      wait = Math.min(MAX_WAIT_MS, wait * 2);
    }
    return undefined;
  }

  async _hasEnded(sessionId) {
    const { session } = await this.get(`v1/sessions/${encodeURIComponent(sessionId)}`);
    return session.status !== "active";
  }

  async _fetch(path, options) {
    let response;
    try {
      response = await this._send(path, options);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Unreachable();
    }
    if (response.ok) return response;
    let problem = {};
    try {
      problem = await response.json();
    } catch {
      // A proxy answers without JSON.
    }
    const { status } = response;
    if (problem.code ? RESTART_CODES.has(problem.code) : FOREIGN_STATUS.has(status)) throw new Unreachable();
    const error = new ApiError(status, problem);
    if (error.code === "unauthorized") this.dispatchEvent(new CustomEvent("refused", { detail: error }));
    throw error;
  }
}

/** Read the body of a response. A connection may break in the middle of it. */
async function readBody(read) {
  try {
    return await read();
  } catch {
    throw new Unreachable();
  }
}

/** Return a path with the query parameters that have a value. */
export function withQuery(path, query) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return given.length ? `${path}?${new URLSearchParams(given)}` : path;
}

/** Yield the frames of an event stream: {id, event, data}. Abort `beat` after a long silence. */
async function* readFrames(body, beat) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let timer;
  const listen = () => {
    clearTimeout(timer);
    timer = setTimeout(() => beat.abort(), SILENCE_MS);
  };
  try {
    listen();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      listen();
      rest += value.replaceAll("\r", "");
      const frames = rest.split("\n\n");
      rest = frames.pop();
      for (const frame of frames) yield parseFrame(frame);
    }
  } finally {
    clearTimeout(timer);
    reader.cancel().catch(() => {});
  }
}

function parseFrame(text) {
  const frame = {};
  for (const line of text.split("\n")) {
    const colon = line.indexOf(":");
    if (colon <= 0) continue;
    const name = line.slice(0, colon);
    const value = line.slice(colon + 1).replace(/^ /, "");
    frame[name] = name === "data" && frame.data !== undefined ? `${frame.data}\n${value}` : value;
  }
  return frame;
}

function sleep(ms, signal) {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
  });
}
