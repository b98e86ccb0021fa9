-- Everybody's tasks of a project. As an expression, because as a plain column PostgreSQL takes this index for the tasks
-- of one actor as well while it has no statistics, and then reads through everybody's.
drop index task_by_project;
create index task_by_project on task ((project || ''), state, created_at, id);

-- What waits for somebody, by age: who waits for what is newer than a message must not read through what is done with,
-- nor sort what waits.
drop index delivery_by_recipient;
create index delivery_waiting_by_age on delivery (recipient, project, created_at, message) where acknowledged_at is null;
