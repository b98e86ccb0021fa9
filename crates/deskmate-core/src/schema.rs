//! The schema's history. A released step never changes; the next change is a new step.

use deskmate_db::Migration;

/// All steps, oldest first.
pub const MIGRATIONS: &[Migration] = &[
    Migration { version: 1, name: "the desk: record, identity, leases, jobs, bridge", sql: include_str!("schema/001_desk.sql") },
    Migration { version: 2, name: "cowork: policies, trust, requests, grants, handoffs", sql: include_str!("schema/002_cowork.sql") },
    Migration { version: 3, name: "mailboxes: when the newest message came", sql: include_str!("schema/003_mailbox.sql") },
    Migration { version: 4, name: "bridge: indexes for what waits by age and for a project's tasks", sql: include_str!("schema/004_bridge_indexes.sql") },
];

/// Every table with its key, in the order in which a store is copied. `schema_version` is written by the migrations.
pub const TABLES: &[(&str, &str)] = &[
    ("desk", "key"),
    ("event", "seq"),
    ("event_payload", "seq"),
    ("record_hash", "position"),
    ("checkpoint", "size"),
    ("person", "id"),
    ("agent", "id"),
    ("credential", "id"),
    ("session_key", "credential"),
    ("idempotency", "actor, operation, key"),
    ("lease", "subject"),
    ("job", "id"),
    ("job_attempt", "job, number"),
    ("message", "id"),
    ("delivery", "message, recipient"),
    ("mailbox", "recipient"),
    ("actor_group", "name"),
    ("member", "name, member"),
    ("task", "id"),
    ("task_blocker", "task, blocker"),
    ("task_note", "id"),
    ("reservation", "id"),
    ("bridge_file_row", "kind, foreign_id"),
    ("cursor", "name"),
    ("policy", "name, version"),
    ("mapping", "agent, domain, policy"),
    ("setting", "section, domain"),
    ("trust", "agent, domain, verified"),
    ("meter", "agent, scope"),
    ("meter_use", "agent, scope, number"),
    ("budget_day", "agent, scope, day"),
    ("pause", "agent"),
    ("request", "id"),
    ("request_count", "requester"),
    ("vote", "request, round, person"),
    ("request_note", "id"),
    ("act_grant", "id"),
    ("execution", "id"),
    ("override", "id"),
    ("instruction", "id"),
    ("field_edit", "subject, field"),
    ("standing_approval", "id"),
];
