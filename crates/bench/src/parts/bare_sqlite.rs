//! The same life cycle in bare SQL, no store of ours around it: what SQLite itself costs, 256 messages a transaction, with fsync.
//!
//! Body, delivery, settlement and attempt, indexes on due time and on position. It must not know our store's tables.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};

use crate::failure::Failure;
use crate::lane::process_cpu;
use crate::messages;

/// Messages a transaction.
const BATCH: i64 = 256;

const SCHEMA: &str = "
PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536;
CREATE TABLE body (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL);
CREATE TABLE delivery (id INTEGER PRIMARY KEY, connection INTEGER NOT NULL, seq INTEGER NOT NULL, status INTEGER NOT NULL,
    due INTEGER NOT NULL, attempts INTEGER NOT NULL, head TEXT NOT NULL, body INTEGER NOT NULL, ended INTEGER);
CREATE INDEX delivery_due ON delivery (status, due) WHERE status < 2;
CREATE INDEX delivery_seq ON delivery (connection, seq) WHERE status < 2;
CREATE TABLE attempt (delivery INTEGER NOT NULL, number INTEGER NOT NULL, at INTEGER NOT NULL, status INTEGER, detail TEXT,
    PRIMARY KEY (delivery, number)) WITHOUT ROWID;";

/// CPU microseconds a message.
pub fn life_cycle_us(data: &Path, at_most: Duration) -> Result<f64, Failure> {
    let mut connection = Connection::open(data.join("bare.db")).map_err(failed)?;
    connection.execute_batch(SCHEMA).map_err(failed)?;
    let mut next = 0;
    run(&mut connection, &mut next, Duration::from_millis(200))?;
    let before = process_cpu();
    let first = next;
    run(&mut connection, &mut next, at_most)?;
    let spent = process_cpu().saturating_sub(before);
    Ok(spent.as_secs_f64() * 1e6 / (next - first) as f64)
}

fn run(connection: &mut Connection, next: &mut i64, at_most: Duration) -> Result<(), Failure> {
    let began_at = Instant::now();
    while began_at.elapsed() < at_most {
        insert(connection, *next).map_err(failed)?;
        settle(connection, *next).map_err(failed)?;
        *next += BATCH;
    }
    Ok(())
}

fn insert(connection: &mut Connection, from: i64) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    {
        let mut body = transaction.prepare_cached("INSERT INTO body VALUES (?1, ?2)")?;
        let mut delivery =
            transaction.prepare_cached("INSERT INTO delivery VALUES (?1, ?2, ?3, 0, ?4, 0, ?5, ?1, NULL)")?;
        for id in from..from + BATCH {
            body.execute(params![id, &messages::body(id.unsigned_abs())[..]])?;
            delivery.execute(params![id, id % 16, id, id, "{\"method\":\"POST\"}"])?;
        }
    }
    transaction.commit()
}

fn settle(connection: &mut Connection, from: i64) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    {
        let mut delivery =
            transaction.prepare_cached("UPDATE delivery SET status = 2, attempts = 1, ended = ?2 WHERE id = ?1")?;
        let mut attempt = transaction.prepare_cached("INSERT INTO attempt VALUES (?1, 1, ?2, 200, ?3)")?;
        for id in from..from + BATCH {
            delivery.execute(params![id, id])?;
            attempt.execute(params![id, id, "{\"content-type\":\"application/json\"}"])?;
        }
    }
    transaction.commit()
}

fn failed(error: rusqlite::Error) -> Failure {
    Failure::new(format!("bare SQLite: {error}"))
}
