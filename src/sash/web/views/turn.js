import { html } from "../vendor/lit.js";
import { SashElement } from "../element.js";
customElements.define("sash-turn", class extends SashElement { render() { return html`<p class="empty">turn</p>`; } });
