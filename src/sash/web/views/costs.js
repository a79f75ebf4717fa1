import { html } from "../vendor/lit.js";
import { SashElement } from "../element.js";
customElements.define("sash-costs", class extends SashElement { render() { return html`<p class="empty">costs</p>`; } });
