import { html } from "../vendor/lit.js";
import { SashElement } from "../element.js";
customElements.define("sash-house", class extends SashElement { render() { return html`<p class="empty">house</p>`; } });
