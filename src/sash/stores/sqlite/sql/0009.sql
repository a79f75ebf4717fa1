-- Texts with emoji or with a NUL were indexed by wrong words, and the words of amended answers stayed in `word_parts`. The
-- next search or sweep fills both again.
INSERT INTO said (said) VALUES ('delete-all');
UPDATE indexed SET row = 0;
DELETE FROM word_parts;
