-- How each person is told: a subscription is one way, by an outlet of the configuration. `salt` goes into the digest that the
-- record keeps of the row, so that nobody learns an address from it, and a row that was changed sends no link to decide by.
create table subscription (
    person text not null,
    name text not null,
    outlet text not null,
    address text,
    settings text not null,
    decide_links boolean not null,
    salt BYTES not null,
    created_at bigint not null,
    updated_at bigint not null,
    tested_at bigint,
    disabled_at bigint,
    delivered_at bigint,
    failed_at bigint,
    error text,
    primary key (person, name)
);

-- Requests that are told again: when nobody decided them for a while, and before they expire.
create table reminder (
    request text not null,
    why text not null,
    due_at bigint not null,
    primary key (request, why)
);
create index reminder_due on reminder (due_at, request, why);

-- A row of an outlet that tells nobody by itself is for subscriptions only.
alter table notification_channel add column tells boolean not null default true;
alter table notification_channel add column links boolean not null default false;
alter table notification_channel add column addresses text not null default '[]';

-- For whom a notification is, the id that the receiver gave it, and whether it failed for good.
alter table notification add column person text;
alter table notification add column receipt text;
alter table notification add column permanent boolean not null default false;
create index notification_of_person on notification (person, opened_at, id) where person is not null;
create index notification_dead on notification (opened_at, id) where state = 'failed';
