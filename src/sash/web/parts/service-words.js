/** The services and kinds of devices of Home Assistant, in words. */

import { html } from "../vendor/lit.js";
import { t, tValue } from "../text.js";

/** Return the words of a domain, such as "lights" for `light`. */
export function describeDomain(domain) {
  return tValue("house.domain", domain);
}

/**
 * Draw the entries of a policy's list. An entry is a service (`light.turn_on`), a domain (`light`), or has
 * wildcards (`light.*`).
 */
export function renderServices(entries) {
  return html`<ul class="services">
    ${entries.map((entry) => html`<li title=${entry}>${describeEntry(entry)}</li>`)}
  </ul>`;
}

function describeEntry(entry) {
  if (entry === "*") return t("policy.every_service");
  const domain = entry.endsWith(".*") ? entry.slice(0, -2) : entry;
  const words = describeDomain(domain);
  return words === domain ? html`<code>${entry}</code>` : words;
}
