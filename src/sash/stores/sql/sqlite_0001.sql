CREATE TABLE sessions (
    id          TEXT PRIMARY KEY,
    owner       TEXT NOT NULL,
    status      TEXT NOT NULL,
    updated_at  REAL NOT NULL,
    version     INTEGER NOT NULL,
    cursor      INTEGER NOT NULL DEFAULT 0,
    positions   INTEGER NOT NULL DEFAULT 0,
    evicted     INTEGER NOT NULL DEFAULT 0,
    turn_starts TEXT NOT NULL DEFAULT '[]',
    body        TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX sessions_of_owner ON sessions (owner, id);
CREATE INDEX idle_sessions ON sessions (updated_at) WHERE status = 'active';

CREATE TABLE continuations (
    id              TEXT PRIMARY KEY,
    session_id      TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
    owner           TEXT NOT NULL,
    status          TEXT NOT NULL,
    updated_at      REAL NOT NULL,
    idempotency_key TEXT,
    worker          TEXT,
    lease_until     REAL,
    epoch           INTEGER NOT NULL DEFAULT 0,
    steps           INTEGER NOT NULL DEFAULT 0,
    body            TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX continuations_of_session ON continuations (session_id, id);
CREATE UNIQUE INDEX one_holder ON continuations (session_id) WHERE status IN ('running', 'awaiting_approval');
CREATE UNIQUE INDEX one_per_key ON continuations (session_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX held ON continuations (worker) WHERE worker IS NOT NULL;
CREATE INDEX ended ON continuations (updated_at) WHERE steps > 0;

CREATE TABLE steps (
    session_id      TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
    cursor          INTEGER NOT NULL,
    continuation_id TEXT NOT NULL,
    body            TEXT NOT NULL,
    PRIMARY KEY (session_id, cursor)
) WITHOUT ROWID;
CREATE INDEX steps_of_continuation ON steps (continuation_id, cursor);

CREATE TABLE messages (
    row             INTEGER PRIMARY KEY,
    session_id      TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
    position        INTEGER NOT NULL,
    id              TEXT NOT NULL,
    continuation_id TEXT,
    in_window       INTEGER NOT NULL,
    text            TEXT NOT NULL,
    body            TEXT NOT NULL,
    UNIQUE (session_id, position)
);
CREATE INDEX window_of_session ON messages (session_id, position) WHERE in_window;

CREATE VIRTUAL TABLE said USING fts5 (text, content = 'messages', content_rowid = 'row', tokenize = 'unicode61');
CREATE TRIGGER message_added AFTER INSERT ON messages BEGIN
    INSERT INTO said (rowid, text) VALUES (new.row, new.text);
END;
CREATE TRIGGER message_deleted AFTER DELETE ON messages BEGIN
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
