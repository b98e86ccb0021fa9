-- What an actor did is counted by kind without reading the events.
drop index event_by_actor;
create index event_by_actor on event (actor, seq, kind);
