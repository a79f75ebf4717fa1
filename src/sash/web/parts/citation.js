/** The sources of an answer in words. */

import { html, nothing } from "../vendor/lit.js";
import { formatMoment, t } from "../text.js";

export function renderCitation(citation) {
  switch (citation.type) {
    case "entity":
      return html`${citation.name}: <b>${citation.state}${citation.unit ? ` ${citation.unit}` : ""}</b>
        ${citation.at ? html`<span class="dim">${t("chat.since", { time: formatMoment(citation.at) })}</span>` : nothing}
        <code>${citation.entity_id}</code>`;
    case "history":
      return html`${t("chat.history_of", { name: citation.name, start: formatMoment(citation.start), end: formatMoment(citation.end) })}
        <code>${citation.entity_id}</code>`;
    case "log":
      return html`${formatMoment(citation.at)}: ${citation.text}`;
    case "turn":
      return html`${t("chat.earlier", { time: formatMoment(citation.at) })} <q>${citation.text}</q>`;
    default:
      return html`${citation.text ?? citation.type}`;
  }
}
