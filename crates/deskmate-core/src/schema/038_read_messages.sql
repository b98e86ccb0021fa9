-- What somebody is done with, by age, for searching in it. What waits has an index of its own, so sending writes no more than before.
create index delivery_done_by_age on delivery (recipient, project, created_at, message) where acknowledged_at is not null;
