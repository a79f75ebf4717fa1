/** Markdown of a model as safe HTML: HTML in it stays text, and no image of another host is loaded. */

import { html, unsafeHTML } from "../vendor/lit.js";
import { Marked, Renderer } from "../vendor/marked.js";
import DOMPurify from "../vendor/dompurify.js";

const TAGS = "a b blockquote br code del div em h3 h4 h5 h6 hr i img li ol p pre strong sub sup table tbody td th thead tr ul".split(" ");
const ATTRIBUTES = ["href", "title", "src", "alt", "align", "start", "class", "tabindex"];
const LINKS = /^(?:https?:|mailto:|#)/i;
// The time of the parser grows faster than such texts, so they stay plain.
const MAX_CHARS = 20_000;
const MAX_CELLS = 20_000;
// Headings of an answer stand below those of the page.
const FIRST_LEVEL = 3;

const markdown = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    html: ({ text }) => escape(text),
    heading({ tokens, depth }) {
      const level = Math.min(6, depth + FIRST_LEVEL - 1);
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>`;
    },
    image({ href, title, text }) {
      if (/^data:image\/(png|jpeg|gif|webp);/i.test(href)) return false;
      return `<a href="${escape(href)}">${escape(text || title || href)}</a>`;
    },
    table(token) {
      // A wide table scrolls. People without a mouse focus it first.
      return `<div class="wide" tabindex="0">${Renderer.prototype.table.call(this, token)}</div>`;
    },
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
  },
});

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName !== "A") return;
  node.setAttribute("target", "_blank");
  node.setAttribute("rel", "noopener noreferrer");
});

/** Return Markdown as a value for a template. A text that is too much for the parser stays plain. */
export function renderMarkdown(text) {
  if (text.length > MAX_CHARS || countCells(text) > MAX_CELLS) return renderPlain(text);
  try {
    return renderParsed(text);
  } catch {
    return renderPlain(text);
  }
}

function renderPlain(text) {
  return html`<p class="message">${text}</p>`;
}

/** Return how many cells a table of this text has at most: the parser fills up short rows. */
function countCells(text) {
  const lines = text.split("\n");
  return lines.length * Math.max(...lines.map((line) => line.split("|").length - 1));
}

function renderParsed(text) {
  return unsafeHTML(DOMPurify.sanitize(markdown.parse(text), {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ATTRIBUTES,
    ALLOWED_URI_REGEXP: LINKS,
    ALLOW_DATA_ATTR: false,
    // Images were checked above. Other tags have no data: addresses.
    ADD_DATA_URI_TAGS: ["img"],
  }));
}

function escape(text) {
  const names = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return text.replace(/[&<>"']/g, (character) => names[character]);
}
