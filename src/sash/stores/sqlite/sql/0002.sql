-- The key that signs exports. It never leaves the database.
CREATE TABLE export_key (value BLOB NOT NULL);
INSERT INTO export_key VALUES (randomblob(32));
