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

-- Rows of other systems that were brought in, so that bringing them in again changes nothing. `local` is what they
-- became here, where they became more than an event.
create table imported (
    source text not null,
    kind text not null,
    foreign_id text not null,
    local text,
    imported_at bigint not null,
    primary key (source, kind, foreign_id)
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
    changes bigint not null,
    decided_since bigint not null,
    approved_since bigint not null,
    promoting boolean not null,
    confidence_sum bigint not null,
    confidence_count bigint not null,
    brier_sum bigint not null,
    updated_at bigint not null,
    primary key (agent, domain, verified)
);

-- How people answered a request as far as it moved trust, so that it counts once and can be taken back. `applied` is what
-- it really did to the score; `change` is the number of the change in its row of `trust`.
create table trust_verdict (
    request text primary key,
    agent text not null,
    domain text not null,
    verified boolean not null,
    approved boolean not null,
    applied bigint not null,
    change bigint not null,
    streak_before bigint not null,
    demoted_before boolean not null,
    confidence bigint,
    at bigint not null
);
create index trust_verdict_of on trust_verdict (agent, domain, verified, at, request);

-- Rolling windows, exact for any cap: every use has a number, `first` is the number of the oldest one that is still in the
-- window and `first_at` its time, so that what is used up is a subtraction. `scope` is a domain, or empty for all of them
-- together. `ahead` is how far the window's own time is ahead of the clock, after that stepped back. `day` counts the
-- days since 1970 (UTC), and what follows holds for that day; cost is in millionths of a unit. `held_until` is in the row
-- for all domains only.
create table meter (
    agent text not null,
    scope text not null,
    next bigint not null,
    first bigint not null,
    first_at bigint not null,
    last_at bigint not null,
    ahead bigint not null,
    pruned bigint not null,
    day bigint not null,
    calls bigint not null,
    cost bigint not null,
    denied bigint not null,
    held_until bigint not null,
    primary key (agent, scope)
);
create table meter_use (
    agent text not null,
    number bigint not null,
    domain text not null,
    domain_number bigint not null,
    at bigint not null,
    primary key (agent, number)
);
create unique index meter_use_in_domain on meter_use (agent, domain, domain_number);

-- Attempts of an agent that were denied in the last minutes (their times, oldest first), and how often that has put its
-- further attempts off.
create table probe (
    agent text primary key,
    times text not null,
    level bigint not null,
    last_at bigint not null
);

-- Who must not act now: `agent` is a name, or `*` for all.
create table pause (
    agent text primary key,
    paused_by text not null,
    paused_at bigint not null
);

-- Everything that waits for a person, and what became of it. `act` is the exact act with its actor, nonce, schema and
-- target as canonical JSON, `digest` is over it; `decision` is what policy answered; `packet` is what the requester said
-- for the person who decides. Texts are null once they were erased. `rank` is the priority turned round.
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
    edited_by text,
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
create index request_pending on request (rank, created_at, id, snoozed_until, asked_at) where state = 'pending';
create index request_pending_by_domain on request (domain, rank, created_at, id, snoozed_until, asked_at) where state = 'pending';
create index request_pending_of on request (requester, rank, created_at, id, snoozed_until, asked_at) where state = 'pending';
create index request_pending_for on request (assignee, rank, created_at, id, snoozed_until, asked_at) where state = 'pending' and assignee is not null;
create index request_due on request (expires_at, id) where state = 'pending';
create index request_escalates on request (escalate_at, id) where state = 'pending' and escalate_at is not null;
create index request_open_execution on request (updated_at, id) where state = 'executing';
create index request_by_requester on request (requester, created_at, id);
create index request_by_domain on request (domain, created_at, id);
create index request_by_state on request (state, created_at, id) where state <> 'pending';
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
    granted_at bigint not null,
    expires_at bigint not null,
    used_at bigint,
    revoked_at bigint
);
create index act_grant_by_request on act_grant (request, granted_at, id);
create index act_grant_unused on act_grant (agent, expires_at, id) where used_at is null and revoked_at is null;

-- What was done, as reported: with the request it belongs to, or without one. `unknown`: it named a request that is not
-- there for the reporter; `silent`: it does not say why.
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
    quality bigint,
    unknown boolean not null,
    silent boolean not null,
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
    about text,
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
create index instruction_about on instruction (about, id) where about is not null;

-- Who set a field of a shared record last. What a person set, an agent does not overwrite.
create table field_edit (
    subject text not null,
    field text not null,
    set_by_kind text not null,
    set_by text not null,
    set_at bigint not null,
    primary key (subject, field)
);

-- What a grant or a request says is compared with what was told of it, also before the sealer gave that its place.
create index event_staged_by_subject on event_staged (subject, position); -- postgres

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
create index standing_approval_by_request on standing_approval (request, id);
create index standing_approval_by_age on standing_approval (created_at, id);

-- Messages to people outside the desk: what happened since a channel's last one is told together. `state` is `open` while
-- it still takes events in, then `sending`, and in the end `delivered`, `failed` or `dropped`. `items` are the first of
-- `count` events as JSON; `body` is what is sent, the same at every attempt, and gone once it has arrived.
create table notification (
    id text primary key,
    channel text not null,
    urgent boolean not null,
    state text not null,
    count bigint not null,
    test boolean not null,
    job text not null,
    opened_at bigint not null,
    due_at bigint not null,
    finished_at bigint,
    items text not null,
    error text,
    body text
);
create unique index notification_open on notification (channel, urgent) where state = 'open';
create index notification_by_channel on notification (channel, urgent, due_at, id);
create index notification_by_age on notification (opened_at, id);
create index notification_finished on notification (finished_at, id) where finished_at is not null;

-- The channels of the configuration, and how they do. `digest` is over the address: a channel that was turned off because
-- its receiver is gone is turned on again by another address.
create table notification_channel (
    name text primary key,
    kind text not null,
    target text not null,
    digest text not null,
    configured boolean not null,
    disabled_at bigint,
    delivered_at bigint,
    failed_at bigint,
    error text
);

-- A session counts its own wrong passphrases. Ended credentials are found by their age.
alter table credential add column failures bigint not null default 0;
create index credential_by_expiry on credential (expires_at, id);
create index person_by_age on person (created_at, id);
create index reservation_released on reservation (released_at, id) where released_at is not null;
