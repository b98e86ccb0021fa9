-- Policies as they were accepted, one row for each version; `state` is `in_force` or `past`. `body` is the policy as
-- canonical JSON, and `digest` is over it.
create table policy (
    name text not null,
    version bigint not null,
    state text not null,
    body text not null,
    digest BYTES not null,
    accepted_by text not null,
    accepted_at bigint not null,
    primary key (name, version)
);
create unique index policy_in_force on policy (name) where state = 'in_force';

-- Which policy holds for which agent in which domain; `*` and trailing `*` are wildcards.
create table mapping (
    agent text not null,
    domain text not null,
    policy text not null,
    accepted_by text not null,
    accepted_at bigint not null,
    primary key (agent, domain, policy)
);

-- Settings in force: `domain` is empty for the whole desk, `body` canonical JSON of one section.
create table setting (
    section text not null,
    domain text not null,
    body text not null,
    accepted_by text not null,
    accepted_at bigint not null,
    primary key (section, domain)
);

-- What an agent has earned in a domain. Scores are in billionths, so that sums are exact. A score earned while nobody
-- proved who the agent is stays apart (`verified`).
create table trust (
    agent text not null,
    domain text not null,
    verified boolean not null,
    score bigint not null,
    proposals bigint not null,
    approved bigint not null,
    overridden bigint not null,
    streak bigint not null,
    demoted boolean not null,
    decided_since bigint not null,
    approved_since bigint not null,
    confidence_sum bigint not null,
    confidence_count bigint not null,
    brier_sum bigint not null,
    updated_at bigint not null,
    primary key (agent, domain, verified)
);

-- A rolling window, exact for any cap: every use has a number, and the use `cap` numbers ago tells whether there is room.
-- `scope` is `domain:NAME` or `all`.
create table meter (
    agent text not null,
    scope text not null,
    next bigint not null,
    oldest bigint not null,
    primary key (agent, scope)
);
create table meter_use (
    agent text not null,
    scope text not null,
    number bigint not null,
    at bigint not null,
    primary key (agent, scope, number)
);
create index meter_use_by_time on meter_use (agent, scope, at, number);

-- What an agent used up on a day of the calendar (UTC, days since 1970); cost in millionths of a unit.
create table budget_day (
    agent text not null,
    scope text not null,
    day bigint not null,
    calls bigint not null,
    cost bigint not null,
    denied bigint not null,
    primary key (agent, scope, day)
);
create index budget_day_by_day on budget_day (day, agent, scope);

-- Who must not act now: `agent` is a name, or `*` for all.
create table pause (
    agent text primary key,
    paused_by text not null,
    paused_at bigint not null
);

-- Everything that waits for a person, and what became of it. `act` is the exact act as canonical JSON, `digest` is over
-- it; `decision` is what policy answered; `packet` is what the requester said for the person who decides. Texts are null
-- once they were erased. `rank` is the priority turned round.
create table request (
    id text primary key,
    kind text not null,
    state text not null,
    requester_kind text not null,
    requester text not null,
    verified boolean not null,
    domain text not null,
    rank bigint not null,
    mode text not null,
    risk text not null,
    assignee text,
    quorum bigint not null,
    snoozed_until bigint,
    asked_at bigint,
    expires_at bigint not null,
    escalate_at bigint,
    created_at bigint not null,
    updated_at bigint not null,
    decided_at bigint,
    decided_by text,
    finished_at bigint,
    version bigint not null,
    round bigint not null,
    supersedes text,
    batch text,
    confidence bigint,
    rulebook text not null,
    digest BYTES not null,
    title text,
    act text,
    decision text,
    packet text,
    reason text
);
create index request_pending on request (rank, created_at, id) where state = 'pending';
create index request_pending_by_domain on request (domain, rank, created_at, id) where state = 'pending';
create index request_pending_of on request (requester, created_at, id) where state = 'pending';
create index request_due on request (expires_at, id) where state = 'pending';
create index request_escalates on request (escalate_at, id) where escalate_at is not null;
create index request_open_execution on request (updated_at, id) where state = 'executing';
create index request_by_requester on request (requester, created_at, id);
create index request_by_domain on request (domain, created_at, id);
create index request_by_state on request (state, created_at, id);
create index request_by_kind on request (kind, created_at, id);
create index request_by_age on request (created_at, id);
create index request_by_batch on request (batch, id) where batch is not null;

-- How many requests of a requester are pending: the flood cap counts here.
create table request_count (
    requester text primary key,
    pending bigint not null
);

-- What each person said to a request, per round: an edit begins a new round.
create table vote (
    request text not null,
    round bigint not null,
    person text not null,
    vote text not null,
    at bigint not null,
    primary key (request, round, person)
);

-- Questions to the requester and its answers; notes of people.
create table request_note (
    id text primary key,
    request text not null,
    actor_kind text not null,
    actor text not null,
    kind text not null,
    note text,
    created_at bigint not null
);
create index request_note_by_request on request_note (request, created_at, id);

-- A single-use permission to do exactly what was approved.
create table act_grant (
    id text primary key,
    request text not null,
    agent text not null,
    digest BYTES not null,
    nonce text not null,
    granted_at bigint not null,
    expires_at bigint not null,
    used_at bigint,
    revoked_at bigint
);
create index act_grant_by_request on act_grant (request, granted_at, id);
create index act_grant_unused on act_grant (agent, expires_at, id) where used_at is null and revoked_at is null;

-- What was done, as reported: with the request it belongs to, or without one.
create table execution (
    id text primary key,
    request text,
    grant_id text,
    actor_kind text not null,
    agent text not null,
    domain text not null,
    claimed_actor text not null,
    derived_actor text not null,
    outcome text not null,
    matches text not null,
    cost bigint not null,
    started_at bigint,
    created_at bigint not null,
    action text,
    reasoning text,
    body text
);
create index execution_by_request on execution (request, created_at, id) where request is not null;
create index execution_by_age on execution (created_at, id);
create index execution_by_agent on execution (agent, created_at, id);

-- Corrections by people, with or without a request.
create table override (
    id text primary key,
    request text,
    agent text not null,
    domain text not null,
    type text not null,
    severity text not null,
    impact bigint not null,
    person text not null,
    created_at bigint not null,
    description text
);
create index override_by_agent on override (agent, domain, created_at, id);
create unique index override_of_request on override (request) where request is not null;

-- What people tell an agent to do; delivered until it is acknowledged.
create table instruction (
    id text primary key,
    request text not null,
    kind text not null,
    agent text not null,
    domain text not null,
    number bigint not null,
    hand_back boolean not null,
    created_at bigint not null,
    acknowledged_at bigint,
    resolution text,
    instructions text
);
create index instruction_waiting on instruction (agent, created_at, id) where acknowledged_at is null;
create index instruction_by_request on instruction (request, number, id);

-- Who set a field of a shared record last. What a person set, an agent does not overwrite.
create table field_edit (
    subject text not null,
    field text not null,
    set_by_kind text not null,
    set_by text not null,
    set_at bigint not null,
    primary key (subject, field)
);

-- A person's word for acts like one that was approved, for a while.
create table standing_approval (
    id text primary key,
    request text not null,
    agent text not null,
    domain text not null,
    pattern text not null,
    person text not null,
    created_at bigint not null,
    expires_at bigint not null,
    revoked_at bigint
);
create index standing_approval_of on standing_approval (agent, domain, expires_at, id) where revoked_at is null;

-- A session counts its own wrong passphrases. Ended credentials are found by their age.
alter table credential add column failures bigint not null default 0;
create index credential_by_expiry on credential (expires_at, id);
create index person_by_age on person (created_at, id);
create index reservation_released on reservation (released_at, id) where released_at is not null;
