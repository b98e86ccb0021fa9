-- When the newest message came into a mailbox. The next one is later, whatever the clock of its sender's server says, so
-- that who waits for what is newer than a message gets everything that came after it.
alter table mailbox add column newest bigint not null default 0;
update mailbox set newest = coalesce((select max(d.created_at) from delivery d where d.recipient = mailbox.recipient), 0);
