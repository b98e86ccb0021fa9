-- Agents are listed and counted without those that were deleted, and without reading what they do.
drop index agent_definition_by_age;
create index agent_definition_by_age on agent_definition (created_at, id) where deleted_at is null;
