-- What sessions do later: at a time, or when an entity has a state. A row goes when it has become a continuation.
CREATE TABLE waiting_turns (
    id      TEXT PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    body    TEXT NOT NULL
);
CREATE INDEX waiting_turns_of_session ON waiting_turns (session);
