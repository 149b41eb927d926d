//! The log by days: partitions made ahead of time, and whole days that leave at once (D01).
//!
//! Rows that ended before the log was divided are in `delivery_log_before`, which goes row by row; `delivery_log_rest` takes what ended
//! on a day that nobody has made a partition for, so that a wrong clock never keeps a decision from being written. A day that has
//! passed its retention is detached in one short transaction, so from then on nobody finds its rows; what they refer to is given back in steps
//! (`retention`), and then its table is dropped. Days are those of UTC. It must not know what may go.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio_postgres::{Client, GenericClient};

use super::failures::{Fault, Outcome};
use crate::StoreError;

/// One day in milliseconds.
pub(super) const DAY: i64 = 86_400_000;
/// Days that are made ahead: a server that cannot make any for a week still writes to one.
const AHEAD: i64 = 7;
/// The first partition of a moved log is no older than that; what is, goes to `delivery_log_before`.
const BACK_MAX: i64 = 100;
/// How long a change of the partitions waits for others, and they for it.
const LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '500ms'";
/// One process at a time looks after them.
const LOCK: i64 = 0x706f_7374_6461_7973;
const SWAP_TRIES_MAX: u32 = 20;
const SWAP_PAUSE: Duration = Duration::from_millis(500);

/// What `before` ends with.
const BEFORE: &str = "delivery_log_before";

const INDEXES: [(&str, &str); 4] = [
    ("log_by_connection", "(connection_id, status, created_at, id, failure)"),
    ("log_by_project", "(project_id, status, created_at, id, failure)"),
    ("log_by_end", "(ended_at)"),
    ("log_by_given_cid", "(cid, created_at, id) WHERE cid_given"),
];

/// `delivery_log_20261130`, of a day since 1970.
pub(super) fn name_of(day: i64) -> String {
    // The civil calendar, from the first of March of the year 0 on.
    let days = day + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (0, month + 3) } else { (1, month - 9) };
    format!("delivery_log_{:04}{month:02}{date:02}", year_of_era + era * 400 + year)
}

/// Divides a log that is one table, while servers go on writing to it: all of it becomes the partition of what ended before a day that has
/// not come yet. Nothing is copied, and what reads the whole table (a check of it, one index) holds nobody up; only the change of names
/// locks, for a moment. Cut off anywhere, it can be done again.
pub(super) async fn divide(client: &mut Client, version: i64) -> Outcome<()> {
    let mut tries = 0;
    loop {
        tries += 1;
        let bound = prepare(client).await?;
        match swap(client, bound, version).await {
            // A row that the log of an empty table got meanwhile, or somebody who is busy with it.
            Err(Fault::Again(_) | Fault::Refused(StoreError::Conflict(_))) if tries < SWAP_TRIES_MAX => {
                tokio::time::sleep(SWAP_PAUSE).await;
            }
            other => return other,
        }
    }
}

/// Where the part of the old rows ends. Afterwards the database knows that none of them is behind it.
async fn prepare(client: &Client) -> Outcome<i64> {
    let sql = format!(
        "SELECT (SELECT max(ended_at) FROM delivery_log), (extract(epoch FROM clock_timestamp()) * 1000)::bigint / {DAY}"
    );
    let row = client.query_one(&sql, &[]).await?;
    let (newest, today): (Option<i64>, i64) = (row.try_get(0)?, row.try_get(1)?);
    let Some(newest) = newest else { return Ok(today * DAY) };
    let bound = (newest.div_euclid(DAY).max(today) + 2) * DAY;
    let known = format!(
        "ALTER TABLE delivery_log DROP CONSTRAINT IF EXISTS log_before, ADD CONSTRAINT log_before CHECK (ended_at < {bound}) NOT VALID"
    );
    client.batch_execute(&known).await?;
    // Both read all of it, beside everybody else. They wait for whoever is at work, and keep nobody waiting.
    client.batch_execute("SET lock_timeout = 0").await?;
    client.batch_execute("ALTER TABLE delivery_log VALIDATE CONSTRAINT log_before").await?;
    client.batch_execute("DROP INDEX CONCURRENTLY IF EXISTS log_before_by_id").await?;
    client.batch_execute("CREATE UNIQUE INDEX CONCURRENTLY log_before_by_id ON delivery_log (id, ended_at)").await?;
    client.batch_execute("RESET lock_timeout").await?;
    Ok(bound)
}

async fn swap(client: &mut Client, bound: i64, version: i64) -> Outcome<()> {
    let step = client.transaction().await?;
    let mut sql = format!("{LOCK_TIMEOUT}; ALTER TABLE delivery_log RENAME TO {BEFORE};");
    for (name, _) in INDEXES {
        sql.push_str(&format!("ALTER INDEX {name} RENAME TO {};", name.replace("log_", "log_before_")));
    }
    sql.push_str(&format!(
        "ALTER TABLE {BEFORE} DROP CONSTRAINT delivery_log_pkey, ALTER COLUMN id SET NOT NULL;
         CREATE TABLE delivery_log (LIKE {BEFORE} INCLUDING DEFAULTS) PARTITION BY RANGE (ended_at);
         CREATE UNIQUE INDEX log_by_id ON delivery_log (id, ended_at);"
    ));
    for (name, columns) in INDEXES {
        sql.push_str(&format!("CREATE INDEX {name} ON delivery_log {columns};"));
    }
    // Days that have left the log and are not dropped yet, and up to which row what they refer to is given back.
    sql.push_str(&format!(
        "ALTER TABLE delivery_log ATTACH PARTITION {BEFORE} FOR VALUES FROM (MINVALUE) TO ({bound});
         ALTER TABLE {BEFORE} DROP CONSTRAINT IF EXISTS log_before;
         CREATE TABLE delivery_log_rest PARTITION OF delivery_log DEFAULT;
         CREATE TABLE log_leaving (name text COLLATE \"C\" PRIMARY KEY, up_to uuid NOT NULL);
         UPDATE version SET version = {version};"
    ));
    step.batch_execute(&sql).await?;
    Ok(step.commit().await?)
}

/// The partitions as they are.
struct Known {
    names: BTreeSet<String>,
    /// The first day that is not in `before`.
    first: i64,
    today: i64,
}

async fn known(client: &impl GenericClient) -> Outcome<Known> {
    let sql = format!(
        "SELECT c.relname::text, substring(pg_get_expr(c.relpartbound, c.oid) FROM 'MINVALUE\\) TO \\(''?(-?\\d+)')::bigint, \
         (extract(epoch FROM clock_timestamp()) * 1000)::bigint / {DAY} \
         FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid WHERE i.inhparent = 'delivery_log'::regclass"
    );
    let mut known = Known { names: BTreeSet::new(), first: 0, today: 0 };
    for row in client.query(&sql, &[]).await? {
        known.names.insert(row.try_get(0)?);
        known.today = row.try_get(2)?;
        if let Some(bound) = row.try_get::<_, Option<i64>>(1)? {
            known.first = bound.div_euclid(DAY);
        }
    }
    Ok(known)
}

/// Makes the days to come, and detaches those that ended before this time. Somebody who is in the way is met again at the next call.
pub(super) async fn look_after(client: &mut Client, log_before: Option<i64>) -> Outcome<()> {
    let found = known(client).await?;
    let missing: Vec<i64> = (found.first.max(found.today - 1)..=found.today + AHEAD)
        .filter(|day| !found.names.contains(&name_of(*day)))
        .collect();
    let passed = log_before.map(|before| before.div_euclid(DAY).min(found.today - 1)).unwrap_or(i64::MIN);
    // Names of days sort as the days do.
    let past = name_of(passed.max(0));
    let leaving: Vec<String> =
        found.names.iter().filter(|name| is_day(name) && log_before.is_some() && **name < past).cloned().collect();
    for day in missing {
        passing(make(client, day).await)?;
    }
    for name in leaving {
        passing(detach(client, &name).await)?;
    }
    Ok(())
}

/// What another process did, or keeps us from doing now, is no fault.
fn passing(done: Outcome<()>) -> Outcome<()> {
    match done {
        Err(Fault::Again(_)) => Ok(()),
        other => other,
    }
}

/// Whether it is the name of one of our days, which may stand in a statement as it is.
pub(super) fn is_day(name: &str) -> bool {
    name.strip_prefix("delivery_log_")
        .is_some_and(|date| date.len() >= 8 && date.bytes().all(|one| one.is_ascii_digit()))
}

/// Alone, or not at all.
async fn begin(client: &mut Client) -> Outcome<Option<tokio_postgres::Transaction<'_>>> {
    let step = client.transaction().await?;
    step.batch_execute(LOCK_TIMEOUT).await?;
    let alone: bool = step.query_one("SELECT pg_try_advisory_xact_lock($1)", &[&LOCK]).await?.try_get(0)?;
    Ok(alone.then_some(step))
}

async fn make(client: &mut Client, day: i64) -> Outcome<()> {
    let Some(step) = begin(client).await? else { return Ok(()) };
    if !known(&step).await?.names.contains(&name_of(day)) {
        step.batch_execute(&make_sql(day)).await?;
    }
    Ok(step.commit().await?)
}

/// It is made beside the log, with what `rest` has of its day, and attached: nobody who writes to another day waits for that.
fn make_sql(day: i64) -> String {
    let (name, from, to) = (name_of(day), day * DAY, (day + 1) * DAY);
    format!(
        "CREATE TABLE {name} (LIKE delivery_log INCLUDING DEFAULTS INCLUDING INDEXES); \
         WITH moved AS (DELETE FROM delivery_log_rest WHERE ended_at >= {from} AND ended_at < {to} RETURNING *) \
         INSERT INTO {name} SELECT * FROM moved; \
         ALTER TABLE delivery_log ATTACH PARTITION {name} FOR VALUES FROM ({from}) TO ({to});"
    )
}

async fn detach(client: &mut Client, name: &str) -> Outcome<()> {
    let Some(step) = begin(client).await? else { return Ok(()) };
    if known(&step).await?.names.contains(name) {
        let sql = format!(
            "ALTER TABLE delivery_log DETACH PARTITION {name}; \
             INSERT INTO log_leaving (name, up_to) VALUES ('{name}', '00000000-0000-0000-0000-000000000000');"
        );
        step.batch_execute(&sql).await?;
    }
    Ok(step.commit().await?)
}

/// Days back to this time as well, for a store that is moved here: `before` has nothing yet, and ends earlier from now on.
pub(crate) async fn reach_back(client: &mut Client, oldest: i64) -> Result<(), StoreError> {
    let reached = async {
        let found = known(client).await?;
        let first = oldest.div_euclid(DAY).max(found.today - BACK_MAX);
        if first >= found.first {
            return Ok(());
        }
        let step = client.transaction().await?;
        let bound = first * DAY;
        let mut sql = format!(
            "ALTER TABLE delivery_log DETACH PARTITION {BEFORE}; \
             ALTER TABLE delivery_log ATTACH PARTITION {BEFORE} FOR VALUES FROM (MINVALUE) TO ({bound});"
        );
        (first..found.first)
            .filter(|day| !found.names.contains(&name_of(*day)))
            .for_each(|day| sql.push_str(&make_sql(day)));
        step.batch_execute(&sql).await?;
        Ok(step.commit().await?)
    };
    reached.await.map_err(|fault: Fault| fault.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_the_name_of_its_date() {
        for (day, name) in [
            (0, "delivery_log_19700101"),
            (59, "delivery_log_19700301"),
            (11_016, "delivery_log_20000229"),
            (20_787, "delivery_log_20261130"),
        ] {
            assert_eq!(name_of(day), name);
            assert!(is_day(name));
        }
        assert!(!is_day("delivery_log_before") && !is_day("delivery_log_1; DROP") && !is_day("delivery"));
    }
}
