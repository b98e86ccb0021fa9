-- Work on files. A plan is made by a job, approved as a request over its digest, and done by another job. Texts are null
-- once they were erased.
create table plan (
    id text primary key,
    root text not null,
    kind text not null,
    state text not null,
    owner_kind text not null,
    owner text not null,
    verified boolean not null,
    steps bigint not null,
    bytes bigint not null,
    digest BYTES,
    done bigint not null,
    skipped bigint not null,
    failed bigint not null,
    unclear bigint not null,
    request text,
    plan_job text not null,
    job text,
    undo_of text,
    created_at bigint not null,
    updated_at bigint not null,
    begun_at bigint,
    finished_at bigint,
    ask text,
    summary text,
    note text
);
create index plan_by_owner on plan (owner_kind, owner, created_at, id);
create index plan_by_age on plan (created_at, id);
create index plan_by_request on plan (request) where request is not null;
create index plan_by_job on plan (plan_job);
create index plan_by_doing on plan (job) where job is not null;

-- The steps of a plan, up to a thousand together: `body` is their JSON, `digest` is over it, `sum` what they come to, and
-- `outcomes` what came of each.
create table plan_part (
    plan text not null,
    number bigint not null,
    state text not null,
    steps bigint not null,
    digest BYTES not null,
    sum text not null,
    body text,
    outcomes text,
    primary key (plan, number)
);
