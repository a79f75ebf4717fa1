-- `:session` is a session's key. `:session_id` is its public id.

-- name: check_write
-- The value changes each time: SQLite writes no page that stays the same.
INSERT OR REPLACE INTO write_checks (rowid, number) VALUES (1, random());

-- name: key
SELECT key FROM sessions WHERE id = :session_id AND owner = :owner;

-- name: session
SELECT s.body, s.status, s.updated_at, s.version, s.stats, c.digest, c.cut_at
FROM sessions AS s JOIN cuts AS c ON c.session = s.key WHERE s.id = :session_id AND s.owner = :owner;

-- name: sessions
SELECT s.id, s.body, s.status, s.updated_at, s.version, s.stats, c.digest, c.cut_at
FROM sessions AS s JOIN cuts AS c ON c.session = s.key
WHERE s.owner = :owner AND (:status IS NULL OR s.status = :status) AND (:name IS NULL OR s.name = :name)
    AND (:cursor IS NULL OR s.id < :cursor)
    AND (:with_questions OR s.status = 'active' OR NOT ifnull(iif(json_valid(s.body), coalesce(
        json_extract(s.body, '$.is_one_question'), json_extract(s.body, '$.context.one_question')), 0), 0))
ORDER BY s.id DESC LIMIT :limit;

-- name: inactive_sessions
-- Ended and expired sessions without a change since then. `:owner` may be NULL for all owners.
SELECT s.owner, s.id FROM sessions AS s
WHERE (:owner IS NULL OR s.owner = :owner) AND s.status IN ('ended', 'expired') AND s.owner <> ''
    AND s.updated_at < CASE WHEN iif(json_valid(s.body), coalesce(json_extract(s.body, '$.is_one_question'),
        json_extract(s.body, '$.context.one_question')), 0) IS 1 THEN :ended_before ELSE :delete_before END;

-- name: count_active
SELECT count(*) FROM sessions INDEXED BY active_of_owner WHERE owner = :owner AND status = 'active';

-- name: session_of_name
SELECT s.body, s.status, s.updated_at, s.version, s.stats, c.digest, c.cut_at
FROM sessions AS s JOIN cuts AS c ON c.session = s.key
WHERE s.key = ifnull(
    (SELECT key FROM sessions INDEXED BY one_of_name WHERE owner = :owner AND name = :name AND status = 'active'),
    (SELECT key FROM sessions INDEXED BY sessions_of_name WHERE owner = :owner AND name = :name
     ORDER BY id DESC LIMIT 1));

-- name: idle_sessions
-- Active sessions without a change since then, each with its key and the number of turns that hold it, with its
-- waiting turns.
SELECT s.key, (SELECT count(*) FROM continuations INDEXED BY holders
     WHERE session = s.key AND status IN ('running', 'awaiting_approval'))
     + (SELECT count(*) FROM waiting_turns WHERE session = s.key),
    s.status, s.updated_at, s.version
FROM sessions AS s WHERE s.status = 'active' AND s.updated_at < :before;

-- name: expire_session
UPDATE sessions SET status = ?, version = ? WHERE key = ?;

-- name: insert_session
INSERT INTO sessions (id, owner, name, status, updated_at, version, stats, body)
VALUES (:id, :owner, :name, :status, :updated_at, :version, :stats, :body) ON CONFLICT (id) DO NOTHING RETURNING key;

-- name: insert_cut
INSERT INTO cuts (session, digest, cut_at) VALUES (:session, :digest, :cut_at);

-- name: update_session
UPDATE sessions SET name = :name, status = :status, updated_at = :updated_at, version = :version, stats = :stats,
    body = :body
WHERE id = :id RETURNING key;

-- name: update_digest
UPDATE cuts SET digest = :digest, cut_at = :cut_at
WHERE session = :session AND (digest <> :digest OR cut_at IS NOT :cut_at);

-- name: touch_session
UPDATE sessions SET updated_at = ?, version = ? WHERE key = ?;

-- name: hide_sessions
-- No query shows the sessions of the owner ''. A session that is being imported or deleted is 'hidden', too. Both
-- columns have to say it: a damaged owner alone deletes nothing.
UPDATE sessions SET owner = '', status = 'hidden'
WHERE owner = :owner AND (:session_id IS NULL OR id = :session_id) RETURNING key;

-- name: hidden_sessions
SELECT key FROM sessions WHERE owner = '' AND status = 'hidden';

-- name: drop_open_turns
DELETE FROM continuations WHERE session = ?
    AND status IN ('pending', 'running', 'interrupted', 'awaiting_approval');

-- name: has_indexed_messages
SELECT EXISTS (SELECT 1 FROM messages WHERE session = ? AND row <= (SELECT row FROM indexed));

-- name: delete_session
DELETE FROM sessions WHERE key = ?;

-- name: show_session
UPDATE sessions SET owner = :owner, name = :name, status = :status, body = :body WHERE id = :id;

-- name: session_state
-- The key of a session, then the fields of `SessionState`. A swept step keeps its cursor.
SELECT s.key, s.version, s.positions,
    max(s.cursor, ifnull((SELECT max(cursor) FROM steps WHERE session = s.key), 0)),
    (SELECT min(id) FROM continuations INDEXED BY holders
     WHERE session = s.key AND status IN ('running', 'awaiting_approval')),
    (SELECT count(*) FROM continuations INDEXED BY holders
     WHERE session = s.key AND status IN ('running', 'awaiting_approval')),
    (SELECT count(*) FROM continuations INDEXED BY waiting WHERE session = s.key
        AND status IN ('pending', 'interrupted') AND status = 'pending')
FROM sessions AS s WHERE s.id = :session_id AND s.owner = :owner;

-- name: count_pending
SELECT count(*) FROM continuations INDEXED BY pending_of_owner WHERE owner = :owner AND status = 'pending';

-- name: last_cursor
SELECT max(s.cursor, ifnull((SELECT max(cursor) FROM steps WHERE session = s.key), 0))
FROM sessions AS s WHERE s.id = :session_id AND s.owner = :owner;

-- name: end_state
-- The columns of `turn_state`, then the fields of `EndState`, then the session and the stored ending.
SELECT s.key, c.worker, c.epoch, (SELECT count(*) FROM steps
        WHERE session = s.key AND cursor > c.first_cursor AND continuation_id = c.id),
    max(s.cursor, ifnull((SELECT max(cursor) FROM steps WHERE session = s.key), 0)), s.positions,
    EXISTS (SELECT 1 FROM continuations INDEXED BY waiting WHERE session = s.key
        AND status IN ('pending', 'interrupted') AND status = 'pending'),
    s.owner, s.id, s.version, c.ending
FROM continuations AS c JOIN sessions AS s ON s.key = c.session WHERE c.id = ?;

-- name: turn_state
-- The key of a continuation's session, the worker and the epoch of its lease, the number of its steps, and the
-- session's last cursor.
SELECT s.key, c.worker, c.epoch, (SELECT count(*) FROM steps
        WHERE session = s.key AND cursor > c.first_cursor AND continuation_id = c.id),
    max(s.cursor, ifnull((SELECT max(cursor) FROM steps WHERE session = s.key), 0))
FROM continuations AS c JOIN sessions AS s ON s.key = c.session WHERE c.id = ?;

-- name: continuation
SELECT body, status, updated_at, ending FROM continuations
WHERE id = :id AND owner = :owner AND session NOT IN (SELECT key FROM sessions WHERE owner = '');

-- name: continuations
SELECT body, status, updated_at, ending FROM continuations WHERE session = :session ORDER BY id;

-- name: recent_of_session
-- `:statuses` is a JSON list, or NULL for all of them.
SELECT body, status, updated_at, ending FROM continuations
WHERE session = :session AND id < :before
    AND (:statuses IS NULL OR status IN (SELECT value FROM json_each(:statuses)))
ORDER BY id DESC LIMIT :limit;

-- name: recent_of_owner
-- The inner queries read only indexes, unless they look for a status: the newest ids of each session, and then the
-- newest of those.
SELECT body, status, updated_at, ending FROM continuations WHERE id IN (
    SELECT c.id FROM sessions AS s INDEXED BY sessions_of_owner CROSS JOIN continuations AS c
    WHERE s.owner = :owner AND c.id IN
        (SELECT id FROM continuations WHERE session = s.key AND id < :before
            AND (:statuses IS NULL OR status IN (SELECT value FROM json_each(:statuses)))
         ORDER BY id DESC LIMIT :limit)
    ORDER BY c.id DESC LIMIT :limit)
ORDER BY id DESC;

-- name: recent_unfinished
-- The same, for statuses that are not final. `:session` may be NULL for all sessions of the owner.
SELECT body, status, updated_at, ending FROM continuations WHERE id IN (
    SELECT id FROM (
        SELECT c.id FROM sessions AS s INDEXED BY sessions_of_owner CROSS JOIN continuations AS c INDEXED BY holders
            ON c.session = s.key AND c.status IN ('running', 'awaiting_approval')
        WHERE s.owner = :owner AND (:session IS NULL OR s.key = :session) AND c.id < :before
            AND c.status IN (SELECT value FROM json_each(:statuses))
        UNION ALL
        SELECT c.id FROM sessions AS s INDEXED BY sessions_of_owner CROSS JOIN continuations AS c INDEXED BY waiting
            ON c.session = s.key AND c.status IN ('pending', 'interrupted')
        WHERE s.owner = :owner AND (:session IS NULL OR s.key = :session) AND c.id < :before
            AND c.status IN (SELECT value FROM json_each(:statuses)))
    ORDER BY id DESC LIMIT :limit)
ORDER BY id DESC;

-- name: open_continuations
SELECT body, status, updated_at, ending FROM (
    SELECT id, body, status, updated_at, ending FROM continuations INDEXED BY holders
    WHERE session = :session AND status IN ('running', 'awaiting_approval')
    UNION ALL
    SELECT id, body, status, updated_at, ending FROM continuations INDEXED BY waiting
    WHERE session = :session AND status IN ('pending', 'interrupted'))
ORDER BY id;

-- name: continuation_of_key
SELECT body, status, updated_at, ending FROM continuations
WHERE session = :session AND idempotency_key = :idempotency_key;

-- name: holders
-- The oldest continuation that holds the session of a continuation, and the number of those that do.
SELECT min(h.id), count(*) FROM continuations AS c JOIN continuations AS h INDEXED BY holders
    ON h.session = c.session AND h.status IN ('running', 'awaiting_approval')
WHERE c.id = :id;

-- name: next_pending
SELECT c.body, c.status, c.updated_at, c.ending FROM sessions AS s
    JOIN continuations AS c INDEXED BY waiting ON c.session = s.key
        AND c.status IN ('pending', 'interrupted') AND c.status = 'pending'
WHERE s.id = :session_id ORDER BY c.id LIMIT 1;

-- name: running
SELECT worker, lease_until, body, status, updated_at, ending FROM continuations INDEXED BY holders
WHERE status IN ('running', 'awaiting_approval') AND status = 'running';

-- name: workers
SELECT DISTINCT worker FROM continuations INDEXED BY holders
WHERE status IN ('running', 'awaiting_approval') AND worker IS NOT NULL;

-- name: waiting
-- Each continuation comes with the number of those that hold its session.
SELECT (SELECT count(*) FROM continuations INDEXED BY holders
     WHERE session = c.session AND status IN ('running', 'awaiting_approval')),
    c.body, c.status, c.updated_at, c.ending FROM continuations AS c INDEXED BY waiting
WHERE c.status IN ('pending', 'interrupted') ORDER BY c.id;

-- name: last_id
SELECT max(id) FROM (
    SELECT max(id) AS id FROM sessions WHERE id < :latest
    UNION ALL SELECT max(id) FROM continuations WHERE id < :latest);

-- name: export_key
SELECT value FROM export_key WHERE typeof(value) = 'blob' AND length(value) = 32 ORDER BY rowid DESC LIMIT 1;

-- name: replace_export_key
INSERT INTO export_key SELECT randomblob(32)
WHERE NOT EXISTS (SELECT 1 FROM export_key WHERE typeof(value) = 'blob' AND length(value) = 32);

-- name: waiting_since
SELECT worker, body, status, updated_at, ending FROM continuations
WHERE updated_at < :before AND status IN ('pending', 'running', 'interrupted', 'awaiting_approval');

-- name: insert_continuation
INSERT INTO continuations (id, session, owner, status, updated_at, idempotency_key, worker, lease_until, epoch,
    first_cursor, answer_at, body, ending)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: update_continuation
UPDATE continuations SET body = :body WHERE id = :id;

-- name: claim
UPDATE continuations SET status = ?, updated_at = ?, worker = ?, lease_until = ?, epoch = ? WHERE id = ?;

-- name: release
UPDATE continuations SET status = ?, updated_at = ?, worker = NULL, lease_until = NULL, epoch = ?,
    ending = ifnull(?, ending), answer_at = ?
WHERE id = ?;

-- name: workers_of
SELECT id, worker FROM continuations WHERE id IN (SELECT value FROM json_each(:ids));

-- name: renew
UPDATE continuations SET lease_until = ? WHERE id = ?;

-- name: prompts
-- A step may have prompts beside its own fields.
SELECT continuation_id, cursor, json_extract(body, '$.prompts') FROM steps
WHERE session = :session AND instr(body, ',"prompts":') AND json_valid(body)
    AND json_type(body, '$.prompts') = 'object'
ORDER BY cursor;

-- name: move_prompts
UPDATE steps SET body = json_set(body, '$.prompts', json(:prompts))
WHERE session = :session AND cursor = :cursor;

-- name: insert_step
INSERT INTO steps (session, cursor, continuation_id, body) VALUES (?, ?, ?, ?);

-- name: steps
SELECT t.body FROM continuations AS c JOIN steps AS t ON t.session = c.session
    AND t.cursor > c.first_cursor AND t.continuation_id = c.id
WHERE c.id = :id ORDER BY t.cursor;

-- name: events
SELECT continuation_id, body FROM steps WHERE session = :session AND cursor > :after
ORDER BY cursor LIMIT :limit;

-- name: unswept_turns
SELECT status, updated_at, id, session, first_cursor FROM continuations
WHERE NOT swept AND updated_at < :before AND status IN ('completed', 'failed', 'cancelled', 'expired');

-- name: keep_cursor
UPDATE sessions
SET cursor = max(cursor, ifnull((SELECT max(cursor) FROM steps WHERE session = sessions.key), 0))
WHERE key = :session;

-- name: drop_steps
DELETE FROM steps WHERE session = :session AND cursor > :first_cursor AND continuation_id = :id;

-- name: mark_swept
UPDATE continuations SET swept = 1 WHERE id = :id;

-- name: end_turn
-- `status` is apart: an UPDATE that names it rewrites the indexes of active sessions even if it does not change.
UPDATE sessions SET updated_at = ?, version = ?, cursor = ?, positions = ?, stats = ? WHERE key = ?;

-- name: end_session
UPDATE sessions SET status = ? WHERE key = ?;

-- name: set_positions
UPDATE sessions SET positions = :positions WHERE key = :session;

-- name: insert_message
INSERT INTO messages (session, position, continuation_id, body) VALUES (?, ?, ?, ?);

-- name: messages_after
-- For other queries.
SELECT m.position, m.continuation_id, m.body, m.position >= c.window_from
    OR EXISTS (SELECT 1 FROM json_each(iif(json_valid(c.kept), c.kept, '[]')) WHERE value = m.position)
FROM messages AS m JOIN cuts AS c ON c.session = m.session
WHERE m.session = :session AND m.position > :after;

-- name: tagged_messages_after
-- The same, for messages that have one of the tags.
{messages_after}
    AND EXISTS (SELECT 1 FROM json_each(iif(json_valid(m.body), m.body, '{}'), '$.tags') AS t
        WHERE t.value IN (SELECT value FROM json_each(:tags)));

-- name: messages
{messages_after} ORDER BY m.position LIMIT :limit;

-- name: messages_before
-- Newest first.
{messages_after} AND m.position < :before ORDER BY m.position DESC LIMIT :limit;

-- name: tagged_messages
{tagged_messages_after} ORDER BY m.position LIMIT :limit;

-- name: tagged_messages_before
-- Newest first.
{tagged_messages_after} AND m.position < :before ORDER BY m.position DESC LIMIT :limit;

-- name: first_user_messages
SELECT s.id, m.body FROM sessions AS s CROSS JOIN messages AS m ON m.session = s.key AND m.position = (
    SELECT min(position) FROM messages WHERE session = s.key AND position <= :last
        AND json_extract(iif(json_valid(body), body, '{}'), '$.role') = 'user')
WHERE s.id IN (SELECT value FROM json_each(:ids)) AND s.owner = :owner;

-- name: messages_by_id
SELECT m.position, m.continuation_id, m.body, m.position >= c.window_from
    OR EXISTS (SELECT 1 FROM json_each(iif(json_valid(c.kept), c.kept, '[]')) WHERE value = m.position)
FROM messages AS m JOIN cuts AS c ON c.session = m.session
WHERE m.session = :session
    AND json_extract(iif(json_valid(m.body), m.body, '{}'), '$.id') IN (SELECT value FROM json_each(:ids))
ORDER BY m.position;

-- name: message_position
SELECT position FROM messages
WHERE session = :session AND json_extract(iif(json_valid(body), body, '{}'), '$.id') = :id;

-- name: window
-- CROSS JOIN keeps the order of the tables. In the other order SQLite would read the whole transcript.
SELECT m.position, m.body FROM cuts AS c CROSS JOIN json_each(iif(json_valid(c.kept), c.kept, '[]')) AS k
    CROSS JOIN messages AS m ON m.session = c.session AND m.position = k.value
WHERE c.session = :session
UNION ALL
SELECT m.position, m.body
FROM cuts AS c JOIN messages AS m ON m.session = c.session AND m.position >= c.window_from
WHERE c.session = :session
ORDER BY 1;

-- name: owner_windows
-- The messages in the windows of an owner's active sessions, for other queries. An empty window has one row without a message.
SELECT s.key, s.body AS session, c.evicted_count, m.row, m.body
FROM sessions AS s INDEXED BY active_of_owner CROSS JOIN cuts AS c ON c.session = s.key
    CROSS JOIN json_each(iif(json_valid(c.kept), c.kept, '[]')) AS k
    CROSS JOIN messages AS m ON m.session = s.key AND m.position = k.value
WHERE s.owner = :owner AND s.status = 'active'
UNION ALL
SELECT s.key, s.body, c.evicted_count, m.row, m.body
FROM sessions AS s INDEXED BY active_of_owner CROSS JOIN cuts AS c ON c.session = s.key
    LEFT JOIN messages AS m ON m.session = s.key AND m.position >= c.window_from
WHERE s.owner = :owner AND s.status = 'active';

-- name: window_counts
-- Messages, tokens, limit and evicted messages of each window of an owner's active sessions.
SELECT count(row), ifnull(sum(json_extract(iif(json_valid(shown.body), shown.body, '{}'), '$.token_count')), 0),
    json_extract(iif(json_valid(session), session, '{}'), '$.window.max_tokens'), max(evicted_count)
FROM ({owner_windows}) AS shown GROUP BY key;

-- name: window_tags
SELECT t.value, count(*)
FROM ({owner_windows}) AS shown, json_each(iif(json_valid(shown.body), shown.body, '{}'), '$.tags') AS t
GROUP BY t.value ORDER BY 2 DESC LIMIT :limit;

-- name: window_turns
SELECT c.body, c.status, c.updated_at, c.ending FROM (
    SELECT m.continuation_id AS id, m.position FROM cuts AS c CROSS JOIN json_each(iif(json_valid(c.kept), c.kept, '[]')) AS k
        CROSS JOIN messages AS m ON m.session = c.session AND m.position = k.value
    WHERE c.session = :session
    UNION ALL
    SELECT m.continuation_id, m.position
    FROM cuts AS c JOIN messages AS m ON m.session = c.session AND m.position >= c.window_from
    WHERE c.session = :session) AS shown
CROSS JOIN continuations AS c ON c.id = shown.id
GROUP BY c.id ORDER BY min(shown.position);

-- name: answer
-- The last message of a turn, with its session and its position.
SELECT m.row, m.body, m.session, m.position FROM continuations AS c
    JOIN messages AS m ON m.session = c.session AND m.position = c.answer_at
WHERE c.id = :id;

-- name: tag_message
UPDATE messages SET body = :body WHERE session = :session AND position = :position;

-- name: amend_message
UPDATE messages SET body = :body, index_text = :index_text WHERE row = :row;

-- name: amend_continuation
-- The amendment is a new step, which the next sweep has to drop.
UPDATE continuations SET ending = :ending, swept = 0 WHERE id = :id;

-- name: drop_vector
-- Before vectors of messages there were vectors of turns, with the position of the turn's first message.
DELETE FROM vectors WHERE session = :session AND position =
    (SELECT max(position) FROM vectors WHERE session = :session AND position <= :position)
    AND EXISTS (SELECT 1 FROM messages AS m
        WHERE m.session = :session AND m.position = vectors.position AND m.continuation_id = :id);

-- name: cut
SELECT turn_starts, evicted, evicted_count, window_from, kept FROM cuts WHERE session = :session;

-- name: move_cut
UPDATE cuts SET window_from = :window_from, kept = :kept, turn_starts = :turn_starts, evicted = :evicted,
    evicted_count = :evicted_count
WHERE session = :session;

-- name: is_indexed_sound
SELECT typeof(row) = 'integer' AND row BETWEEN 0 AND ifnull((SELECT max(row) FROM messages), 0) FROM indexed;

-- name: last_indexed
SELECT row, 'place : "' || session || 'said" OR place : "' || session || 'tool"'
FROM messages WHERE row <= (SELECT row FROM indexed) ORDER BY row DESC LIMIT 1;

-- name: is_indexed
SELECT 1 FROM said WHERE rowid = ? AND said MATCH ?;

-- name: indexed
SELECT row FROM indexed;

-- name: unindexed
SELECT row, length(body) FROM messages WHERE row > (SELECT row FROM indexed) ORDER BY row LIMIT 64;

-- name: index_messages
INSERT INTO said (rowid, place, text) SELECT row, place, text FROM messages_as_text
WHERE row > (SELECT row FROM indexed) AND row <= ?;

-- name: set_indexed
UPDATE indexed SET row = ?;

-- name: evicted_messages
-- Newest first. The reader stops at the first message that the index contains. The last column is as in `texts_to_index`.
SELECT m.row, iif(json_valid(m.body), json_extract(m.body, '$.role'), NULL), t.text, iif(instr(m.body, '\u0000'), m.body, NULL)
FROM cuts AS c CROSS JOIN messages AS m ON m.session = c.session AND m.position < c.window_from
    CROSS JOIN messages_as_text AS t ON t.row = m.row
WHERE c.session = :session AND NOT EXISTS (SELECT 1 FROM json_each(iif(json_valid(c.kept), c.kept, '[]')) WHERE value = m.position)
ORDER BY m.position DESC;

-- name: indexed_after_delete
-- SQLite reuses the highest row numbers when they are free.
UPDATE indexed SET row = min(row, ifnull((SELECT max(row) FROM messages), 0));

-- name: merge_index
-- Merges some segments of the index. A negative number of pages begins to merge all segments into one.
INSERT INTO said (said, rank) VALUES ('merge', ?);

-- name: texts_to_index
-- The whole message, too, if its text may have a NUL, where SQLite ends it.
SELECT m.row, m.session, t.place LIKE '% said', m.index_text IS NOT NULL, t.text, iif(instr(m.body, '\u0000'), m.body, NULL)
FROM messages AS m CROSS JOIN messages_as_text AS t ON t.row = m.row
WHERE m.row > (SELECT row FROM indexed) AND m.row <= ?;

-- name: set_index_text
UPDATE messages SET index_text = ? WHERE row = ?;

-- name: unknown_words
-- A word is known if its first part is.
SELECT j.key FROM json_each(:first_parts) AS j
WHERE NOT EXISTS (SELECT 1 FROM word_parts WHERE session = :session AND part = j.value AND word = j.key);

-- name: add_word_part
INSERT OR IGNORE INTO word_parts (session, part, word) VALUES (?, ?, ?);

-- name: has_known_words
-- True if the index has a message.
SELECT 1 FROM indexed WHERE row >= ?;

-- name: has_words
SELECT 1 FROM said WHERE said MATCH ? LIMIT 1;

-- name: drop_word_part
DELETE FROM word_parts WHERE session = ? AND part = ? AND word = ?;

-- name: words_with_parts
-- The words with the most of some parts.
SELECT w.word FROM json_each(:parts) AS j CROSS JOIN word_parts AS w ON w.session = :session AND w.part = j.value
WHERE typeof(w.word) = 'text'
GROUP BY w.word ORDER BY count(*) DESC, w.word LIMIT :limit;

-- name: owner_words_with_parts
SELECT w.word FROM sessions AS s CROSS JOIN json_each(:parts) AS j
    CROSS JOIN word_parts AS w ON w.session = s.key AND w.part = j.value
WHERE s.owner = :owner AND typeof(w.word) = 'text'
GROUP BY w.word ORDER BY count(DISTINCT j.value) DESC, w.word LIMIT :limit;

-- name: owner_rows_with_words
SELECT said.rowid FROM said CROSS JOIN messages AS m ON m.row = said.rowid JOIN sessions AS s ON s.key = m.session
WHERE said MATCH :words AND s.owner = :owner;

-- name: count_unindexed
SELECT ifnull((SELECT max(row) FROM messages), 0) - (SELECT max(row) FROM indexed);

-- name: drop_word_parts
DELETE FROM word_parts WHERE (session, part, word) IN (
    SELECT session, part, word FROM word_parts WHERE session = ? LIMIT 500);

-- name: count_owner_messages
SELECT CAST(total(positions) AS INTEGER) FROM sessions
WHERE owner = :owner AND (:session_id IS NULL OR id = :session_id) AND typeof(positions) = 'integer';

-- name: evicted_until
-- The position and the row of the first message behind the evicted ones, and the positions before it that are kept.
SELECT c.window_from, iif(json_valid(c.kept), c.kept, '[]'), ifnull((SELECT m.row FROM messages AS m
    WHERE m.session = c.session AND m.position >= c.window_from ORDER BY m.position LIMIT 1), 9223372036854775807)
FROM cuts AS c WHERE c.session = :session;

-- name: rows_at
SELECT m.row FROM json_each(:positions) AS j CROSS JOIN messages AS m ON m.session = :session AND m.position = j.value;

-- name: rows_with_words
SELECT rowid FROM said WHERE said MATCH :words AND rowid < :until;

-- name: messages_at
SELECT m.position, m.continuation_id, m.body, m.position >= c.window_from
    OR EXISTS (SELECT 1 FROM json_each(iif(json_valid(c.kept), c.kept, '[]')) WHERE value = m.position)
FROM json_each(:positions) AS j CROSS JOIN messages AS m ON m.session = :session AND m.position = j.value
    CROSS JOIN cuts AS c ON c.session = m.session
ORDER BY m.position;

-- name: body
-- A text ends for SQLite at a NUL, so another sign stands for it. An indexed message with a NUL has an `index_text`.
iif(m.index_text IS NULL AND m.row <= (SELECT row FROM indexed), m.body, replace(m.body, '\u0000', '\u0001'));

-- name: said_columns
-- Of a message `m`: who said it, when, and its text.
m.position, json_extract(m.body, '$.role') AS role, json_extract(m.body, '$.name') AS name,
json_extract(m.body, '$.timestamp') AS timestamp, CASE json_type(m.body, '$.content')
    WHEN 'array' THEN (SELECT group_concat(CASE type WHEN 'object' THEN json_extract(value, '$.text') END, ' ')
        FROM json_each({body}, '$.content'))
    ELSE json_extract({body}, '$.content') END AS text;

-- name: blanks
-- The signs that Python removes from the end of a text.
char(9, 10, 11, 12, 13, 28, 29, 30, 31, 32, 133, 160, 5760, 8192, 8193, 8194, 8195, 8196, 8197, 8198, 8199, 8200, 8201, 8202,
    8232, 8233, 8239, 8287, 12288);

-- name: place_columns
-- Who, when, how long, and the last sign, which makes it a question.
position, role, ifnull(name, role), timestamp, length(text),
iif(substr(text, -1) BETWEEN '!' AND '~', substr(text, -1), substr(rtrim(text, {blanks}), -1));

-- name: places
-- What was said, without the results of tools. MATERIALIZED: SQLite would compute each column again where it is used.
WITH found AS MATERIALIZED (
    SELECT {said_columns}
    FROM json_each(:positions) AS j CROSS JOIN messages AS m ON m.session = :session AND m.position = j.value
    WHERE json_valid(m.body))
SELECT {place_columns} FROM found WHERE role IN ('user', 'assistant') AND text <> '';

-- name: places_of_rows
WITH found AS MATERIALIZED (
    SELECT m.row, s.id AS session_id, {said_columns}
    FROM json_each(:rows) AS j CROSS JOIN messages AS m ON m.row = j.value JOIN sessions AS s ON s.key = m.session
    WHERE s.owner = :owner AND json_valid(m.body))
SELECT row, session_id, {place_columns} FROM found WHERE role IN ('user', 'assistant') AND text <> '';

-- name: turn_stats
-- `:owner` may be NULL for all owners.
SELECT updated_at, json_extract(ending, '$.stats') FROM continuations
WHERE id >= :first AND (:owner IS NULL OR owner = :owner) AND updated_at >= :since
    AND iif(json_valid(ending), json_extract(ending, '$.stats') IS NOT NULL, 0)
    AND session NOT IN (SELECT key FROM sessions WHERE owner = '')
ORDER BY updated_at;

-- name: costs
-- The turns of one session or of all that cost something, each with its last change.
SELECT c.updated_at, json_extract(c.ending, '$.stats.cost_usd')
FROM sessions AS s JOIN continuations AS c ON c.session = s.key
WHERE s.owner = :owner AND (:session_id IS NULL OR s.id = :session_id)
    AND iif(json_valid(c.ending), json_extract(c.ending, '$.stats.cost_usd') > 0, 0);

-- name: running_turns
SELECT c.body, c.status, c.updated_at, c.ending
FROM continuations AS c INDEXED BY holders JOIN sessions AS s ON s.key = c.session
WHERE c.status IN ('running', 'awaiting_approval') AND c.status = 'running'
    AND s.owner = :owner AND (:session_id IS NULL OR s.id = :session_id);

-- name: spend
INSERT INTO spent (owner, at, usd) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET usd = usd + excluded.usd;

-- name: spent
SELECT at, usd FROM spent WHERE owner = :owner AND at >= :since ORDER BY at;

-- name: spent_by_all
-- Apart from `spent`, whose index needs an owner.
SELECT at, usd FROM spent WHERE at >= :since ORDER BY at;

-- name: drop_spent
DELETE FROM spent WHERE at < ?;

-- name: owner_notes
SELECT version, body FROM owner_notes WHERE owner = ?;

-- name: save_owner_notes
INSERT INTO owner_notes (owner, version, body) VALUES (?, ?, ?)
ON CONFLICT DO UPDATE SET version = excluded.version, body = excluded.body;

-- name: erase_owner_notes
DELETE FROM owner_notes WHERE owner = ?;

-- name: insert_waiting_turn
INSERT INTO waiting_turns (id, session, body) VALUES (:id, :session, :body);

-- name: update_waiting_turn
UPDATE waiting_turns SET body = :body WHERE id = :id AND session = (SELECT key FROM sessions WHERE id = :session_id
    AND owner = :owner);

-- name: delete_waiting_turn
DELETE FROM waiting_turns WHERE id = :id AND session IN (SELECT key FROM sessions WHERE owner = :owner) RETURNING body;

-- name: delete_waiting_turns
DELETE FROM waiting_turns WHERE session = ?;

-- name: waiting_turns
-- `:owner` and `:session_id` may be NULL for all of them.
SELECT w.body FROM waiting_turns AS w JOIN sessions AS s ON s.key = w.session
WHERE s.owner <> '' AND (:owner IS NULL OR s.owner = :owner) AND (:session_id IS NULL OR s.id = :session_id)
ORDER BY w.id;

-- name: is_waiting_turn
SELECT EXISTS (SELECT 1 FROM waiting_turns WHERE id = :id AND session = :session);

-- name: insert_vector
INSERT INTO vectors (session, position, model, data) VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET model = excluded.model, data = excluded.data;

-- name: drop_vectors
DELETE FROM vectors WHERE session = :session AND position <= (SELECT position FROM vectors
    WHERE session = :session ORDER BY position DESC LIMIT 1 OFFSET :keep);

-- name: vectors
SELECT position, model, data FROM vectors WHERE session = :session AND (:model IS NULL OR model = :model)
ORDER BY position DESC LIMIT :limit;

-- name: insert_artifact
INSERT INTO artifacts (id, session, owner, ref, data) VALUES (:id, :session, :owner, :ref, :data);

-- name: artifact
SELECT a.ref, s.id, a.owner, a.data FROM artifacts AS a JOIN sessions AS s ON s.key = a.session
WHERE a.id = :id AND a.owner = :owner AND s.owner = :owner;

-- name: artifacts
SELECT a.ref, s.id, a.owner, a.data FROM artifacts AS a JOIN sessions AS s ON s.key = a.session
WHERE a.session = :session;

-- name: old_artifacts
SELECT id FROM artifacts WHERE id < :before;

-- name: is_artifact_in_a_turn
SELECT EXISTS (SELECT 1 FROM artifacts AS a JOIN continuations AS c ON c.session = a.session
WHERE a.id = :id AND instr(c.ending, a.id));

-- name: delete_unused_artifact
DELETE FROM artifacts WHERE id = :id
    AND NOT EXISTS (SELECT 1 FROM continuations AS c WHERE c.session = artifacts.session AND instr(c.ending, :id))
    AND NOT EXISTS (SELECT 1 FROM steps AS t WHERE t.session = artifacts.session AND instr(t.body, :id))
    AND NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.session = artifacts.session AND instr(m.body, :id));
