-- What was kept long enough goes: plans that ended, by when, and plans that nobody will do any more.
create index plan_by_end on plan (finished_at, id) where finished_at is not null;
create index plan_not_done on plan (updated_at, id) where finished_at is null;
