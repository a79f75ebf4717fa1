/** The base of all elements: they share the style sheet of the page, so they have no shadow root of their own. */

import { LitElement } from "./vendor/lit.js";

export class SashElement extends LitElement {
  createRenderRoot() {
    return this;
  }

  /** Dispatch an event that elements above receive. */
  emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true }));
  }

  /** Show a message at the edge of the page. `kind` is "info" or "error". */
  notify(message, kind = "info") {
    this.emit("sash-notice", { message, kind });
  }

  /** Run an asynchronous action of the user, and show its error. Return undefined after an error. */
  async attempt(action) {
    try {
      return await action();
    } catch (error) {
      if (error.name !== "AbortError") this.notify(error.message, "error");
      return undefined;
    }
  }
}
