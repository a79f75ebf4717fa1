-- Several turns of one session may run at the same time. The rules count them; before, an index allowed one.
DROP INDEX one_holder;
CREATE INDEX holders ON continuations (session, id) WHERE status IN ('running', 'awaiting_approval');
