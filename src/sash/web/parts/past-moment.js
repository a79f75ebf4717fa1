/** The times of a list that reaches back for years. */

import { formatMoment, getLanguage } from "../text.js";

/** Return the day and the time, with the year if it is not the current one. */
export function formatPastMoment(time) {
  const date = new Date(time);
  if (date.getFullYear() === new Date().getFullYear()) return formatMoment(time);
  return new Intl.DateTimeFormat(getLanguage(), { dateStyle: "medium", timeStyle: "short" }).format(date);
}
