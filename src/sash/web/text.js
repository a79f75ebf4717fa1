/** The words of the page in the user's language, and numbers and times as people write them there. */

export const LANGUAGES = ["en", "de", "fr", "es", "it", "nl"];

let words = {};
let locale = "en";
let plurals = new Intl.PluralRules("en");

/** Return the first language of `wanted` that the page has, or English. */
export function chooseLanguage(wanted) {
  const short = wanted.map((each) => each.toLowerCase().split("-")[0]);
  return short.find((each) => LANGUAGES.includes(each)) ?? "en";
}

export async function loadLanguage(language) {
  const response = await fetch(new URL(`languages/${language}.json`, import.meta.url));
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  words = await response.json();
  locale = language;
  plurals = new Intl.PluralRules(language);
}

export function getLanguage() {
  return locale;
}

/**
 * Return the words of a key, such as `t("chat.send")`. `{name}` is replaced by `values.name`.
 *
 * An entry with several forms is chosen by `values.count`: {"one": "{count} turn", "other": "{count} turns"}.
 */
export function t(key, values = {}) {
  let entry = words[key];
  if (entry === undefined) return key;
  if (typeof entry === "object") entry = entry[plurals.select(values.count)] ?? entry.other;
  return entry.replaceAll(/\{(\w+)\}/g, (whole, name) => {
    const value = values[name];
    if (value === undefined) return whole;
    return typeof value === "number" ? formatNumber(value) : value;
  });
}

/** Return the words of a value of the server, such as a status, or the value itself if the page has none. */
export function tValue(group, value) {
  return words[`${group}.${value}`] ?? String(value);
}

export function formatNumber(value, digits = 0) {
  if (value === null || value === undefined) return t("unknown");
  return new Intl.NumberFormat(locale, { maximumFractionDigits: digits }).format(value);
}

export function formatShare(share) {
  if (share === null || share === undefined) return t("unknown");
  return new Intl.NumberFormat(locale, { style: "percent", maximumFractionDigits: 0 }).format(share);
}

/** Return dollars. A price that is not known is "unknown", never a zero. */
export function formatCost(usd) {
  if (usd === null || usd === undefined) return t("unknown");
  const digits = usd === 0 || usd >= 1 ? 2 : usd >= 0.01 ? 3 : 5;
  return new Intl.NumberFormat(locale, {
    style: "currency",
    currency: "USD",
    currencyDisplay: "narrowSymbol",
    minimumFractionDigits: 2,
    maximumFractionDigits: digits,
  }).format(usd);
}

export function formatDuration(ms) {
  if (ms === null || ms === undefined) return t("unknown");
  if (ms < 1000) return `${formatNumber(ms)} ms`;
  if (ms < 60_000) return `${formatNumber(ms / 1000, 1)} s`;
  return `${formatNumber(ms / 60_000, 1)} min`;
}

export function formatTime(time) {
  return new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit" }).format(new Date(time));
}

export function formatDay(time) {
  const day = typeof time === "string" && time.length === 10 ? new Date(`${time}T12:00`) : new Date(time);
  return new Intl.DateTimeFormat(locale, { weekday: "short", day: "numeric", month: "short" }).format(day);
}

/** Return the day and the time, only the time for today, and the year if it is not the current one. */
export function formatMoment(time) {
  const date = new Date(time);
  const now = new Date();
  if (date.toDateString() === now.toDateString()) return formatTime(time);
  if (date.getFullYear() === now.getFullYear()) return `${formatDay(time)}, ${formatTime(time)}`;
  return new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" }).format(date);
}

export function formatBytes(bytes) {
  const [unit, size] = bytes < 1000 ? ["byte", 1] : bytes < 1e6 ? ["kilobyte", 1000] : ["megabyte", 1e6];
  return new Intl.NumberFormat(locale, { style: "unit", unit, maximumFractionDigits: 1 }).format(bytes / size);
}

/** Return a name and its value with a colon, which French separates from the name. */
export function joinPair(name, value) {
  return `${name}${locale === "fr" ? "\u00a0" : ""}: ${value}`;
}
