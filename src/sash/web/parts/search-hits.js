/** The messages that a search has found. Each leads to its turn in the chat. */

import { html, nothing } from "../vendor/lit.js";
import { formatMoment, t, tValue } from "../text.js";
import { SashElement } from "../element.js";
import { renderExcerpt } from "./highlight.js";
import { readText } from "./window-blocks.js";

const NEAR = 20;

class SearchHits extends SashElement {
  static properties = {
    connection: { attribute: false },
    /** The messages, best first. */
    hits: { attribute: false },
    /** The titles of sessions, as far as they are known, by id. */
    titles: { attribute: false },
    query: { attribute: false },
  };

  render() {
    return html`<ol class="hits">${this.hits.map((hit) => html`<li class="card">${this._renderHit(hit)}</li>`)}</ol>`;
  }

  _renderHit(hit) {
    const title = this.titles[hit.session_id];
    return html`<p class="hit-text">
        <a href=${makeLink(hit.session_id, hit.continuation_id ?? hit.id)} @click=${(event) => this._open(event, hit)}>
          ${renderExcerpt(readText(hit), this.query)}
        </a>
      </p>
      <p class="small dim">
        ${tValue("history.said", hit.role)} · ${formatMoment(hit.timestamp)}
        ${title ? html` · ${t("history.in", { title })}` : nothing}
        ${hit.continuation_id ? html` · <a href="#/turn/${encodeURIComponent(hit.continuation_id)}">${t("history.steps")}</a>` : nothing}
      </p>`;
  }

  /** A message of a copied session belongs to no turn of its own, so the chat shows it with the message that it answers. */
  async _open(event, hit) {
    if (hit.continuation_id || hit.role === "user" || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const path = `v1/sessions/${encodeURIComponent(hit.session_id)}/messages`;
    const page = await this.attempt(() => this.connection.get(path, { before: hit.position, limit: NEAR }));
    const asked = page?.messages.findLast((message) => message.role === "user");
    location.hash = makeLink(hit.session_id, asked?.id ?? hit.id);
  }
}

function makeLink(sessionId, turnId) {
  return `#/chat/${encodeURIComponent(sessionId)}?turn=${encodeURIComponent(turnId)}`;
}

customElements.define("sash-search-hits", SearchHits);
