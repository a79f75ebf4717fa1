/** Sessions as files: an export that the browser saves, and the import of such a file. */

import { saveFile } from "./save-file.js";

const MAX_NAME_CHARS = 40;

/** Save a session as a JSON file in the browser's folder for downloads. */
export async function saveSession(connection, session, title) {
  const file = await connection.blob(`v1/sessions/${encodeURIComponent(session.id)}/export`);
  saveFile(file, `sash-${makeFileName(title)}-${session.updated_at.slice(0, 10)}.json`);
}

/** Import a file that `saveSession` made. Return the session's id, and whether the server had it already. */
export async function importSession(connection, file) {
  try {
    const { session_id: id } = await connection.post("v1/sessions/import", await file.text());
    return { id, isKnown: false };
  } catch (error) {
    if (error.code !== "session_exists") throw error;
    return { id: error.problem.session_id, isKnown: true };
  }
}

function makeFileName(title) {
  return title.replaceAll(/[^\p{L}\p{N}]+/gu, "-").slice(0, MAX_NAME_CHARS).replaceAll(/^-|-$/g, "") || "conversation";
}
