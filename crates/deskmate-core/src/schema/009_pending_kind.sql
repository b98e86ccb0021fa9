-- What waits of one kind, such as the handoffs, is a list of its own.
create index request_pending_by_kind on request (kind, rank, created_at, id, snoozed_until, asked_at) where state = 'pending';
