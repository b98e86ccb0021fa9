-- What the calls of a run have cost, in millionths of a unit.
alter table agent_run add column cost bigint not null default 0;
