/** The name that a person knows a session by. */

import { t } from "../text.js";

/** Return the title from the server's list, or the session's name, or words for a session that has neither. */
export function readSessionTitle(session, titles = {}) {
  return titles[session.id] ?? session.name ?? t(session.stats.turns ? "history.untitled" : "history.empty_session");
}
