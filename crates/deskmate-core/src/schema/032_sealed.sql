-- What waits is found by its own indexes, and nearly all of it is encrypted: only what does not wait any more is listed as such.
drop index request_sealed;
create index request_sealed on request (id) where sealed is not null and state <> 'pending';
