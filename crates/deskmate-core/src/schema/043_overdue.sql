-- Since when a request has waited too long: it stays so, to whomever it is given.
alter table request add column overdue_since bigint;
