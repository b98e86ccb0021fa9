-- The place of a request among those that wait: what is at stake first, of those the newest. One number, so that a list
-- that goes down in time walks an index upwards; see `Request::place`, which keeps it from now on.
alter table request add column place bigint not null default 0;
update request set place = (
    case
        when risk not in ('low', 'medium', 'high') or rank = 0 then 0
        when risk = 'high' or rank = 1 then 2
        when risk = 'medium' then 4
        else 6
    end
    + case when rank = 3 then 1 else 0 end
) * 9007199254740992 - created_at;

drop index request_pending;
drop index request_pending_by_domain;
drop index request_pending_of;
drop index request_pending_for;
drop index request_pending_by_kind;
create index request_pending on request (place, id, snoozed_until, asked_at) where state = 'pending';
create index request_pending_by_domain on request (domain, place, id, snoozed_until, asked_at) where state = 'pending';
create index request_pending_of on request (requester, place, id, snoozed_until, asked_at) where state = 'pending';
create index request_pending_for on request (assignee, place, id, snoozed_until, asked_at) where state = 'pending' and assignee is not null;
create index request_pending_by_kind on request (kind, place, id, snoozed_until, asked_at) where state = 'pending';
