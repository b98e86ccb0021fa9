-- The events that repeat a request's row, apart from what others tell of the same subject: however much that is, the
-- row's own events are found at once. As an expression, so that no planner takes the index over the whole subject.
create index event_of_request on event ((subject || ''), seq) where substr(kind, 1, 8) = 'request.';
