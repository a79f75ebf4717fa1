-- A commit writes every page that a turn touches, so the schema keeps their number low. There are few indexes.
-- Tables grow at their end, which splits no pages. Columns that rarely change are apart from those that change
-- with every turn: a cut is written when the window is cut, a continuation's request when it is created, and its
-- ending when it ends.

CREATE TABLE sessions (
    key        INTEGER PRIMARY KEY, -- a short id for the tables below
    id         TEXT NOT NULL UNIQUE,
    owner      TEXT NOT NULL,
    name       TEXT,
    status     TEXT NOT NULL,
    updated_at REAL NOT NULL,
    version    INTEGER NOT NULL,
    cursor     INTEGER NOT NULL DEFAULT 0, -- not less than the cursor of any swept step
    positions  INTEGER NOT NULL DEFAULT 0, -- the number of messages in the transcript
    stats      TEXT NOT NULL,
    body       TEXT NOT NULL               -- the session, without stats and digest
);
CREATE INDEX sessions_of_owner ON sessions (owner, id);
CREATE INDEX active_of_owner ON sessions (owner) WHERE status = 'active';
CREATE INDEX sessions_of_name ON sessions (owner, name, id) WHERE name IS NOT NULL;
CREATE UNIQUE INDEX one_of_name ON sessions (owner, name) WHERE name IS NOT NULL AND status = 'active';

-- The window has the messages at the `kept` positions, and all messages from `window_from` on.
CREATE TABLE cuts (
    session       INTEGER PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
    window_from   INTEGER NOT NULL DEFAULT 1,
    kept          TEXT NOT NULL DEFAULT '[]',
    turn_starts   TEXT NOT NULL DEFAULT '[]',
    evicted       TEXT NOT NULL DEFAULT '[]', -- ids and reasons of the last cut
    evicted_count INTEGER NOT NULL DEFAULT 0,
    digest        TEXT NOT NULL DEFAULT '',
    cut_at        REAL
);

CREATE TABLE continuations (
    id              TEXT PRIMARY KEY,
    session         INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    owner           TEXT NOT NULL,
    status          TEXT NOT NULL,
    updated_at      REAL NOT NULL,
    idempotency_key TEXT,
    worker          TEXT,
    lease_until     REAL,
    epoch           INTEGER NOT NULL DEFAULT 0,
    first_cursor    INTEGER NOT NULL, -- all its steps have greater cursors
    answer_at       INTEGER,          -- the position of its last message
    swept           INTEGER NOT NULL DEFAULT 0,
    body            TEXT NOT NULL,    -- the continuation when it was created
    ending          TEXT              -- its response, error, artifacts and stats
);
CREATE INDEX continuations_of_session ON continuations (session, id);
CREATE UNIQUE INDEX one_holder ON continuations (session) WHERE status IN ('running', 'awaiting_approval');
CREATE UNIQUE INDEX one_per_key ON continuations (session, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX waiting ON continuations (session, status, id) WHERE status IN ('pending', 'interrupted');

CREATE TABLE steps (
    session         INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    cursor          INTEGER NOT NULL,
    continuation_id TEXT NOT NULL,
    body            TEXT NOT NULL
);
CREATE UNIQUE INDEX steps_of_session ON steps (session, cursor);

CREATE TABLE messages (
    row             INTEGER PRIMARY KEY,
    session         INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    position        INTEGER NOT NULL,
    continuation_id TEXT,
    body            TEXT NOT NULL
);
CREATE UNIQUE INDEX messages_of_session ON messages (session, position);

-- The text of a message without its images. `place` is the session's key with "tool" for results of tools, else
-- with "said".
CREATE VIEW messages_as_text AS
SELECT row, session || iif(json_extract(body, '$.role') = 'tool', 'tool', 'said') AS place, CASE json_type(body, '$.content')
    WHEN 'array' THEN (SELECT group_concat(json_extract(value, '$.text'), ' ') FROM json_each(body, '$.content'))
    ELSE json_extract(body, '$.content') END AS text
FROM messages;

-- The full-text index is updated by searches and sweeps, not with every turn. `prefix` adds a list of words by
-- their first four letters.
CREATE VIRTUAL TABLE said USING fts5 (
    place, text, content = 'messages_as_text', content_rowid = 'row', prefix = 4,
    tokenize = 'unicode61 remove_diacritics 2');
INSERT INTO said (said, rank) VALUES ('usermerge', 2); -- lets a sweep merge any two segments
CREATE TABLE indexed (row INTEGER NOT NULL);
INSERT INTO indexed VALUES (0);
CREATE TRIGGER message_deleted BEFORE DELETE ON messages WHEN old.row <= (SELECT row FROM indexed) BEGIN
    INSERT INTO said (said, rowid, place, text)
    SELECT 'delete', row, place, text FROM messages_as_text WHERE row = old.row;
END;
CREATE TRIGGER message_changes BEFORE UPDATE ON messages WHEN old.row <= (SELECT row FROM indexed) BEGIN
    INSERT INTO said (said, rowid, place, text)
    SELECT 'delete', row, place, text FROM messages_as_text WHERE row = old.row;
END;
CREATE TRIGGER message_changed AFTER UPDATE ON messages WHEN new.row <= (SELECT row FROM indexed) BEGIN
    INSERT INTO said (rowid, place, text) SELECT row, place, text FROM messages_as_text WHERE row = new.row;
END;

CREATE TABLE vectors (
    session  INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    position INTEGER NOT NULL,
    model    TEXT NOT NULL,
    data     BLOB NOT NULL,
    PRIMARY KEY (session, position)
) WITHOUT ROWID;

CREATE TABLE artifacts (
    id         TEXT PRIMARY KEY,
    session    INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    owner      TEXT NOT NULL,
    ref        TEXT NOT NULL,
    data       BLOB NOT NULL
);
CREATE INDEX artifacts_of_session ON artifacts (session);
