-- Calls of runs that wait for people: the request under which one waits, by the digest of exactly what it is.
create table agent_hold (
    run text not null,
    digest BYTES not null,
    request text not null,
    primary key (run, digest)
);

-- Tests of agents: of which definition, and what came of them.
create table agent_test (
    id text primary key,
    definition text not null,
    digest BYTES not null,
    at bigint not null,
    tester_kind text not null,
    tester text not null,
    scenario text not null,
    strict bigint not null,
    passed bigint not null,
    result text not null
);
create index agent_test_by_definition on agent_test (definition, digest, at, id);
