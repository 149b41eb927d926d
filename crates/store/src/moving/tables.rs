//! Which tables a move moves, and which it leaves. A test holds the list against both schemas, so that a new table cannot be forgotten.

use super::state::MARK;

/// A table of the target, and what its rows are made of.
#[derive(Debug)]
pub(super) struct Table {
    pub name: &'static str,
    /// The table of the source.
    pub source: &'static str,
    /// Columns of the target that are not the source's column of the same name, with an expression over the source's row.
    pub made: &'static [(&'static str, &'static str)],
    /// Columns of the source that the target does without.
    pub left: &'static [&'static str],
    /// What leaves rows out that are of the source alone, in words that both databases understand.
    pub only: &'static str,
}

const fn same(name: &'static str) -> Table {
    Table { name, source: name, made: &[], left: &[], only: "true" }
}

/// Row numbers of SQLite's own, which nothing refers to.
const NUMBERED: &[&str] = &["no"];

/// In this order: what others refer to comes first, so that a target that is looked at meanwhile makes sense.
pub(super) const TABLES: &[Table] = &[
    // `MARK` is in both, and in each its own.
    Table { only: "name <> 'store.moving'", ..same("value") },
    same("project"),
    same("api_key"),
    same("person"),
    same("session"),
    same("security"),
    same("connection"),
    same("endpoint"),
    same("topic"),
    same("subscription"),
    same("push_subscription"),
    same("webhook_source"),
    same("webhook_receipt"),
    // One row here is three there; what waits is what entered less what left.
    Table {
        source: "queue",
        made: &[("entered", "waiting"), ("entered_bytes", "waiting_bytes")],
        left: &["project_id", "waiting", "waiting_bytes", "dead", "pruned", "token", "owner", "unreleased"],
        ..same("queue_entry")
    },
    Table {
        // Whoever owned it is gone: the lock on the source says so.
        made: &[("owner", "NULL"), ("wanted", "waiting > 0")],
        left: &["ordered", "next_position", "waiting", "waiting_bytes", "dead", "accepted", "pruned", "owner"],
        ..same("queue")
    },
    Table {
        source: "queue",
        made: &[("left_count", "0"), ("left_bytes", "0")],
        left: &[
            "project_id",
            "ordered",
            "next_position",
            "waiting",
            "waiting_bytes",
            "accepted",
            "token",
            "owner",
            "unreleased",
            "deleted",
        ],
        ..same("queue_exit")
    },
    same("deferral"),
    same("body"),
    Table { left: NUMBERED, ..same("delivery") },
    Table { left: NUMBERED, ..same("delivery_log") },
    same("attempt"),
    same("topic_message"),
    same("owed"),
    same("idempotency"),
    same("keyed_answer"),
    same("command"),
    same("command_audit"),
    same("job"),
    same("job_item"),
    same("alert"),
    same("audit"),
];

/// Tables of the source that stay: workers end with the process that had it open.
#[cfg(test)]
pub(super) const SOURCE_ONLY: &[&str] = &["worker"];

/// Tables of the target that a move leaves as they are: they are about its own processes and its own schema.
#[cfg(test)]
pub(super) const TARGET_ONLY: &[&str] = &["version", "lane", "worker", "log_leaving"];

/// `only` of the table `value` names it.
const _: () = assert!(matches!(MARK.as_bytes(), b"store.moving"));
