-- Facts and pins for all sessions of an owner, and preferences for its new sessions.
CREATE TABLE owner_notes (
    owner   TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    body    TEXT NOT NULL
);
