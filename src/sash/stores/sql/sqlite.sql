-- name: session
SELECT s.body, s.status, s.updated_at, s.version, s.stats, c.digest
FROM sessions AS s JOIN cuts AS c ON c.session_id = s.id WHERE s.id = :session AND s.owner = :owner;

-- name: sessions
SELECT s.body, s.status, s.updated_at, s.version, s.stats, c.digest
FROM sessions AS s JOIN cuts AS c ON c.session_id = s.id
WHERE s.owner = :owner AND (:status IS NULL OR s.status = :status) AND (:cursor IS NULL OR s.id < :cursor)
ORDER BY s.id DESC LIMIT :limit;

-- name: idle_sessions
SELECT s.id FROM sessions AS s WHERE s.status = 'active' AND s.updated_at < :before AND NOT EXISTS
    (SELECT 1 FROM continuations WHERE session_id = s.id AND status IN ('running', 'awaiting_approval'));

-- name: expire_session
UPDATE sessions SET status = 'expired', version = version + 1 WHERE id = :session;

-- name: session_exists
SELECT 1 FROM sessions WHERE id = :session;

-- name: insert_session
INSERT INTO sessions (id, owner, status, updated_at, version, stats, body)
VALUES (:id, :owner, :status, :updated_at, :version, :stats, :body);

-- name: insert_cut
INSERT INTO cuts (session_id, digest) VALUES (:session, :digest);

-- name: update_session
UPDATE sessions SET status = :status, updated_at = :updated_at, version = :version, stats = :stats, body = :body
WHERE id = :id;

-- name: update_digest
UPDATE cuts SET digest = :digest WHERE session_id = :session AND digest <> :digest;

-- name: delete_session
DELETE FROM sessions WHERE id = :session AND owner = :owner;

-- name: erase
DELETE FROM sessions WHERE owner = :owner;

-- name: place_of_turn
-- A session's version, its last cursor even if that step was swept, who holds it, and whether somebody waits.
SELECT s.version, max(s.cursor, ifnull((SELECT max(cursor) FROM steps WHERE session_id = s.id), 0)),
    (SELECT id FROM continuations INDEXED BY one_holder
     WHERE session_id = s.id AND status IN ('running', 'awaiting_approval')),
    EXISTS (SELECT 1 FROM continuations INDEXED BY waiting WHERE session_id = s.id AND status = 'pending')
FROM sessions AS s WHERE s.id = :session AND s.owner = :owner;

-- name: held
-- What a lease holds: how many steps there are, the session's last cursor and stats, and whether somebody waits.
SELECT (SELECT count(*) FROM steps
        WHERE session_id = s.id AND cursor > c.first_cursor AND continuation_id = c.id),
    max(s.cursor, ifnull((SELECT max(cursor) FROM steps WHERE session_id = s.id), 0)), s.stats, s.positions,
    EXISTS (SELECT 1 FROM continuations INDEXED BY waiting WHERE session_id = s.id AND status = 'pending')
FROM continuations AS c JOIN sessions AS s ON s.id = c.session_id
WHERE c.id = :id AND c.worker = :worker AND c.epoch = :epoch;

-- name: place
SELECT (SELECT count(*) FROM steps
        WHERE session_id = s.id AND cursor > c.first_cursor AND continuation_id = c.id),
    max(s.cursor, ifnull((SELECT max(cursor) FROM steps WHERE session_id = s.id), 0))
FROM continuations AS c JOIN sessions AS s ON s.id = c.session_id WHERE c.id = :id;

-- name: continuation
SELECT body, status, updated_at, ending FROM continuations WHERE id = :id AND owner = :owner;

-- name: continuations
SELECT body, status, updated_at, ending FROM continuations WHERE session_id = :session ORDER BY id;

-- name: continuation_of_key
SELECT body, status, updated_at, ending FROM continuations
WHERE session_id = :session AND idempotency_key = :key;

-- name: holder
SELECT id FROM continuations INDEXED BY one_holder
WHERE session_id = :session AND status IN ('running', 'awaiting_approval');

-- name: next_pending
SELECT body, status, updated_at, ending FROM continuations INDEXED BY waiting
WHERE session_id = :session AND status = 'pending' ORDER BY id LIMIT 1;

-- name: lost
SELECT body, status, updated_at, ending FROM continuations INDEXED BY one_holder
WHERE status IN ('running', 'awaiting_approval') AND worker IS NOT NULL
    AND (lease_until <= :now OR (:alone AND worker NOT IN (SELECT value FROM json_each(:workers))));

-- name: forgotten
SELECT body, status, updated_at, ending FROM continuations
WHERE worker IS NULL AND updated_at < :before AND status IN ('pending', 'interrupted', 'awaiting_approval');

-- name: insert_continuation
INSERT INTO continuations (id, session_id, owner, status, updated_at, idempotency_key, worker, lease_until, epoch,
    first_cursor, body, ending)
VALUES (:id, :session, :owner, :status, :updated_at, :key, :worker, :lease_until, :epoch, :first_cursor, :body,
    :ending);

-- name: hand_over
UPDATE continuations SET status = 'running', updated_at = :now, worker = :worker, lease_until = :until,
    epoch = epoch + 1
WHERE id = :id RETURNING epoch;

-- name: let_go
-- Who held it is fenced out by the new epoch.
UPDATE continuations SET status = :status, updated_at = :now, worker = NULL, lease_until = NULL,
    epoch = epoch + 1, ending = ifnull(:ending, ending)
WHERE id = :id;

-- name: renew
UPDATE continuations SET lease_until = :until
WHERE worker = :worker AND id IN (SELECT value FROM json_each(:ids)) RETURNING id;

-- name: insert_step
INSERT INTO steps (session_id, cursor, continuation_id, body) VALUES (?, ?, ?, ?);

-- name: steps
SELECT t.body FROM continuations AS c JOIN steps AS t ON t.session_id = c.session_id
    AND t.cursor > c.first_cursor AND t.continuation_id = c.id
WHERE c.id = :id ORDER BY t.cursor;

-- name: events
SELECT continuation_id, body FROM steps WHERE session_id = :session AND cursor > :after
ORDER BY cursor LIMIT :limit;

-- name: long_ended
SELECT id, session_id, first_cursor FROM continuations
WHERE NOT swept AND updated_at < :before AND status IN ('completed', 'failed', 'cancelled', 'expired');

-- name: keep_cursor
UPDATE sessions
SET cursor = max(cursor, ifnull((SELECT max(cursor) FROM steps WHERE session_id = sessions.id), 0))
WHERE id = :session;

-- name: drop_steps
DELETE FROM steps WHERE session_id = :session AND cursor > :first_cursor AND continuation_id = :id;

-- name: mark_swept
UPDATE continuations SET swept = 1 WHERE id = :id;

-- name: end_turn
UPDATE sessions SET updated_at = :now, version = version + 1, cursor = :cursor, positions = :positions,
    stats = :stats
WHERE id = :session;

-- name: set_positions
UPDATE sessions SET positions = :positions WHERE id = :session;

-- name: insert_message
INSERT INTO messages (session_id, position, id, continuation_id, body) VALUES (?, ?, ?, ?, ?);

-- name: messages
SELECT m.session_id, m.position, m.continuation_id, m.body, m.position >= c.window_from
    OR EXISTS (SELECT 1 FROM json_each(c.kept) WHERE value = m.position)
FROM messages AS m JOIN cuts AS c ON c.session_id = m.session_id
WHERE m.session_id = :session AND m.position > :after ORDER BY m.position LIMIT :limit;

-- name: window
-- SQLite keeps the order of a CROSS JOIN: the other way round it would read the whole transcript.
SELECT m.position, m.id, m.body FROM cuts AS c CROSS JOIN json_each(c.kept) AS k
    CROSS JOIN messages AS m ON m.session_id = c.session_id AND m.position = k.value
WHERE c.session_id = :session
UNION ALL
SELECT m.position, m.id, m.body
FROM cuts AS c JOIN messages AS m ON m.session_id = c.session_id AND m.position >= c.window_from
WHERE c.session_id = :session
ORDER BY 1;

-- name: cut
SELECT turn_starts, evicted, evicted_count, window_from FROM cuts WHERE session_id = :session;

-- name: move_cut
UPDATE cuts SET window_from = :window_from, kept = :kept, turn_starts = :turn_starts,
    evicted = :evicted, evicted_count = :evicted_count
WHERE session_id = :session;

-- name: not_indexed
INSERT INTO said (rowid, text) SELECT row, text FROM messages WHERE row > (SELECT row FROM indexed);

-- name: all_indexed
UPDATE indexed SET row = (SELECT max(row) FROM messages) WHERE row < (SELECT max(row) FROM messages);

-- name: indexed_after_delete
-- SQLite gives the highest row numbers again when they are free.
UPDATE indexed SET row = min(row, ifnull((SELECT max(row) FROM messages), 0));

-- name: search
SELECT m.session_id, m.position, m.continuation_id, m.body, m.position >= c.window_from
    OR EXISTS (SELECT 1 FROM json_each(c.kept) WHERE value = m.position)
FROM said JOIN messages AS m ON m.row = said.rowid JOIN sessions AS s ON s.id = m.session_id
    JOIN cuts AS c ON c.session_id = m.session_id
WHERE said MATCH :words AND s.owner = :owner AND (:session IS NULL OR m.session_id = :session)
ORDER BY rank LIMIT :limit;

-- name: insert_artifact
INSERT INTO artifacts (id, session_id, owner, ref, data) VALUES (:id, :session, :owner, :ref, :data);

-- name: artifact
SELECT ref, session_id, owner, data FROM artifacts WHERE id = :id AND owner = :owner;

-- name: artifacts
SELECT ref, session_id, owner, data FROM artifacts WHERE session_id = :session;
