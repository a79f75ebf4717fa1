/** Texts in which the words of a search are marked: whole words, without case and accents. The server also finds other forms. */

import { html } from "../vendor/lit.js";

const WORD = /[\p{L}\p{N}\p{M}]+/gu;
const BEFORE = 80;
const MAX_CHARS = 300;

/** Return the words of a text in lower case and without accents. */
export function splitWords(text) {
  return [...text.matchAll(WORD)].map(([word]) => fold(word));
}

/** Draw the part of a text around the first word of the query, with the words of the query marked. */
export function renderExcerpt(text, query) {
  const wanted = new Set(splitWords(query));
  const matches = [...text.matchAll(WORD)].filter(([word]) => wanted.has(fold(word)));
  const start = findStart(text, matches[0]?.index ?? 0);
  const end = Math.min(text.length, start + MAX_CHARS);
  const pieces = [start > 0 ? "… " : ""];
  let place = start;
  for (const { 0: word, index } of matches) {
    if (index + word.length > end) break;
    pieces.push(text.slice(place, index), html`<mark>${word}</mark>`);
    place = index + word.length;
  }
  return [...pieces, text.slice(place, end), end < text.length ? " …" : ""];
}

/** Return the start of a word that is a little before the first match. */
function findStart(text, first) {
  if (first <= BEFORE) return 0;
  const space = text.indexOf(" ", first - BEFORE);
  return space < 0 || space >= first ? first : space + 1;
}

function fold(word) {
  return word.toLowerCase().normalize("NFD").replaceAll(/\p{M}/gu, "");
}
