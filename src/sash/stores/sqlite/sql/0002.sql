-- The key that signs exports. It never leaves the database.
CREATE TABLE export_key (value BLOB NOT NULL);
INSERT INTO export_key VALUES (randomblob(32));

-- Dollars that no turn has, by owner and quarter of an hour: of deleted turns, and of work outside of turns.
CREATE TABLE spent (
    owner TEXT NOT NULL,
    at    REAL NOT NULL,
    usd   REAL NOT NULL,
    PRIMARY KEY (owner, at)
) WITHOUT ROWID;

-- The number of times that a process checked whether it can write.
CREATE TABLE write_checks (number INTEGER NOT NULL);
INSERT INTO write_checks VALUES (0);
