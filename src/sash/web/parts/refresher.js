/** Loads the data of a view: when it is shown, when its tab is shown again, and at an interval while it is visible. */

export class Refresher {
  constructor(host, load, intervalMs) {
    this._host = host;
    this._load = load;
    this._intervalMs = intervalMs;
    this._onShown = () => document.visibilityState === "visible" && load();
    host.addController(this);
  }

  hostConnected() {
    document.addEventListener("visibilitychange", this._onShown);
    this._timer = setInterval(this._onShown, this._intervalMs);
    // The properties of an element may be set only after it is connected.
    this._host.updateComplete.then(this._load);
  }

  hostDisconnected() {
    document.removeEventListener("visibilitychange", this._onShown);
    clearInterval(this._timer);
  }
}
