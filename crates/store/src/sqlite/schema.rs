//! The tables and their versions. It must not know which verb uses what.
//!
//! Ids are 16 bytes, big-endian, so that they sort by time. Times are milliseconds since 1970. Words are stored as people read them.

use rusqlite::Connection;

use crate::StoreError;

/// One entry a version, applied in order; `PRAGMA user_version` counts them. An entry that was ever released is never changed.
const MIGRATIONS: &[&str] = &[FIRST, REPLIES];

/// The version that this program reads and writes.
pub(super) const fn newest() -> i64 {
    MIGRATIONS.len() as i64
}

/// Brings the file to the newest version, each step in a transaction of its own.
///
/// # Errors
/// `Unavailable` when a newer server has written the file.
pub(super) fn migrate(connection: &Connection) -> Result<(), StoreError> {
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let known = i64::try_from(MIGRATIONS.len()).expect("a handful of migrations");
    if found > known {
        return Err(StoreError::Unavailable(format!(
            "the store's schema has version {found}, and this server knows versions up to {known}: start the server that wrote it, or a newer one"
        )));
    }
    let done = usize::try_from(found).map_err(|_| StoreError::Corrupt(format!("schema version {found}")))?;
    for (index, statements) in MIGRATIONS.iter().enumerate().skip(done) {
        let version = index + 1;
        connection
            .execute_batch(&format!("BEGIN IMMEDIATE; {statements} PRAGMA user_version = {version}; COMMIT;"))
            .inspect_err(|_| {
                // A step that failed has opened its transaction; without this, closing would do the same.
                let _ = connection.execute_batch("ROLLBACK");
            })?;
    }
    Ok(())
}

/// Hot rows and log rows have the same columns, but for the place in the queue. Bodies are apart from them, so that moving a delivery to
/// the log moves no body. Every index on `delivery` is partial or small, since each is paid for twice in a delivery's life.
const FIRST: &str = "
CREATE TABLE value (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE project (id BLOB PRIMARY KEY, name TEXT NOT NULL UNIQUE, settings TEXT NOT NULL, created_at INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE connection (
  id BLOB NOT NULL PRIMARY KEY, project_id BLOB NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, written TEXT NOT NULL,
  paused INTEGER NOT NULL, version INTEGER NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX connection_by_name ON connection (project_id, name, kind);

-- One row a connection, with exact counters. It outlives its connection while the log still speaks of it.
CREATE TABLE queue (
  id BLOB PRIMARY KEY, project_id BLOB NOT NULL, ordered INTEGER NOT NULL, next_position INTEGER NOT NULL,
  waiting INTEGER NOT NULL, waiting_bytes INTEGER NOT NULL, dead INTEGER NOT NULL,
  accepted INTEGER NOT NULL, pruned INTEGER NOT NULL,
  token INTEGER NOT NULL, owner BLOB, unreleased INTEGER NOT NULL, deleted INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX queue_free ON queue (id) WHERE owner IS NULL AND waiting > 0;
CREATE INDEX queue_by_owner ON queue (owner) WHERE owner IS NOT NULL;
CREATE INDEX queue_by_project ON queue (project_id, id);

CREATE TABLE worker (id BLOB PRIMARY KEY, life_ms INTEGER NOT NULL, ends_at INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE body (id BLOB NOT NULL UNIQUE, uses INTEGER NOT NULL, bytes BLOB NOT NULL);

-- PENDING, PROCESSING and DLQ. `position` is set exactly while it waits; `by_due` is 1 where nothing ahead holds it back;
-- `line` names those of its queue among which order is kept;
-- `recorded` counts the attempts on record; `claim_token` says under which lease a PROCESSING one was claimed;
-- `cid_given` is 1 where the correlation id is a caller's own.
CREATE TABLE delivery (
  no INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, project_id BLOB NOT NULL, connection_id BLOB NOT NULL, cid TEXT NOT NULL,
  cid_given INTEGER, origin TEXT NOT NULL, created_at INTEGER NOT NULL, head TEXT NOT NULL, event_id BLOB, event_type TEXT, happened_at INTEGER,
  subscription_id BLOB, payload TEXT, line INTEGER, ladder TEXT,
  position INTEGER, by_due INTEGER NOT NULL, claim_token INTEGER,
  body_id BLOB NOT NULL, body_bytes INTEGER NOT NULL, original_body_id BLOB, version INTEGER NOT NULL, recorded INTEGER NOT NULL,
  status TEXT NOT NULL, attempts INTEGER NOT NULL, rounds INTEGER NOT NULL, round_attempts INTEGER NOT NULL,
  round_waited_ms INTEGER NOT NULL, allowed_attempts INTEGER, interruptions INTEGER NOT NULL, due_at INTEGER NOT NULL,
  age_from INTEGER NOT NULL, last_attempt_at INTEGER, failure TEXT, error TEXT, dead_at INTEGER, dlq_retries INTEGER NOT NULL,
  dlq_note TEXT, delivered_at INTEGER, ended_at INTEGER, counted_at INTEGER
);
CREATE UNIQUE INDEX delivery_line ON delivery (connection_id, position) WHERE position IS NOT NULL AND by_due = 0;
CREATE INDEX delivery_due ON delivery (connection_id, attempts > 0, due_at, id) WHERE by_due = 1 AND position IS NOT NULL;
CREATE INDEX delivery_in_line ON delivery (connection_id, line, position) WHERE line IS NOT NULL AND position IS NOT NULL;
CREATE INDEX delivery_waiting ON delivery (connection_id, created_at, id) WHERE position IS NOT NULL;
CREATE INDEX delivery_claimed ON delivery (connection_id, position) WHERE status = 'PROCESSING';
CREATE INDEX delivery_dead ON delivery (connection_id, created_at, id, failure) WHERE status = 'DLQ';
CREATE INDEX delivery_dead_by_arrival ON delivery (connection_id, dead_at, id, dlq_retries, failure) WHERE status = 'DLQ';

CREATE INDEX delivery_by_given_cid ON delivery (cid, created_at, id) WHERE cid_given = 1;

CREATE TABLE delivery_log (
  no INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, project_id BLOB NOT NULL, connection_id BLOB NOT NULL, cid TEXT NOT NULL,
  cid_given INTEGER, origin TEXT NOT NULL, created_at INTEGER NOT NULL, head TEXT NOT NULL, event_id BLOB, event_type TEXT, happened_at INTEGER,
  subscription_id BLOB, payload TEXT, line INTEGER, ladder TEXT,
  body_id BLOB NOT NULL, body_bytes INTEGER NOT NULL, original_body_id BLOB, version INTEGER NOT NULL, recorded INTEGER NOT NULL,
  status TEXT NOT NULL, attempts INTEGER NOT NULL, rounds INTEGER NOT NULL, round_attempts INTEGER NOT NULL,
  round_waited_ms INTEGER NOT NULL, allowed_attempts INTEGER, interruptions INTEGER NOT NULL, due_at INTEGER NOT NULL,
  age_from INTEGER NOT NULL, last_attempt_at INTEGER, failure TEXT, error TEXT, dead_at INTEGER, dlq_retries INTEGER NOT NULL,
  dlq_note TEXT, delivered_at INTEGER, ended_at INTEGER, counted_at INTEGER
);
CREATE INDEX log_by_connection ON delivery_log (connection_id, status, created_at, id, failure);
CREATE INDEX log_by_project ON delivery_log (project_id, status, created_at, id, failure);
CREATE INDEX log_by_end ON delivery_log (ended_at);
CREATE INDEX log_by_given_cid ON delivery_log (cid, created_at, id) WHERE cid_given = 1;

CREATE TABLE attempt (
  delivery_id BLOB NOT NULL, number INTEGER NOT NULL, started_at INTEGER NOT NULL, took_ms INTEGER NOT NULL, failure TEXT,
  status INTEGER, error TEXT, response_headers TEXT NOT NULL, response_body BLOB NOT NULL, response_bytes INTEGER NOT NULL,
  incomplete INTEGER NOT NULL, PRIMARY KEY (delivery_id, number)
) WITHOUT ROWID;

CREATE TABLE idempotency (
  key_hash BLOB PRIMARY KEY, request_hash BLOB NOT NULL, delivery_id BLOB NOT NULL, ends_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX idempotency_by_end ON idempotency (ends_at);

-- Of requests that act: without a status as long as there is no answer.
CREATE TABLE keyed_answer (
  key_hash BLOB PRIMARY KEY, request_hash BLOB NOT NULL, status INTEGER, location TEXT, body TEXT, ends_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX keyed_answer_by_end ON keyed_answer (ends_at);

CREATE TABLE command (
  id BLOB NOT NULL PRIMARY KEY, queue_id BLOB NOT NULL, delivery_id BLOB NOT NULL, act TEXT NOT NULL, body BLOB,
  issued_at INTEGER NOT NULL, answer TEXT, job_id BLOB
);
CREATE INDEX command_open ON command (queue_id, issued_at, id) WHERE answer IS NULL;
CREATE INDEX command_by_age ON command (issued_at);
CREATE INDEX command_by_job ON command (job_id) WHERE job_id IS NOT NULL;

-- `sealed` is the secret as the vault sealed it; the database never has it in the clear.
CREATE TABLE security (
  id BLOB NOT NULL PRIMARY KEY, project_id BLOB NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, written TEXT NOT NULL,
  sealed TEXT NOT NULL, version INTEGER NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  UNIQUE (project_id, name)
);

CREATE TABLE topic (
  id BLOB NOT NULL PRIMARY KEY, project_id BLOB NOT NULL, name TEXT NOT NULL, description TEXT NOT NULL,
  retention_ms INTEGER NOT NULL, created_at INTEGER NOT NULL, UNIQUE (project_id, name)
);
-- `owing`: how many subscriptions have not acknowledged it yet.
CREATE TABLE topic_message (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT, topic_id BLOB NOT NULL, project_id BLOB NOT NULL, id BLOB NOT NULL, cid TEXT NOT NULL,
  headers TEXT NOT NULL,
  published_at INTEGER NOT NULL, body_id BLOB NOT NULL, owing INTEGER NOT NULL
);
CREATE INDEX topic_message_by_project ON topic_message (project_id, sequence);
CREATE INDEX topic_message_by_topic ON topic_message (topic_id, sequence);
CREATE INDEX topic_message_by_id ON topic_message (id);
CREATE INDEX topic_message_unowed ON topic_message (topic_id, published_at) WHERE owing = 0;

CREATE TABLE subscription (
  id BLOB NOT NULL PRIMARY KEY, project_id BLOB NOT NULL, topic_id BLOB NOT NULL, name TEXT NOT NULL,
  redeliver_after_ms INTEGER NOT NULL, created_at INTEGER NOT NULL, UNIQUE (topic_id, name)
);
CREATE TABLE owed (
  subscription_id BLOB NOT NULL, sequence INTEGER NOT NULL, due_at INTEGER NOT NULL, times_given INTEGER NOT NULL,
  PRIMARY KEY (subscription_id, sequence)
) WITHOUT ROWID;

-- `filter` is NULL where the job names its deliveries, which are then in `job_item`, in their order.
CREATE TABLE job (
  id BLOB PRIMARY KEY, project_id BLOB NOT NULL, act TEXT NOT NULL, filter TEXT, requested INTEGER NOT NULL, who TEXT NOT NULL,
  created_at INTEGER NOT NULL, state TEXT NOT NULL, version INTEGER NOT NULL, matched INTEGER, done INTEGER NOT NULL,
  skipped TEXT NOT NULL, outstanding INTEGER NOT NULL, cursor TEXT, walked INTEGER NOT NULL, changed_at INTEGER NOT NULL,
  ended_at INTEGER
) WITHOUT ROWID;
CREATE INDEX job_by_project ON job (project_id, created_at, id);
CREATE INDEX job_active ON job (project_id) WHERE ended_at IS NULL;
CREATE INDEX job_by_end ON job (ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE job_item (
  job_id BLOB NOT NULL, number INTEGER NOT NULL, delivery_id BLOB NOT NULL, PRIMARY KEY (job_id, number)
) WITHOUT ROWID;
-- Hashes of keys, never a key. `project_id` is absent for keys of the installation.
CREATE TABLE api_key (
  id BLOB NOT NULL PRIMARY KEY, project_id BLOB, name TEXT NOT NULL, scopes TEXT NOT NULL, hash BLOB NOT NULL, hint TEXT NOT NULL,
  former_hash BLOB, former_until INTEGER, version INTEGER NOT NULL, created_at INTEGER NOT NULL, rotated_at INTEGER,
  expires_at INTEGER, last_used_at INTEGER
) WITHOUT ROWID;
CREATE UNIQUE INDEX api_key_by_name ON api_key (coalesce(project_id, x''), name);

-- `password` is a PHC string, `token` a hash. `project_id` is absent for users of the installation.
CREATE TABLE person (
  id BLOB NOT NULL PRIMARY KEY, project_id BLOB, name TEXT NOT NULL UNIQUE, role TEXT NOT NULL, sees_bodies INTEGER NOT NULL,
  password TEXT NOT NULL, version INTEGER NOT NULL, created_at INTEGER NOT NULL, password_set_at INTEGER NOT NULL, last_log_in_at INTEGER
) WITHOUT ROWID;
CREATE TABLE session (
  token BLOB NOT NULL PRIMARY KEY, user_id BLOB NOT NULL, opened_at INTEGER NOT NULL, seen_at INTEGER NOT NULL, address TEXT
) WITHOUT ROWID;
CREATE INDEX session_by_user ON session (user_id, seen_at);

-- `entry` is all of it. At most one is open at its place.
CREATE TABLE alert (
  id BLOB NOT NULL PRIMARY KEY, project_id BLOB, connection_id BLOB, kind TEXT NOT NULL, raised_at INTEGER NOT NULL,
  recovered_at INTEGER, entry TEXT NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX alert_open ON alert (kind, coalesce(connection_id, x'')) WHERE recovered_at IS NULL;
CREATE INDEX alert_by_project ON alert (project_id, id);
CREATE INDEX alert_by_recovery ON alert (recovered_at) WHERE recovered_at IS NOT NULL;

-- The columns are what is looked for; `entry` is all of it.
CREATE TABLE audit (
  id BLOB NOT NULL PRIMARY KEY, project_id BLOB, actor TEXT NOT NULL, action TEXT NOT NULL, object TEXT, at INTEGER NOT NULL,
  entry TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX audit_by_project ON audit (project_id, at, id);
CREATE INDEX audit_by_actor ON audit (actor, at, id);
CREATE INDEX audit_by_object ON audit (object, at, id) WHERE object IS NOT NULL;
CREATE INDEX audit_by_time ON audit (at, id);
-- The entry of a command, until its owner has answered.
CREATE TABLE command_audit (command_id BLOB NOT NULL PRIMARY KEY, entry TEXT NOT NULL) WITHOUT ROWID;

-- What holds a queue up, as the owner of that token has said.
CREATE TABLE deferral (queue_id BLOB NOT NULL PRIMARY KEY, token INTEGER NOT NULL, reason TEXT NOT NULL, until INTEGER) WITHOUT ROWID;

-- What a connection of kind webhook has beside its settings. Signing keys are as the vault sealed them.
CREATE TABLE endpoint (
  id BLOB NOT NULL PRIMARY KEY, project_id BLOB NOT NULL, sealed TEXT NOT NULL, former_sealed TEXT, former_until INTEGER,
  verification TEXT NOT NULL, verified_url TEXT, off_reason TEXT, off_at INTEGER, failing_since INTEGER, failed_in_a_row INTEGER NOT NULL,
  tested_at INTEGER, test_succeeded INTEGER, epoch INTEGER NOT NULL, tell_at INTEGER, version INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX endpoint_failing ON endpoint (id) WHERE failing_since IS NOT NULL;
CREATE INDEX endpoint_untold ON endpoint (tell_at) WHERE tell_at IS NOT NULL;

CREATE TABLE push_subscription (
  id BLOB NOT NULL PRIMARY KEY, project_id BLOB NOT NULL, name TEXT NOT NULL, connection_id BLOB NOT NULL, written TEXT NOT NULL,
  version INTEGER NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, UNIQUE (project_id, name)
);
CREATE INDEX push_subscription_by_connection ON push_subscription (connection_id);

-- Hashes of tokens, never a token; secrets as the vault sealed them. `topic` is what `written` says, for the index.
CREATE TABLE webhook_source (
  id BLOB NOT NULL PRIMARY KEY, project_id BLOB NOT NULL, name TEXT NOT NULL, topic TEXT NOT NULL, written TEXT NOT NULL,
  token_hash BLOB NOT NULL UNIQUE, former_token_hash BLOB, former_token_until INTEGER, sealed TEXT, former_sealed TEXT,
  former_sealed_until INTEGER, version INTEGER NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  UNIQUE (project_id, name), UNIQUE (project_id, topic)
);
-- What came in, by the hash of its id or of what was signed.
CREATE TABLE webhook_receipt (hash BLOB PRIMARY KEY, event_id BLOB NOT NULL, ends_at INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX webhook_receipt_by_end ON webhook_receipt (ends_at);
";

/// Callers who wait in another process than their queue's owner (D11). An embedded store has one process, and keeps what it is asked to.
const REPLIES: &str = "
CREATE TABLE reply (
  delivery_id BLOB NOT NULL PRIMARY KEY, queue_id BLOB NOT NULL, position INTEGER NOT NULL, begun INTEGER NOT NULL DEFAULT 0,
  ends_at INTEGER NOT NULL, state TEXT, error TEXT, failure TEXT, status INTEGER, headers TEXT, body BLOB, incomplete INTEGER
);
CREATE INDEX reply_open ON reply (queue_id, position) WHERE state IS NULL;
CREATE INDEX reply_by_end ON reply (ends_at);
";
