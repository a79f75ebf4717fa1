-- Few indexes, because every page that a turn touches is written: a session's steps and messages are found by
-- their primary keys, what a sweep looks for is looked for by scanning.

CREATE TABLE sessions (
    id          TEXT PRIMARY KEY,
    owner       TEXT NOT NULL,
    status      TEXT NOT NULL,
    updated_at  REAL NOT NULL,
    version     INTEGER NOT NULL,
    cursor      INTEGER NOT NULL DEFAULT 0, -- at least that of the last step that was ever swept
    positions   INTEGER NOT NULL DEFAULT 0,
    evicted     INTEGER NOT NULL DEFAULT 0,
    turn_starts TEXT NOT NULL DEFAULT '[]',
    body        TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX sessions_of_owner ON sessions (owner, id);

CREATE TABLE continuations (
    session_id      TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
    id              TEXT NOT NULL,
    owner           TEXT NOT NULL,
    status          TEXT NOT NULL,
    updated_at      REAL NOT NULL,
    idempotency_key TEXT,
    worker          TEXT,
    lease_until     REAL,
    epoch           INTEGER NOT NULL DEFAULT 0,
    first_cursor    INTEGER NOT NULL, -- its steps come behind it
    swept           INTEGER NOT NULL DEFAULT 0,
    body            TEXT NOT NULL,
    PRIMARY KEY (session_id, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX continuation_by_id ON continuations (id);
CREATE UNIQUE INDEX one_holder ON continuations (session_id) WHERE status IN ('running', 'awaiting_approval');
CREATE UNIQUE INDEX one_per_key ON continuations (session_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX held ON continuations (worker) WHERE worker IS NOT NULL;
CREATE INDEX waiting ON continuations (session_id, id) WHERE status = 'pending';

CREATE TABLE steps (
    session_id      TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
    cursor          INTEGER NOT NULL,
    continuation_id TEXT NOT NULL,
    body            TEXT NOT NULL,
    PRIMARY KEY (session_id, cursor)
) WITHOUT ROWID;

CREATE TABLE messages (
    row             INTEGER PRIMARY KEY,
    session_id      TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
    position        INTEGER NOT NULL,
    id              TEXT NOT NULL,
    continuation_id TEXT,
    in_window       INTEGER NOT NULL,
    body            TEXT NOT NULL,
    text            TEXT GENERATED ALWAYS AS (json_extract(body, '$.content')) VIRTUAL
);
CREATE UNIQUE INDEX messages_of_session ON messages (session_id, position);
CREATE INDEX window_of_session ON messages (session_id, position) WHERE in_window;

-- The full-text index follows the messages when somebody searches, not while a turn is being written.
CREATE VIRTUAL TABLE said USING fts5 (text, content = 'messages', content_rowid = 'row', tokenize = 'unicode61');
CREATE TABLE indexed (row INTEGER NOT NULL);
INSERT INTO indexed VALUES (0);
CREATE TRIGGER message_deleted AFTER DELETE ON messages WHEN old.row <= (SELECT row FROM indexed) BEGIN
    INSERT INTO said (said, rowid, text) VALUES ('delete', old.row, old.text);
END;

CREATE TABLE artifacts (
    id         TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
    owner      TEXT NOT NULL,
    ref        TEXT NOT NULL,
    data       BLOB NOT NULL
);
CREATE INDEX artifacts_of_session ON artifacts (session_id);
