-- The governance report asks what was decided, or expired, in a stretch of time, also of what was asked before it. What passed
-- at once has the same time twice, and stays out of the index.
create index request_by_decision on request (decided_at, id) where decided_at > created_at;
create index request_expired on request (expires_at, id) where state = 'expired';
