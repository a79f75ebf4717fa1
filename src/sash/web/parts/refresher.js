/** Loads the data of a view: when it is shown, when its tab is shown again, and at an interval while it is visible. */

export class Refresher {
  /** `load` is called each time. Without `intervalMs` the view is not loaded again by itself. */
  constructor(host, load, intervalMs = null) {
    this._host = host;
    this._load = load;
    this._intervalMs = intervalMs;
    this._onShown = () => document.visibilityState === "visible" && load();
    host.addController(this);
  }

  hostConnected() {
    document.addEventListener("visibilitychange", this._onShown);
    if (this._intervalMs) this._timer = setInterval(this._onShown, this._intervalMs);
    // The properties of an element may be set only after it is connected.
    this._host.updateComplete.then(this._load);
  }

  hostDisconnected() {
    document.removeEventListener("visibilitychange", this._onShown);
    clearInterval(this._timer);
  }
}
