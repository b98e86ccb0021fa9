-- Agents that the desk runs: what they are, and each of their runs. A definition carries authority once it is deployed, so the
-- record's facts tell its digest and its status.
create table agent_definition (
    id text primary key,
    agent text not null unique,
    status text not null,
    version bigint not null,
    digest BYTES not null,
    definition text not null,
    creator_kind text not null,
    creator text not null,
    due_at bigint,
    request text,
    created_at bigint not null,
    updated_at bigint not null,
    deployed_at bigint,
    deleted_at bigint
);
create index agent_definition_by_age on agent_definition (created_at, id);
create index agent_definition_due on agent_definition (due_at, id) where due_at is not null;

-- One run of an agent. Of a schedule there is one run for each moment, whoever finds it due.
create table agent_run (
    id text primary key,
    definition text not null,
    agent text not null,
    cause text not null,
    moment bigint,
    state text not null,
    parent text,
    depth bigint not null,
    job text,
    input text,
    calls bigint not null,
    created_at bigint not null,
    started_at bigint,
    finished_at bigint,
    expires_at bigint,
    result text,
    error text,
    unique (definition, moment)
);
create index agent_run_by_age on agent_run (created_at, id);
create index agent_run_by_definition on agent_run (definition, created_at, id);
create index agent_run_open on agent_run (definition, created_at, id) where finished_at is null;
create index agent_run_by_parent on agent_run (parent, created_at, id) where parent is not null;

-- What a run said, line by line, without secrets and personal data.
create table agent_log (
    run text not null,
    number bigint not null,
    at bigint not null,
    source text not null,
    said text not null,
    primary key (run, number)
);
