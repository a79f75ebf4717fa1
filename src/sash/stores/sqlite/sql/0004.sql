-- A message whose body is no JSON has no text. Before, it stopped sweeps, searches and deletions of all sessions.
DROP VIEW messages_as_text;
CREATE VIEW messages_as_text AS
SELECT row, session || CASE WHEN NOT json_valid(body) THEN 'said' WHEN json_extract(body, '$.role') = 'tool' THEN 'tool'
    ELSE 'said' END AS place, CASE WHEN NOT json_valid(body) THEN NULL WHEN json_type(body, '$.content') = 'array'
    THEN (SELECT group_concat(json_extract(value, '$.text'), ' ') FROM json_each(body, '$.content'))
    ELSE json_extract(body, '$.content') END AS text
FROM messages;
