-- Where a job may be done: on any server, or where this text says. Servers look for each place alone, so that what waits for a
-- server that is not there keeps nobody busy; see the first step for why the state is a column of this index on SQLite.
alter table job add column place text not null default '';
drop index job_waiting;
create index job_waiting on job (state, kind, place, priority, run_at, id) where state = 'waiting'; -- sqlite
create index job_waiting on job (kind, place, priority, run_at, id) where state = 'waiting'; -- postgres
drop index job_due;

-- Where the runs of a deployed agent are done, and where one was or is.
alter table agent_definition add column place text not null default '';
alter table agent_run add column node text;
create index agent_run_by_node on agent_run (node) where node is not null and finished_at is null;

-- The servers of a desk on PostgreSQL. One is there while its lease `node:NAME` stands; those without a name of their own have
-- one that is good until they end.
create table node (
    name text primary key,
    offers boolean not null,
    labels text not null,
    since bigint not null,
    gone_at bigint
);
