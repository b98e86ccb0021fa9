-- Facts about the desk itself: its id, its origin line, when it was claimed.
create table desk (
    key text primary key,
    value text not null
);

-- The record. `body` is the canonical JSON that the leaf hash covers; the other columns repeat parts of it for
-- searching, and verification compares them.
create table event (
    seq KEY,
    id text not null,
    at bigint not null,
    actor_kind text not null,
    actor text not null,
    kind text not null,
    subject text not null,
    body text not null
);
create index event_by_subject on event (subject, seq);
create index event_by_actor on event (actor, seq);
create index event_by_kind on event (kind, seq);

-- The erasable half of an event: its body holds only a commitment to this. Erased rows keep neither salt nor text.
create table event_payload (
    seq KEY,
    salt BYTES,
    payload text
);

-- The nodes of the Merkle tree, in the order in which they were completed.
create table record_hash (
    position KEY,
    hash BYTES not null
);

-- Signed checkpoints; the newest is always kept, older ones by retention.
create table checkpoint (
    size KEY,
    at bigint not null,
    note text not null
);

-- On PostgreSQL events wait here for the sealer, which gives them their place.
create table event_staged ( -- postgres
    position bigint generated always as identity primary key, -- postgres
    id text not null, -- postgres
    at bigint not null, -- postgres
    actor_kind text not null, -- postgres
    actor text not null, -- postgres
    kind text not null, -- postgres
    subject text not null, -- postgres
    body text not null, -- postgres
    salt BYTES, -- postgres
    payload text -- postgres
); -- postgres

create table person (
    id text primary key,
    name text not null,
    role text not null,
    domains text not null,
    factor text,
    state text not null,
    created_at bigint not null,
    updated_at bigint not null,
    failures bigint not null,
    locked_until bigint
);
create unique index person_by_name on person (name);

create table agent (
    id text primary key,
    state text not null,
    note text not null,
    created_at bigint not null,
    updated_at bigint not null
);

-- Everything that proves who somebody is, stored as a hash: agents' tokens, personal tokens, sessions, invitations, links.
create table credential (
    id text primary key,
    kind text not null,
    owner text not null,
    hash BYTES not null,
    scopes text not null,
    created_at bigint not null,
    expires_at bigint not null,
    revoked_at bigint,
    present_until bigint
);
create unique index credential_by_hash on credential (hash);
create index credential_by_owner on credential (owner, kind, created_at);

-- The public key of the browser that signed in; what it decides is signed with it.
create table session_key (
    credential text primary key,
    public_key BYTES not null
);

create table idempotency (
    actor text not null,
    operation text not null,
    key text not null,
    digest BYTES not null,
    answer text not null,
    at bigint not null,
    primary key (actor, operation, key)
);
create index idempotency_by_age on idempotency (at);

-- One kind of lease for task claims, reservations and jobs. The fence grows with every holder.
create table lease (
    subject text primary key,
    holder text not null,
    fence bigint not null,
    acquired_at bigint not null,
    renewed_at bigint not null,
    expires_at bigint not null,
    ttl bigint not null
);
create index lease_by_expiry on lease (expires_at);

-- Durable work. The long texts come last: SQLite reads a row from its beginning, and claims and lists need none of them.
create table job (
    id text primary key,
    kind text not null,
    state text not null,
    priority bigint not null,
    run_at bigint not null,
    unique_key text,
    owner_kind text not null,
    owner text not null,
    if_lost text not null,
    attempt bigint not null,
    attempts_max bigint not null,
    cancel_requested boolean not null,
    created_at bigint not null,
    updated_at bigint not null,
    finished_at bigint,
    progress text,
    error text,
    step text,
    input text not null,
    result text
);
-- Claims look for each kind and priority alone, so that neither another kind's backlog nor later dates are read through.
-- On SQLite the state is a column of these three although it is the same in all their rows: without it another index that
-- begins with the state is preferred, and the whole backlog is read and sorted. PostgreSQL knows from the condition that
-- the state fits and then does not use it for seeking, so there it must not come first.
create index job_waiting on job (state, kind, priority, run_at, id) where state = 'waiting'; -- sqlite
create index job_waiting on job (kind, priority, run_at, id) where state = 'waiting'; -- postgres
create index job_due on job (state, run_at, id) where state = 'waiting'; -- sqlite
create index job_due on job (run_at, id) where state = 'waiting'; -- postgres
create index job_running on job (state, id) where state = 'running'; -- sqlite
create index job_running on job (id) where state = 'running'; -- postgres
create unique index job_unique on job (kind, unique_key) where unique_key is not null and (state = 'waiting' or state = 'running');
create index job_by_owner on job (owner_kind, owner, created_at, id);
create index job_by_state on job (state, created_at, id);
create index job_by_kind on job (kind, created_at, id);
create index job_by_age on job (created_at, id);
create index job_finished on job (finished_at, id) where finished_at is not null;

create table job_attempt (
    job text not null,
    number bigint not null,
    worker text not null,
    fence bigint not null,
    started_at bigint not null,
    ended_at bigint,
    outcome text,
    error text,
    primary key (job, number)
);

-- `rank` is the priority turned round, so that the most urgent comes first. `content` is null once it was erased.
create table message (
    id text primary key,
    project text not null,
    sender_kind text not null,
    sender text not null,
    verified boolean not null,
    origin text not null,
    to_name text not null,
    thread text not null,
    reply_to text,
    rank bigint not null,
    content text,
    created_at bigint not null
);
create index message_by_thread on message (thread, created_at, id);
create index message_by_sender on message (sender, project, created_at, id);
create index message_by_age on message (created_at, id);

-- One row for each recipient.
create table delivery (
    message text not null,
    recipient text not null,
    project text not null,
    rank bigint not null,
    created_at bigint not null,
    acknowledged_at bigint,
    primary key (message, recipient)
);
create index delivery_waiting on delivery (recipient, project, rank, created_at, message) where acknowledged_at is null;
create index delivery_by_recipient on delivery (recipient, created_at, message);

-- How many unacknowledged messages each recipient has: counted here, because counting them would cost more with each.
create table mailbox (
    recipient text primary key,
    unread bigint not null
);

create table actor_group (
    name text primary key,
    owner_kind text not null,
    owner text not null,
    created_at bigint not null,
    updated_at bigint not null
);

create table member (
    name text not null,
    member text not null,
    created_at bigint not null,
    primary key (name, member)
);
create index member_of on member (member, name);

-- `recipient` is an actor or `group:NAME`; `worker` is who claimed it last, `result_by` who
-- wrote the result. Erased texts are null and `erased` says so.
create table task (
    id text primary key,
    project text not null,
    sender_kind text not null,
    sender text not null,
    verified boolean not null,
    origin text not null,
    recipient text not null,
    title text,
    description text,
    state text not null,
    rank bigint not null,
    open_blockers bigint not null,
    deadline bigint,
    thread text,
    result text,
    result_kind text,
    result_by text,
    result_verified boolean,
    worker text,
    erased boolean not null,
    attempt bigint not null,
    version bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    finished_at bigint
);
create index task_by_recipient on task (recipient, project, state, created_at, id);
create index task_by_sender on task (sender, project, state, created_at, id);
create index task_by_project on task (project, state, created_at, id);
create index task_by_age on task (created_at, id);
create index task_finished on task (finished_at, id) where finished_at is not null;
create index task_ready on task (recipient, project, rank, created_at, id) where state = 'pending' and open_blockers = 0;
create index task_in_progress on task (recipient, project, rank, created_at, id) where state = 'in_progress';

create table task_blocker (
    task text not null,
    blocker text not null,
    primary key (task, blocker)
);
create index task_blocked_by on task_blocker (blocker, task);

create table task_note (
    id text primary key,
    task text not null,
    actor_kind text not null,
    actor text not null,
    verified boolean not null,
    note text,
    percent bigint,
    created_at bigint not null
);
create index task_note_by_task on task_note (task, created_at, id);

-- `paths` is a JSON list; it is null once it was erased, and then the reservation holds nothing.
create table reservation (
    id text primary key,
    project text not null,
    holder_kind text not null,
    holder text not null,
    verified boolean not null,
    mode text not null,
    paths text,
    reason text,
    created_at bigint not null,
    released_at bigint
);
create index reservation_open on reservation (project, created_at, id) where released_at is null;

-- Which row of the bridge file is which message or task, by the row's lower-cased id; `spelled` is how the file writes it.
-- `recipient` is empty, or names the member whose copy of a message to a group it is.
create table bridge_file_row (
    kind text not null,
    foreign_id text not null,
    id text not null,
    recipient text not null,
    spelled text not null,
    primary key (kind, foreign_id)
);
create unique index bridge_file_row_by_id on bridge_file_row (kind, id, recipient);

-- How far each follower of the record has come.
create table cursor (
    name text primary key,
    seq bigint not null
);
