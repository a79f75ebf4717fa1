/** A bar of the tokens of a prompt, coloured by their origin, with a legend that does not need the colours. */

import { html, nothing } from "../vendor/lit.js";
import { formatNumber, joinPair, t } from "../text.js";
import { SashElement } from "../element.js";

// The names of the parts that the server reports, by the origin that a person understands.
const ORIGINS = {
  tools: "tools",
  system: "system",
  home: "home",
  house: "home",
  memory: "facts",
  notes: "facts",
  pinned: "facts",
  digest: "facts",
  window: "window",
  recalled: "recalled",
  turn: "turn",
};

/** Return the origin of a part of the prompt: one of the names of the colours. */
export function findOrigin(name) {
  return ORIGINS[name] ?? "other";
}

/** Add up parts of the same origin. Return [{origin, tokens}] in the order of the prompt. */
export function groupByOrigin(parts) {
  const sums = new Map();
  for (const { name, tokens } of parts) {
    const origin = findOrigin(name);
    sums.set(origin, (sums.get(origin) ?? 0) + tokens);
  }
  return [...sums].map(([origin, tokens]) => ({ origin, tokens })).filter((each) => each.tokens > 0);
}

class TokenBar extends SashElement {
  static properties = { parts: { attribute: false } };

  render() {
    const groups = groupByOrigin(this.parts ?? []);
    const total = groups.reduce((sum, each) => sum + each.tokens, 0);
    if (!total) return nothing;
    const words = groups.map(({ origin, tokens }) => `${t(`origin.${origin}`)} ${formatNumber(tokens)}`);
    return html`<div class="token-bar">
      <div class="bar" role="img" aria-label=${words.join(", ")}>
        ${groups.map(
          ({ origin, tokens }) =>
            html`<span
              title=${joinPair(t(`origin.${origin}`), t("tokens", { count: tokens }))}
              .style=${`width: ${(100 * tokens) / total}%; background: var(--part-${origin})`}
            ></span>`,
        )}
      </div>
      <ul class="legend" aria-hidden="true">
        ${groups.map(
          ({ origin, tokens }) =>
            html`<li><i .style=${`background: var(--part-${origin})`}></i>${t(`origin.${origin}`)} <b>${formatNumber(tokens)}</b></li>`,
        )}
      </ul>
    </div>`;
  }
}

customElements.define("sash-token-bar", TokenBar);
