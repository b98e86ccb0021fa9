-- The calls of somebody to one mount, newest first.
create index gateway_call_by_actor_and_mount on gateway_call (actor_kind, actor, mount, created_at, id);
