-- What was put off is taken up again when its time has come. The list of what is put off implies `snoozed_until is not null`; this it
-- does not, so that it keeps to the index that is in its order.
create index request_wakes on request (snoozed_until, id) where state = 'pending' and coalesce(snoozed_until, 0) > 0;
