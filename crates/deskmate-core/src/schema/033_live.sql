-- Agents are listed and counted without those that were deleted, and counted without reading their rows: SQLite looks at what an
-- index leaves out once more, so that stands in it, too.
drop index agent_definition_by_age;
create index agent_definition_by_age on agent_definition (created_at, id, deleted_at) where deleted_at is null;
