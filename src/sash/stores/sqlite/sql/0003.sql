-- An owner's queued turns are counted before another turn is queued. Other turns are not in this index.
CREATE INDEX pending_of_owner ON continuations (owner) WHERE status = 'pending';
