-- Other MCP servers behind the desk. Which ones there are is a setting; here is what was seen of them and done with them.
-- Texts are null once they were erased.

-- A tool as people know it. `definition` is what agents are shown and `digest` is over it; what the server says now, where
-- that differs, waits in `offered` until a person has seen it.
create table mount_tool (
    mount text not null,
    tool text not null,
    state text not null,
    digest BYTES not null,
    definition text not null,
    offered_digest BYTES,
    offered text,
    looks_like text,
    seen_at bigint not null,
    changed_at bigint not null,
    accepted_by text,
    primary key (mount, tool)
);

-- A call of a tool, from its decision to its outcome. `digest` is over who calls what with which arguments: whoever repeats a
-- call that is held means the same one.
create table gateway_call (
    id text primary key,
    mount text not null,
    tool text not null,
    kind text not null,
    domain text not null,
    actor_kind text not null,
    actor text not null,
    verified boolean not null,
    digest BYTES not null,
    state text not null,
    mode text not null,
    request text,
    proposal text,
    created_at bigint not null,
    passed_at bigint,
    ended_at bigint,
    micros bigint,
    bytes bigint,
    delivered_at bigint,
    intent text,
    arguments text,
    note text,
    result text
);
create index gateway_call_by_age on gateway_call (created_at, id);
create index gateway_call_by_mount on gateway_call (mount, created_at, id);
create index gateway_call_by_actor on gateway_call (actor_kind, actor, created_at, id);
create index gateway_call_by_request on gateway_call (request) where request is not null;
create index gateway_call_waiting on gateway_call (actor_kind, actor, digest, created_at, id) where request is not null and delivered_at is null;
create index gateway_call_under_way on gateway_call (passed_at, id) where passed_at is not null and ended_at is null;

-- Where what an actor has read came from. An empty session stands for all that it does without naming one.
create table taint (
    actor text not null,
    session text not null,
    origin text not null,
    at bigint not null,
    primary key (actor, session, origin)
);
create index taint_by_age on taint (at, actor, session, origin);
