-- Dollars that no turn has, by owner and quarter of an hour: of deleted turns, and of work outside of turns.
CREATE TABLE spent (
    owner TEXT NOT NULL,
    at    REAL NOT NULL,
    usd   REAL NOT NULL,
    PRIMARY KEY (owner, at)
) WITHOUT ROWID;
