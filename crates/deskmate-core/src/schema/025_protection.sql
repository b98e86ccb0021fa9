-- What a request would do lies encrypted in its row until it ends, and afterwards without what is secret or personal.
-- `kept` is null where it lies open, as before this step; else `sealed` or `redacted`.
alter table request add column kept text;
alter table request add column sealed BYTES;
alter table request add column sealed_key BYTES;
create index request_sealed on request (id) where sealed is not null;
