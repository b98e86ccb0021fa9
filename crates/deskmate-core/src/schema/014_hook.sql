-- Agents' own tools, as their clients' hooks ask about them. Nothing here carries authority: requests and grants do.
-- Calls that may run, until what came of them is told.
create table hook_call (
    agent text not null,
    call text not null,
    session text not null,
    tool text not null,
    verb text not null,
    domain text not null,
    key BYTES not null,
    request text,
    begun_at bigint not null,
    ended_at bigint,
    outcome text,
    primary key (agent, call)
);
create index hook_call_by_age on hook_call (begun_at, agent, call);
create index hook_call_open on hook_call (begun_at, agent, call) where ended_at is null;

-- Which request stands for which call: `key` is a digest over what is kept of it.
create table hook_request (
    request text primary key,
    agent text not null,
    key BYTES not null,
    created_at bigint not null
);
create index hook_request_by_key on hook_request (agent, key, created_at);
create index hook_request_by_age on hook_request (created_at, request);

-- What an agent was told in a session; in the session '' what it was woken for.
create table hook_told (
    agent text not null,
    session text not null,
    subject text not null,
    told_at bigint not null,
    primary key (agent, session, subject)
);
create index hook_told_by_age on hook_told (told_at, agent, session, subject);
