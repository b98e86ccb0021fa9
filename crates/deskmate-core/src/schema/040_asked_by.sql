-- The person who asked for a request in an agent's name: they do not decide it.
alter table request add column asked_by text;
