-- Replaces the tables of the full-text index by those of an empty one. The options are those of the schema.
BEGIN IMMEDIATE;
CREATE VIRTUAL TABLE temp.fresh USING fts5 (
    place, text, content = 'messages_as_text', content_rowid = 'row', prefix = 4,
    tokenize = 'unicode61 remove_diacritics 2');
INSERT INTO temp.fresh (fresh, rank) VALUES ('usermerge', 2);
DELETE FROM main.said_data;
DELETE FROM main.said_idx;
DELETE FROM main.said_docsize;
DELETE FROM main.said_config;
INSERT INTO main.said_data SELECT * FROM temp.fresh_data;
INSERT INTO main.said_config SELECT * FROM temp.fresh_config;
DELETE FROM indexed;
INSERT INTO indexed VALUES (0);
COMMIT;
