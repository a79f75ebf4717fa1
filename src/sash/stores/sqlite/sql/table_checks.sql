-- All rows of each table: a condition that selects the row, the id of its session, then the columns of its class in
-- `table_checks.py`. The rows of hidden sessions are left out.

-- name: sessions
SELECT 'key = ' || key, id, id, owner, name, status, updated_at, version, cursor, positions,
    ifnull((SELECT max(position) FROM messages WHERE session = s.key AND typeof(position) = 'integer'), 0),
    EXISTS (SELECT 1 FROM cuts WHERE session = s.key), stats, body
FROM sessions AS s WHERE NOT (owner = '' AND status = 'hidden');

-- name: cuts
SELECT 'session = ' || t.session, s.id, t.window_from, t.kept, t.turn_starts, t.evicted, t.evicted_count, t.digest, t.cut_at
FROM cuts AS t LEFT JOIN sessions AS s ON s.key = t.session WHERE s.status IS NOT 'hidden';

-- name: continuations
SELECT 'rowid = ' || t.rowid, s.id, t.id, t.owner, s.id, t.status, t.updated_at, t.idempotency_key, t.worker, t.lease_until,
    t.epoch, t.first_cursor, t.answer_at, t.swept, t.body, t.ending
FROM continuations AS t LEFT JOIN sessions AS s ON s.key = t.session WHERE s.status IS NOT 'hidden';

-- name: steps
SELECT 'rowid = ' || t.rowid, s.id, t.cursor, t.continuation_id, t.body,
    EXISTS (SELECT 1 FROM continuations AS c WHERE c.id = t.continuation_id AND c.session = t.session)
FROM steps AS t LEFT JOIN sessions AS s ON s.key = t.session WHERE s.status IS NOT 'hidden';

-- name: messages
SELECT 'row = ' || t.row, s.id, t.row, t.position, t.continuation_id, t.body, t.continuation_id IS NULL
    OR EXISTS (SELECT 1 FROM continuations AS c WHERE c.id = t.continuation_id AND c.session = t.session)
FROM messages AS t LEFT JOIN sessions AS s ON s.key = t.session WHERE s.status IS NOT 'hidden';

-- name: vectors
SELECT 'hex(session) = ''' || hex(t.session) || ''' AND hex(position) = ''' || hex(t.position) || '''', s.id, t.position,
    t.model, t.data
FROM vectors AS t LEFT JOIN sessions AS s ON s.key = t.session WHERE s.status IS NOT 'hidden';

-- name: artifacts
SELECT 'rowid = ' || t.rowid, s.id, t.id, t.owner, s.owner, t.ref, t.data
FROM artifacts AS t LEFT JOIN sessions AS s ON s.key = t.session WHERE s.status IS NOT 'hidden';

-- name: waiting_turns
SELECT 'rowid = ' || t.rowid, s.id, t.id, s.owner, s.id, t.body
FROM waiting_turns AS t LEFT JOIN sessions AS s ON s.key = t.session WHERE s.status IS NOT 'hidden';

-- name: spent
SELECT 'hex(owner) = ''' || hex(owner) || ''' AND hex(at) = ''' || hex(at) || '''', NULL, owner, at, usd FROM spent;

-- name: export_key
SELECT 'rowid = ' || rowid, NULL, value FROM export_key;

-- name: owner_notes
SELECT 'hex(owner) = ''' || hex(owner) || '''', NULL, owner, version, body FROM owner_notes;
