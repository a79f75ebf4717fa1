import { html } from "../vendor/lit.js";
import { SashElement } from "../element.js";
customElements.define("sash-window", class extends SashElement { render() { return html`<p class="empty">window</p>`; } });
