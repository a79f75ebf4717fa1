import { html } from "../vendor/lit.js";
import { SashElement } from "../element.js";
customElements.define("sash-history", class extends SashElement { render() { return html`<p class="empty">history</p>`; } });
