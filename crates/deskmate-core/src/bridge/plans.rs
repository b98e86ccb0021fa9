//! Statements whose cost must not grow with what the tables hold.

use super::{claim, file, messages, notes, projects, reservations, retention, rows, search, sent, tasks, threads};

/// Each statement with the indexes that it has to go through (keys as PostgreSQL names them), and the types of its
/// parameters: `t` a text, `k` a kind of row, `i` a number, `b` yes or no. A test reads their plans on both engines.
#[doc(hidden)]
pub fn indexed() -> Vec<(&'static str, &'static str, &'static str)> {
    let own = [
        (messages::WAITING.sizes, "delivery_waiting", "ttiiti"),
        (messages::WAITING.rows, "delivery_waiting", "ttiiti"),
        (messages::WAITING_AFTER.sizes, "delivery_waiting_by_age", "ttiti"),
        (messages::WAITING_AFTER.rows, "delivery_waiting_by_age", "ttiti"),
        (messages::NEXT_PROJECT, "delivery_waiting", "tt"),
        (messages::THREAD.sizes, "message_by_thread delivery_pkey", "ttbititi"),
        (messages::THREAD.rows, "message_by_thread delivery_pkey", "ttbititi"),
        (search::WAITING.sizes, "delivery_waiting_by_age message_pkey", "ttiti"),
        (search::WAITING.rows, "delivery_waiting_by_age message_pkey", "ttiti"),
        (search::DONE.sizes, "delivery_done_by_age message_pkey", "ttiti"),
        (search::DONE.rows, "delivery_done_by_age message_pkey", "ttiti"),
        (search::SENT.sizes, "message_by_sender", "ttiti"),
        (search::SENT.rows, "message_by_sender delivery_pkey", "ttiti"),
        (search::ALL.sizes, "message_by_age", "iti"),
        (search::ALL.rows, "message_by_age", "iti"),
        (sent::SENT.sizes, "message_by_sender", "ttiti"),
        (sent::SENT.rows, "message_by_sender", "ttiti"),
        (threads::NEWEST, "message_by_age message_by_thread", "ititi"),
        (threads::LOOKED_AT, "message_by_age", "iti"),
        (threads::WAITING_IN, "delivery_waiting message_pkey", "ti"),
        (threads::OPENING, "message_by_thread", "ti"),
        (threads::OF_THREAD.sizes, "message_by_thread", "ttiti"),
        (threads::OF_THREAD.rows, "message_by_thread delivery_pkey", "ttiti"),
        (projects::NEXT_WITH_TASKS, "task_by_project", "t"),
        (projects::NEXT_WITH_RESERVATIONS, "reservation_open", "t"),
        (rows::ACKNOWLEDGE, "delivery_pkey", "tti"),
        (tasks::ASSIGNED.whole, "task_by_recipient", "ttitiit"),
        (tasks::ASSIGNED.leased, "task_by_recipient", "titiiiit"),
        (tasks::CREATED_BY.whole, "task_by_sender", "ttitiit"),
        (tasks::CREATED_BY.leased, "task_by_sender", "titiiiit"),
        (tasks::EVERYBODYS.whole, "task_by_project", "ttitii"),
        (tasks::EVERYBODYS.leased, "task_by_project", "titiiii"),
        (claim::NEXT_PENDING, "task_ready", "tt"),
        (claim::NEXT_PROJECT_READY, "task_ready", "tt"),
        (claim::NEXT_LOST, "task_in_progress", "tti"),
        (claim::LOST, "task_in_progress", "ii"),
        (notes::OF_TASK, "task_note_by_task", "titi"),
        (reservations::HELD, "reservation_open", "ititi"),
        (reservations::EXPIRED_NOW, "reservation_open", "ii"),
        (retention::OLD_MESSAGES, "message_by_age delivery_pkey", "iiti"),
        (retention::OLD_TASKS, "task_finished task_blocked_by", "iiti"),
    ];
    own.into_iter().chain(file::INDEXED.iter().copied()).collect()
}
