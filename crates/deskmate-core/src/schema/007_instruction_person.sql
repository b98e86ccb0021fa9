-- Who said it: a handoff may be answered again, by somebody else than who decided it first. Null where nobody did, as when
-- it expired, and for what was said before this was kept.
alter table instruction add column person text;
