//! Every line that a server logs is one of these: the one catalogue of its names, from which `docs/logs.md` is written.
//!
//! A name never changes its meaning. A line carries its name as `event`, and never a body, a header's value, a credential or a URL's query.
//! `cargo xtask tidy` sees to it that no line is without one. It must not know who logs, nor where to.

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Error,
    Warn,
    Info,
    Debug,
}

impl Level {
    pub const fn as_str(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warn => "warn",
            Level::Info => "info",
            Level::Debug => "debug",
        }
    }
}

/// One kind of line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEvent {
    pub name: &'static str,
    pub level: Level,
    pub meaning: &'static str,
}

macro_rules! catalogue {
    ($($constant:ident: $name:literal, $level:ident, $meaning:literal;)*) => {
        $(#[doc = $meaning] pub const $constant: &str = $name;)*
        /// All of them, by name.
        pub const ALL: &[LogEvent] = &[$(LogEvent { name: $constant, level: Level::$level, meaning: $meaning }),*];
    };
}

catalogue! {
    ALERTS_UNREAD: "alert.held_up", Warn, "Alerts cannot be read or written now; they are looked for again.";
    ALERT_RAISED: "alert.raised", Warn, "An alert is raised; see `operations.md`.";
    ALERT_RECOVERED: "alert.recovered", Info, "An alert has recovered.";
    ANNOUNCEMENT_HELD_UP: "announcement.held_up", Warn, "What the server tells of itself cannot be published yet; it is tried again.";
    ANNOUNCEMENT_REFUSED: "announcement.refused", Warn, "An event that the server tells of itself was refused, such as by a full queue; it is not told.";
    ANSWER_NOT_KEPT: "answer.not_kept", Warn, "The answer to a request with an idempotency key could not be kept; a repeat is told that the outcome is not known.";
    ATTEMPT_ENDED: "attempt.ended", Debug, "One attempt, and what came of it.";
    ATTEMPT_PANICKED: "attempt.panicked", Error, "A defect: sending panicked, and the attempt counts as failed.";
    CALL_LOST: "call.not_logged", Error, "A finished direct call will not enter the delivery log.";
    CALLS_NOT_LOGGED: "call.not_logged_yet", Warn, "Finished direct calls cannot enter the delivery log yet.";
    CHANNEL_CONNECTION: "channel.connection", Warn, "A connection to an MLLP channel was refused, or ended in a way that somebody should know of.";
    CHANNEL_LISTENS: "channel.listens", Info, "An MLLP channel listens.";
    CHANNEL_NOT_LISTENING: "channel.not_listening", Error, "An MLLP channel cannot open its port; it is tried again.";
    CIRCUIT_CLOSED: "circuit.closed", Info, "An endpoint that was left alone answers again.";
    CIRCUIT_OPENED: "circuit.opened", Warn, "An endpoint has failed so often in a row that its requests are held back; the line says until when one is tried.";
    CONFIG_APPLIED: "config.applied", Info, "The file of `--config` was applied.";
    CONFIG_IMPORTED: "config.imported", Info, "A configuration was imported.";
    CONFIG_UNREADABLE: "config.unreadable", Warn, "What other servers changed in the configuration cannot be read yet; what is known goes on.";
    CONFIG_WARNING: "config.warning", Warn, "A key of the configuration file has no effect here.";
    DECISIONS_NOT_WRITTEN: "decision.not_written", Warn, "Decisions cannot be written yet; nothing is sent again for that.";
    DECISION_REFUSED: "decision.refused", Error, "A defect: the store refuses a decision; its delivery is decided again.";
    DEMO_REFUSED: "demo.refused", Warn, "A request of the demo was refused.";
    DLQ_HELD_UP: "dlq.held_up", Warn, "The DLQ's action cannot be taken yet.";
    ENDPOINTS_UNREAD: "endpoint.held_up", Warn, "How endpoints do cannot be read or written now; it is tried again.";
    ENDPOINT_KEY_NOT_MADE: "endpoint.key_not_made", Error, "A signing key for an endpoint could not be made: nothing is sent to it until it is rotated.";
    ENDPOINT_OWNER_UNKNOWN: "endpoint.owner_unknown", Warn, "An endpoint was switched off, and nobody was written to: its project has no `ownerEmail`.";
    ENDPOINT_OWNER_UNTOLD: "endpoint.owner_untold", Error, "The owner of an endpoint that was switched off could not be told: no mail server is set, or no mail was taken.";
    ENDPOINT_SWITCHED_OFF: "endpoint.switched_off", Warn, "An endpoint was switched off; see `webhooks.md`.";
    ENDPOINT_SWITCHED_ON: "endpoint.switched_on", Info, "An endpoint was switched on again.";
    HEALTH_FAILING: "health.failing", Warn, "A health check fails from now on; the line says which, and why.";
    HEALTH_OK: "health.ok", Info, "A health check is well again.";
    PROBE_FAILED: "health.probe_failed", Debug, "The store did not take the tiny write of the health check.";
    HOOK_FAILED: "hook.failed", Warn, "A service did not write the acknowledgment of a request that was stored; the default one was sent.";
    HTTP_ACCEPT_FAILED: "http.accept_failed", Warn, "Accepting a connection failed, for example because no file descriptor is free; it is tried again.";
    HTTP_CONNECTION_ENDED: "http.connection_ended", Debug, "A caller's connection ended with an error.";
    HTTP_CUT_OFF: "http.cut_off", Warn, "Requests that did not end within the bound of a stop.";
    HTTP_ENDED: "http.ended", Error, "A defect: the accept loop ended with an error.";
    HTTP_HANDLER_PANICKED: "http.handler_panicked", Error, "A defect: a handler panicked, and its request was answered 500.";
    JOB_BEGAN: "job.began", Info, "A job was made.";
    JOB_DONE: "job.done", Info, "A job has ended.";
    JOB_HELD_UP: "job.held_up", Warn, "A job cannot go on yet.";
    JOB_TOLD: "job.told", Info, "A job was paused, resumed or cancelled.";
    JOBS_UNREADABLE: "job.unreadable", Warn, "The jobs cannot be read from the store yet.";
    KEY_REFUSALS_NOT_WRITTEN: "key.refusals_not_written", Warn, "Refused uses of keys could not be written to the audit log.";
    KEY_SHORT: "key.short", Warn, "The admin key is shorter than advised.";
    KEYS_UNREADABLE: "key.unreadable", Warn, "The API keys could not be read anew; those known go on.";
    KEY_USES_NOT_WRITTEN: "key.uses_not_written", Warn, "When keys were last used could not be written.";
    LEASE_ENDED: "lease.ended", Error, "The worker's lease ended before it was renewed; all queues are taken anew.";
    LEASE_NOT_RENEWED: "lease.not_renewed", Warn, "The worker's lease cannot be renewed yet.";
    LOG_SUPPRESSED: "log.suppressed", Warn, "So many lines of one kind were left out in the last ten seconds.";
    MAIL_LOST: "mail.lost", Error, "A mail is given up: refused for good, or not taken in twelve tries.";
    MAIL_REFUSED: "mail.refused", Error, "A mail was not taken into the full outbox.";
    MAIL_SENT: "mail.sent", Info, "A mail server has taken a mail.";
    MAIL_WAITS: "mail.waits", Warn, "A mail was not taken yet; it is tried again after a pause.";
    ACK_OF_ANOTHER: "mllp.ack_of_another", Warn, "With `ack_match: warn`, an acknowledgment of another message was taken.";
    PAGE_BROKEN: "page.broken", Error, "A defect: a page of the dashboard could not be made.";
    PANICKED: "panicked", Error, "A defect: something panicked here; the line says where.";
    QUEUE_DEFERRED: "queue.deferred", Info, "What is due in a queue is held back by a limit or an open circuit, for longer than a second; the line says by which and until when.";
    QUEUE_NOT_DEFERRED: "queue.not_deferred", Info, "A queue is not held back any more.";
    QUEUE_NOT_IN_ORDER: "queue.not_in_order", Warn, "A queue just taken cannot be put in order yet.";
    QUEUE_NOT_RELEASED: "queue.not_released", Debug, "A queue was not given back; it is free once the lease has ended.";
    QUEUE_NOT_TAKEN: "queue.not_taken", Warn, "A queue cannot be taken yet.";
    QUEUES_NOT_TAKEN: "queue.orphans_not_taken", Warn, "Queues without an owner cannot be taken yet.";
    RUNNER_PANICKED: "queue.runner_panicked", Error, "A defect: a queue's runner panicked; it is started again.";
    QUEUE_UNREADABLE: "queue.unreadable", Warn, "A queue cannot be read from the store yet.";
    REMOTE_BACK: "remote.back", Info, "It answers again: how often it failed, and for how long.";
    REMOTE_FAILING: "remote.failing", Warn, "A remote system fails from now on: it does not answer, or answers with 5xx. Once, and not for each failure.";
    REQUEST_NOT_STORED: "request.not_stored", Warn, "A request could not be stored; its caller was told.";
    REQUEST_STORED: "request.stored", Debug, "A request was stored to be delivered.";
    REQUEST_UNAVAILABLE: "request.unavailable", Warn, "A request was answered 503: the store does not answer.";
    RETENTION_DONE: "retention.done", Debug, "What had ended long ago was removed.";
    RETENTION_HELD_UP: "retention.held_up", Warn, "Retention could not go on; it is tried again.";
    SECRETS_KEY_MADE: "secrets.key_made", Warn, "A key for secrets was made and kept in the data directory: back it up apart from the store.";
    SECRETS_KEY_OPEN: "secrets.key_open", Warn, "The key file for secrets can be read by others than its owner.";
    SECRET_NOT_RESEALED: "secrets.not_resealed", Warn, "A secret could not be sealed under the new key.";
    SECRET_UNREADABLE: "secrets.unreadable", Error, "A secret cannot be opened: the key that sealed it is not there.";
    SERVER_FILE_LEFT: "server.file_left", Warn, "`server.json` could not be removed.";
    SERVER_LISTENING: "server.listening", Info, "The server listens and delivers.";
    QUEUES_NOT_RELEASED: "server.queues_not_released", Warn, "The queues could not be given back at the stop; they are free once the lease has ended.";
    SERVICE_UNTOLD: "server.service_untold", Warn, "The service manager could not be told of readiness, life or a stop.";
    SIGNALS_UNHEARD: "server.signals_unheard", Error, "Signals cannot be listened for.";
    STOP_CUT_OFF: "server.stop_cut_off", Warn, "The stop was cut off at `POSTRIDER_STOP_SECONDS`; what had not ended is sent again.";
    STOP_UNWRITTEN: "server.stop_unwritten", Error, "Not every decision could be written before the stop; what is not written is sent again.";
    SERVER_STOPPED: "server.stopped", Info, "The server has stopped.";
    SERVER_STOPPING: "server.stopping", Info, "A signal came: the server stops.";
    SERVICES_DEBUG: "services.debug", Debug, "A line of a service's log, with the correlation id of its run.";
    SERVICES_ENDED: "services.ended", Warn, "The process of `--services` ended by itself; it is started again.";
    SERVICES_ERROR: "services.error", Error, "The same, of an error; `error` has the stack trace.";
    SERVICES_LOG: "services.log", Info, "The same, of what is worth knowing.";
    SERVICES_NOT_STARTED: "services.not_started", Error, "The process of `--services` could not be started; what ran before goes on, and it is tried again.";
    SERVICES_STARTED: "services.started", Info, "The process of `--services` serves these services.";
    SERVICES_WARN: "services.warn", Warn, "The same, of a warning, or a line of the interpreter itself.";
    SPANS_NOT_TAKEN: "spans.not_taken", Warn, "The collector does not take spans from now on; what does not fit the buffer is dropped and counted.";
    SPANS_TAKEN: "spans.taken", Info, "The collector takes spans again.";
    CHECKPOINT_FAILED: "store.checkpoint_failed", Warn, "A checkpoint failed; the WAL keeps what it holds.";
    STORE_CLOSE_FAILED: "store.close_failed", Warn, "The store did not close cleanly or in time; it recovers at the next start.";
    STORE_RESTORED: "store.restored", Warn, "The store was restored from a backup: its queues are paused until somebody resumes them.";
    STORE_RESTORED_KEPT: "store.restored_note_kept", Debug, "The note of a restore could not be removed; the next start does.";
    STORE_RESUMED: "store.resumed", Info, "`--resume`: the queues that a restore had paused go on.";
    STORE_ROLLBACK_FAILED: "store.rollback_failed", Error, "A transaction could not be rolled back.";
    STORE_THREAD_PANICKED: "store.thread_panicked", Error, "A defect: a thread of the store panicked.";
    WAL_IN_USE: "store.wal_in_use", Debug, "The WAL could not be cut, because somebody used it.";
    TOKEN_NOT_FETCHED: "token.not_fetched", Debug, "An OAuth 2.0 token was not given.";
    WORKER_LOST: "worker.lost", Error, "A defect: a worker panicked that only a new process replaces; `/health/live` fails.";
    WORKER_PANICKED: "worker.panicked", Error, "A defect: a worker panicked; it is started again.";
}

/// The table of `docs/logs.md`.
pub fn reference() -> String {
    let row = |event: &LogEvent| format!("| `{}` | {} | {} |\n", event.name, event.level.as_str(), event.meaning);
    let rows: String = ALL.iter().map(row).collect();
    format!("| event | level | when |\n|---|---|---|\n{rows}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_in_order_and_of_one_form() {
        assert!(ALL.windows(2).all(|pair| pair[0].name < pair[1].name));
        for event in ALL {
            assert!(event.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'.' || b == b'_'), "{event:?}");
            assert!(event.meaning.ends_with('.'), "{event:?}");
        }
    }
}
