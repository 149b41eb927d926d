//! The tables and their versions. It must not know which verb uses what.
//!
//! Ids are `uuid`, big-endian, so that they sort by time. Times are milliseconds since 1970. Words are stored as people read them; texts
//! that are ordered have the collation of bytes, so that every server lists them alike. JSON is `text`: it is read back as it was written.

use super::failures::{Fault, Outcome};
use super::open::Schema;
use super::partitions;
use crate::StoreError;

/// One entry a version, applied in order; the table `version` says how far. An entry that was ever released is never changed, and servers
/// of the version before go on working while it is applied, and after it.
const MIGRATIONS: &[Step] = &[Step::Statements(FIRST), Step::LogByDays];

enum Step {
    /// In one transaction, with the version.
    Statements(&'static str),
    /// What has to read a large table must not hold anybody up meanwhile, so it is no single transaction.
    LogByDays,
}

/// Servers that start together take turns.
const LOCK: i64 = 0x706f_7374_7269_6465;

/// Brings the schema to the newest version. Others that start meanwhile wait for it.
///
/// # Errors
/// `Unavailable` when a newer server has written it.
pub(super) async fn migrate(client: &mut tokio_postgres::Client, schema: &Schema) -> Outcome<()> {
    client.batch_execute("SET lock_timeout = '10min'").await?;
    client.execute("SELECT pg_advisory_lock($1)", &[&LOCK]).await?;
    client.batch_execute("RESET lock_timeout").await?;
    let migrated = migrate_alone(client, schema).await;
    // Whatever came of it; the end of the connection would do the same.
    client.execute("SELECT pg_advisory_unlock($1)", &[&LOCK]).await?;
    migrated
}

async fn migrate_alone(client: &mut tokio_postgres::Client, schema: &Schema) -> Outcome<()> {
    let known = i64::try_from(MIGRATIONS.len()).expect("a handful of migrations");
    loop {
        let step = client.transaction().await?;
        let found = found_version(&step, schema).await?;
        if found > known {
            return Err(Fault::Refused(StoreError::Unavailable(format!(
                "the store's schema has version {found}, and this server knows versions up to {known}: start the server that wrote it, or a newer one"
            ))));
        }
        if found == known {
            step.commit().await?;
            break;
        }
        let index = usize::try_from(found).map_err(|_| StoreError::Corrupt(format!("schema version {found}")))?;
        match MIGRATIONS[index] {
            Step::Statements(statements) => {
                step.batch_execute(statements).await?;
                step.execute("UPDATE version SET version = $1", &[&(found + 1)]).await?;
                step.commit().await?;
            }
            Step::LogByDays => {
                step.commit().await?;
                partitions::divide(client, found + 1).await?;
            }
        }
    }
    partitions::look_after(client, None).await
}

/// 0 for a schema without our tables, which is made where it is not there.
async fn found_version(step: &tokio_postgres::Transaction<'_>, schema: &Schema) -> Outcome<i64> {
    let name = schema.name();
    let sql = "SELECT count(*), count(*) FILTER (WHERE tablename = 'version') FROM pg_tables WHERE schemaname = $1";
    let row = step.query_one(sql, &[&name]).await?;
    let (any, ours): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    if any > 0 && ours == 0 {
        let why = format!("the schema `{name}` is no store: it has the tables of another program");
        return Err(Fault::Refused(StoreError::Corrupt(why)));
    }
    if any == 0 {
        // The name has been checked: it holds nothing that would have to be quoted.
        let made = format!(
            "CREATE SCHEMA IF NOT EXISTS {name}; CREATE TABLE version (version bigint NOT NULL, configuration bigint NOT NULL DEFAULT 0); INSERT INTO version VALUES (0)"
        );
        step.batch_execute(&made).await?;
    }
    let row = step.query_one("SELECT version FROM version", &[]).await?;
    Ok(row.try_get(0)?)
}

/// A queue is three rows, so that nobody waits who need not. Whoever locks more than one locks in the order entry, queue, exit, and in each
/// by id: `queue_entry` belongs to whoever stores (positions, what came in), `queue` says who owns it (shared by who writes under a lease,
/// alone by who changes the owner), `queue_exit` belongs to whoever settles. What waits is what entered less what left.
///
/// Hot rows and log rows have the same columns, but for the place in the queue. Bodies are apart from them, so that moving a delivery to
/// the log moves no body. Every index on `delivery` is partial or small, since each is paid for twice in a delivery's life.
pub(super) const FIRST: &str = r#"
CREATE TABLE value (name text PRIMARY KEY, value text NOT NULL);

CREATE TABLE project (id uuid PRIMARY KEY, name text COLLATE "C" NOT NULL UNIQUE, settings text NOT NULL, created_at bigint NOT NULL);

CREATE TABLE connection (
  id uuid PRIMARY KEY, project_id uuid NOT NULL, kind text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL, written text NOT NULL,
  paused boolean NOT NULL, version bigint NOT NULL, created_at bigint NOT NULL, updated_at bigint NOT NULL
);
CREATE UNIQUE INDEX connection_by_name ON connection (project_id, name, kind);

-- Whether the queue keeps order, the position that it gives next, and all that ever came in.
CREATE TABLE queue_entry (
  id uuid PRIMARY KEY, ordered boolean NOT NULL, deleted boolean NOT NULL DEFAULT false, next_position bigint NOT NULL DEFAULT 1,
  accepted bigint NOT NULL DEFAULT 0, entered bigint NOT NULL DEFAULT 0, entered_bytes bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
-- One row a connection. It outlives its connection while the log still speaks of it. `unreleased` is set when it is taken and cleared when
-- it is released; `wanted` is set by whoever finds something waiting and no owner.
CREATE TABLE queue (
  id uuid PRIMARY KEY, project_id uuid NOT NULL, token bigint NOT NULL DEFAULT 0, owner uuid, unreleased boolean NOT NULL DEFAULT false,
  wanted boolean NOT NULL DEFAULT false, deleted boolean NOT NULL DEFAULT false
) WITH (fillfactor = 70);
CREATE INDEX queue_wanted ON queue (id) WHERE wanted;
CREATE INDEX queue_by_owner ON queue (owner) WHERE owner IS NOT NULL;
CREATE INDEX queue_by_project ON queue (project_id, id);
CREATE TABLE queue_exit (
  id uuid PRIMARY KEY, left_count bigint NOT NULL DEFAULT 0, left_bytes bigint NOT NULL DEFAULT 0, dead bigint NOT NULL DEFAULT 0,
  pruned bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CREATE TABLE worker (id uuid PRIMARY KEY, life_ms bigint NOT NULL, ends_at bigint NOT NULL) WITH (fillfactor = 50);
-- One row a lane of a process: the number of its last transaction, by which one whose answer was lost is looked up.
CREATE TABLE lane (id uuid PRIMARY KEY, number bigint NOT NULL, seen_at timestamptz NOT NULL DEFAULT now()) WITH (fillfactor = 50);

CREATE TABLE body (id uuid PRIMARY KEY, uses bigint NOT NULL, bytes bytea NOT NULL);
-- What is delivered is often compressed already, and the processor is better used otherwise.
ALTER TABLE body ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- PENDING, PROCESSING and DLQ. `position` is set exactly while it waits; `by_due` is true where nothing ahead holds it back;
-- `line` names those of its queue among which order is kept;
-- `recorded` counts the attempts on record; `claim_token` says under which lease a PROCESSING one was claimed;
-- `cid_given` is true where the correlation id is a caller's own.
CREATE TABLE delivery (
  id uuid PRIMARY KEY, project_id uuid NOT NULL, connection_id uuid NOT NULL, cid text NOT NULL,
  cid_given boolean, origin text NOT NULL, created_at bigint NOT NULL, head text NOT NULL, event_id uuid, event_type text,
  happened_at bigint, subscription_id uuid, payload text, line bigint, ladder text,
  position bigint, by_due boolean NOT NULL, claim_token bigint,
  body_id uuid NOT NULL, body_bytes bigint NOT NULL, original_body_id uuid, version bigint NOT NULL, recorded bigint NOT NULL,
  status text NOT NULL, attempts bigint NOT NULL, rounds bigint NOT NULL, round_attempts bigint NOT NULL,
  round_waited_ms bigint NOT NULL, allowed_attempts bigint, interruptions bigint NOT NULL, due_at bigint NOT NULL,
  age_from bigint NOT NULL, last_attempt_at bigint, failure text, error text, dead_at bigint, dlq_retries bigint NOT NULL,
  dlq_note text, delivered_at bigint, ended_at bigint, counted_at bigint, tried boolean NOT NULL GENERATED ALWAYS AS (attempts > 0) STORED
);
CREATE UNIQUE INDEX delivery_line ON delivery (connection_id, position) WHERE position IS NOT NULL AND NOT by_due;
CREATE INDEX delivery_due ON delivery (connection_id, tried, due_at, id) WHERE by_due AND position IS NOT NULL;
CREATE INDEX delivery_in_line ON delivery (connection_id, line, position) WHERE line IS NOT NULL AND position IS NOT NULL;
CREATE INDEX delivery_waiting ON delivery (connection_id, created_at, id) WHERE position IS NOT NULL;
CREATE INDEX delivery_claimed ON delivery (connection_id, created_at, id) WHERE status = 'PROCESSING';
CREATE INDEX delivery_dead ON delivery (connection_id, created_at, id, failure) WHERE status = 'DLQ';
CREATE INDEX delivery_dead_by_arrival ON delivery (connection_id, dead_at, id, dlq_retries, failure) WHERE status = 'DLQ';
CREATE INDEX delivery_by_given_cid ON delivery (cid, created_at, id) WHERE cid_given;
-- The table turns over all the time: rows that are gone must not pile up until a fifth of it is dead.
ALTER TABLE delivery SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);

CREATE TABLE delivery_log (
  id uuid PRIMARY KEY, project_id uuid NOT NULL, connection_id uuid NOT NULL, cid text NOT NULL,
  cid_given boolean, origin text NOT NULL, created_at bigint NOT NULL, head text NOT NULL, event_id uuid, event_type text,
  happened_at bigint, subscription_id uuid, payload text, line bigint, ladder text,
  body_id uuid NOT NULL, body_bytes bigint NOT NULL, original_body_id uuid, version bigint NOT NULL, recorded bigint NOT NULL,
  status text NOT NULL, attempts bigint NOT NULL, rounds bigint NOT NULL, round_attempts bigint NOT NULL,
  round_waited_ms bigint NOT NULL, allowed_attempts bigint, interruptions bigint NOT NULL, due_at bigint NOT NULL,
  age_from bigint NOT NULL, last_attempt_at bigint, failure text, error text, dead_at bigint, dlq_retries bigint NOT NULL,
  dlq_note text, delivered_at bigint, ended_at bigint NOT NULL, counted_at bigint
);
CREATE INDEX log_by_connection ON delivery_log (connection_id, status, created_at, id, failure);
CREATE INDEX log_by_project ON delivery_log (project_id, status, created_at, id, failure);
CREATE INDEX log_by_end ON delivery_log (ended_at);
CREATE INDEX log_by_given_cid ON delivery_log (cid, created_at, id) WHERE cid_given;

CREATE TABLE attempt (
  delivery_id uuid NOT NULL, number bigint NOT NULL, started_at bigint NOT NULL, took_ms bigint NOT NULL, failure text,
  status bigint, error text, response_headers text NOT NULL, response_body bytea NOT NULL, response_bytes bigint NOT NULL,
  incomplete boolean NOT NULL, PRIMARY KEY (delivery_id, number)
);

CREATE TABLE idempotency (
  key_hash bytea PRIMARY KEY, request_hash bytea NOT NULL, delivery_id uuid NOT NULL, ends_at bigint NOT NULL
);
CREATE INDEX idempotency_by_end ON idempotency (ends_at);

-- Of requests that act: without a status as long as there is no answer.
CREATE TABLE keyed_answer (
  key_hash bytea PRIMARY KEY, request_hash bytea NOT NULL, status integer, location text, body text, ends_at bigint NOT NULL
);
CREATE INDEX keyed_answer_by_end ON keyed_answer (ends_at);

CREATE TABLE command (
  id uuid PRIMARY KEY, queue_id uuid NOT NULL, delivery_id uuid NOT NULL, act text NOT NULL, body bytea,
  issued_at bigint NOT NULL, answer text, job_id uuid
);
CREATE INDEX command_open ON command (queue_id, issued_at, id) WHERE answer IS NULL;
CREATE INDEX command_by_age ON command (issued_at);
CREATE INDEX command_by_job ON command (job_id) WHERE job_id IS NOT NULL;

-- `sealed` is the secret as the vault sealed it; the database never has it in the clear.
CREATE TABLE security (
  id uuid PRIMARY KEY, project_id uuid NOT NULL, kind text NOT NULL, name text NOT NULL, written text NOT NULL,
  sealed text NOT NULL, version bigint NOT NULL, created_at bigint NOT NULL, updated_at bigint NOT NULL,
  UNIQUE (project_id, name)
);

CREATE TABLE topic (
  id uuid PRIMARY KEY, project_id uuid NOT NULL, name text COLLATE "C" NOT NULL, description text NOT NULL,
  retention_ms bigint NOT NULL, created_at bigint NOT NULL, UNIQUE (project_id, name)
);
-- `owing`: how many subscriptions have not acknowledged it yet.
CREATE TABLE topic_message (
  sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, topic_id uuid NOT NULL, project_id uuid NOT NULL, id uuid NOT NULL,
  cid text NOT NULL,
  headers text NOT NULL, published_at bigint NOT NULL, body_id uuid NOT NULL, owing bigint NOT NULL
);
CREATE INDEX topic_message_by_project ON topic_message (project_id, sequence);
CREATE INDEX topic_message_by_topic ON topic_message (topic_id, sequence);
CREATE INDEX topic_message_by_id ON topic_message (id);
CREATE INDEX topic_message_unowed ON topic_message (topic_id, published_at) WHERE owing = 0;

CREATE TABLE subscription (
  id uuid PRIMARY KEY, project_id uuid NOT NULL, topic_id uuid NOT NULL, name text COLLATE "C" NOT NULL,
  redeliver_after_ms bigint NOT NULL, created_at bigint NOT NULL, UNIQUE (topic_id, name)
);
CREATE TABLE owed (
  subscription_id uuid NOT NULL, sequence bigint NOT NULL, due_at bigint NOT NULL, times_given bigint NOT NULL,
  PRIMARY KEY (subscription_id, sequence)
);

-- `filter` is NULL where the job names its deliveries, which are then in `job_item`, in their order.
CREATE TABLE job (
  id uuid PRIMARY KEY, project_id uuid NOT NULL, act text NOT NULL, filter text, requested bigint NOT NULL, who text NOT NULL,
  created_at bigint NOT NULL, state text NOT NULL, version bigint NOT NULL, matched bigint, done bigint NOT NULL,
  skipped text NOT NULL, outstanding bigint NOT NULL, cursor text, walked boolean NOT NULL, changed_at bigint NOT NULL,
  ended_at bigint
);
CREATE INDEX job_by_project ON job (project_id, created_at, id);
CREATE INDEX job_active ON job (project_id) WHERE ended_at IS NULL;
CREATE INDEX job_by_end ON job (ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE job_item (job_id uuid NOT NULL, number bigint NOT NULL, delivery_id uuid NOT NULL, PRIMARY KEY (job_id, number));

-- Hashes of keys, never a key. `project_id` is absent for keys of the installation.
CREATE TABLE api_key (
  id uuid PRIMARY KEY, project_id uuid, name text NOT NULL, scopes text NOT NULL, hash bytea NOT NULL, hint text NOT NULL,
  former_hash bytea, former_until bigint, version bigint NOT NULL, created_at bigint NOT NULL, rotated_at bigint,
  expires_at bigint, last_used_at bigint
);
CREATE UNIQUE INDEX api_key_by_name ON api_key (coalesce(project_id, '00000000-0000-0000-0000-000000000000'::uuid), name);

-- `password` is a PHC string, `token` a hash. `project_id` is absent for users of the installation.
CREATE TABLE person (
  id uuid PRIMARY KEY, project_id uuid, name text COLLATE "C" NOT NULL UNIQUE, role text NOT NULL, sees_bodies boolean NOT NULL,
  password text NOT NULL, version bigint NOT NULL, created_at bigint NOT NULL, password_set_at bigint NOT NULL, last_log_in_at bigint
);
CREATE TABLE session (
  token bytea PRIMARY KEY, user_id uuid NOT NULL, opened_at bigint NOT NULL, seen_at bigint NOT NULL, address text
);
CREATE INDEX session_by_user ON session (user_id, seen_at);

-- `entry` is all of it. At most one is open at its place.
CREATE TABLE alert (
  id uuid PRIMARY KEY, project_id uuid, connection_id uuid, kind text NOT NULL, raised_at bigint NOT NULL, recovered_at bigint,
  entry text NOT NULL
);
CREATE UNIQUE INDEX alert_open ON alert (kind, coalesce(connection_id, '00000000-0000-0000-0000-000000000000'::uuid))
  WHERE recovered_at IS NULL;
CREATE INDEX alert_by_project ON alert (project_id, id);
CREATE INDEX alert_by_recovery ON alert (recovered_at) WHERE recovered_at IS NOT NULL;

-- The columns are what is looked for; `entry` is all of it.
CREATE TABLE audit (
  id uuid PRIMARY KEY, project_id uuid, actor text NOT NULL, action text NOT NULL, object text, at bigint NOT NULL, entry text NOT NULL
);
CREATE INDEX audit_by_project ON audit (project_id, at, id);
CREATE INDEX audit_by_actor ON audit (actor, at, id);
CREATE INDEX audit_by_object ON audit (object, at, id) WHERE object IS NOT NULL;
CREATE INDEX audit_by_time ON audit (at, id);
-- The entry of a command, until its owner has answered.
CREATE TABLE command_audit (command_id uuid PRIMARY KEY, entry text NOT NULL);

-- What a connection of kind webhook has beside its settings. Signing keys are as the vault sealed them.
CREATE TABLE endpoint (
  id uuid PRIMARY KEY, project_id uuid NOT NULL, sealed text NOT NULL, former_sealed text, former_until bigint,
  verification text NOT NULL, verified_url text, off_reason text, off_at bigint, failing_since bigint, failed_in_a_row bigint NOT NULL,
  tested_at bigint, test_succeeded boolean, epoch bigint NOT NULL, tell_at bigint, version bigint NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX endpoint_failing ON endpoint (id) WHERE failing_since IS NOT NULL;
CREATE INDEX endpoint_untold ON endpoint (tell_at) WHERE tell_at IS NOT NULL;

-- What holds a queue up, as the owner of that token has said.
CREATE TABLE deferral (queue_id uuid PRIMARY KEY, token bigint NOT NULL, reason text NOT NULL, until bigint) WITH (fillfactor = 50);

CREATE TABLE push_subscription (
  id uuid PRIMARY KEY, project_id uuid NOT NULL, name text COLLATE "C" NOT NULL, connection_id uuid NOT NULL, written text NOT NULL,
  version bigint NOT NULL, created_at bigint NOT NULL, updated_at bigint NOT NULL, UNIQUE (project_id, name)
);
CREATE INDEX push_subscription_by_connection ON push_subscription (connection_id);

-- Hashes of tokens, never a token; secrets as the vault sealed them. `topic` is what `written` says, for the index.
CREATE TABLE webhook_source (
  id uuid PRIMARY KEY, project_id uuid NOT NULL, name text COLLATE "C" NOT NULL, topic text COLLATE "C" NOT NULL, written text NOT NULL,
  token_hash bytea NOT NULL UNIQUE, former_token_hash bytea, former_token_until bigint, sealed text, former_sealed text,
  former_sealed_until bigint, version bigint NOT NULL, created_at bigint NOT NULL, updated_at bigint NOT NULL,
  UNIQUE (project_id, name), UNIQUE (project_id, topic)
);
-- What came in, by the hash of its id or of what was signed.
CREATE TABLE webhook_receipt (hash bytea PRIMARY KEY, event_id uuid NOT NULL, ends_at bigint NOT NULL);
CREATE INDEX webhook_receipt_by_end ON webhook_receipt (ends_at);
"#;
