-- The text of a message with other letters than Latin ones, as the full-text index stores it: Chinese as pairs of letters.
-- NULL: the index stores the text itself.
ALTER TABLE messages ADD COLUMN index_text TEXT;

-- The words of each session by their parts of three letters. They find the words that are written like another one.
CREATE TABLE word_parts (
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    part    TEXT NOT NULL,
    word    TEXT NOT NULL,
    PRIMARY KEY (session, part, word)
) WITHOUT ROWID;

-- `place` has two words: the session's key with "tool" for results of tools, else with "said", and the same without the
-- key. The second one finds what was said in all sessions.
DROP VIEW messages_as_text;
CREATE VIEW messages_as_text AS
SELECT row, session || kind || ' ' || kind AS place, text FROM (
    SELECT row, session, CASE WHEN NOT json_valid(body) THEN 'said' WHEN json_extract(body, '$.role') = 'tool' THEN 'tool'
        ELSE 'said' END AS kind, CASE WHEN index_text IS NOT NULL THEN index_text WHEN NOT json_valid(body) THEN NULL
        WHEN json_type(body, '$.content') = 'array'
        THEN (SELECT group_concat(json_extract(value, '$.text'), ' ') FROM json_each(body, '$.content'))
        ELSE json_extract(body, '$.content') END AS text
    FROM messages);
-- The next search or sweep fills the index again.
INSERT INTO said (said) VALUES ('delete-all');
UPDATE indexed SET row = 0;
