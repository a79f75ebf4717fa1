/** The whole next prompt as a strip: instructions, tools, pins, facts, digest, the house, the window. */

import { html } from "../vendor/lit.js";
import { t, tValue } from "../text.js";
import { SashElement } from "../element.js";
import { findOrigin } from "./token-bar.js";
import { splitMemory } from "./window-blocks.js";

class PromptStrip extends SashElement {
  static properties = {
    /** The parts of the context report, each with the messages that it sends. */
    parts: { attribute: false },
    /** The tokens of state changes of the house that stand between the messages of the window. */
    changesTokens: { type: Number },
  };

  render() {
    return html`<div class="prompt-strip" role="group" aria-label=${t("window.prompt_strip")}>
      ${this.parts.map((part) => this._renderPart(part))}
    </div>`;
  }

  _renderPart(part) {
    const sections = this._listSections(part);
    const color = `background: var(--part-${findOrigin(part.name)})`;
    return html`<button
      class="block part"
      data-part=${part.name}
      data-tokens=${part.tokens}
      .style=${`flex: ${part.tokens} 1 0`}
      title="${tValue("window.part", part.name)}: ${t("tokens", { count: part.tokens })}"
      aria-label="${tValue("window.part", part.name)}: ${t("tokens", { count: part.tokens })}"
      @click=${() => this.emit("sash-open-part", part)}
    >
      <span class="block-label">${tValue("window.part", part.name)}</span>
      <span class="band">
        ${sections.length
          ? sections.map(
              (section) => html`<i
                data-section=${section.name}
                data-tokens=${section.tokens}
                title="${tValue("window.section", section.name)}: ${t("window.about_tokens", { count: section.tokens })}"
                .style=${`flex: ${section.tokens} 1 0; ${color}`}
              ></i>`,
            )
          : html`<i .style=${`flex: 1 1 0; ${color}`}></i>`}
      </span>
    </button>`;
  }

  _listSections(part) {
    if (part.name === "memory" || part.name === "notes") return splitMemory(part);
    if (part.name !== "window" || !this.changesTokens) return [];
    const turns = { name: "turns", tokens: part.tokens - this.changesTokens };
    return [turns, { name: "changes", tokens: this.changesTokens }];
  }
}

customElements.define("sash-prompt-strip", PromptStrip);
