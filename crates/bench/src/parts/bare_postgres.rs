//! The life cycle of a message on PostgreSQL in bare SQL, no store of ours around it: what the database itself gives, 256 messages a transaction.
//!
//! Body and delivery in; out of the hot table into the log, with the attempt. As many connections as the machine has cores, each with its
//! own messages. It must not know our store's tables.

use std::time::{Duration, Instant};

use tokio_postgres::Client;

use crate::failure::Failure;
use crate::messages;
use crate::postgres::{Schema, failed};

/// Messages a transaction.
const BATCH: i64 = 256;
/// The numbers of one connection's messages begin so far from the next one's.
const APART: i64 = 1 << 40;

const SCHEMA: &str = "
CREATE TABLE bare_body (id bigint PRIMARY KEY, bytes bytea NOT NULL);
ALTER TABLE bare_body ALTER COLUMN bytes SET STORAGE EXTERNAL;
CREATE TABLE bare_delivery (id bigint PRIMARY KEY, connection bigint NOT NULL, seq bigint NOT NULL, status bigint NOT NULL,
    due bigint NOT NULL, attempts bigint NOT NULL, head text NOT NULL, body bigint NOT NULL);
CREATE INDEX bare_delivery_due ON bare_delivery (connection, due);
CREATE TABLE bare_log (id bigint PRIMARY KEY, connection bigint NOT NULL, seq bigint NOT NULL, status bigint NOT NULL,
    due bigint NOT NULL, attempts bigint NOT NULL, head text NOT NULL, body bigint NOT NULL, ended bigint NOT NULL);
CREATE INDEX bare_log_by_end ON bare_log (connection, status, ended);
CREATE TABLE bare_attempt (delivery bigint NOT NULL, number bigint NOT NULL, at bigint NOT NULL, status bigint, detail text,
    PRIMARY KEY (delivery, number));";

/// Messages a second.
pub async fn life_cycles_per_second(schema: &Schema, lanes: usize, at_most: Duration) -> Result<f64, Failure> {
    schema.client.batch_execute(SCHEMA).await.map_err(failed)?;
    let began = Instant::now();
    let mut running = Vec::new();
    for lane in (0..).take(lanes) {
        let client = schema.connect().await?;
        running.push(tokio::spawn(run(client, lane * APART, began, at_most)));
    }
    let mut messages = 0;
    for lane in running {
        messages += lane.await.map_err(|error| Failure::new(format!("bare PostgreSQL: {error}")))??;
    }
    Ok(messages as f64 / began.elapsed().as_secs_f64())
}

async fn run(mut client: Client, first: i64, began: Instant, at_most: Duration) -> Result<i64, Failure> {
    let mut next = first;
    while began.elapsed() < at_most {
        insert(&mut client, next).await.map_err(failed)?;
        settle(&mut client, next).await.map_err(failed)?;
        next += BATCH;
    }
    Ok(next - first)
}

async fn insert(client: &mut Client, from: i64) -> Result<(), tokio_postgres::Error> {
    let ids: Vec<i64> = (from..from + BATCH).collect();
    let bodies: Vec<Vec<u8>> = ids.iter().map(|id| messages::body(id.unsigned_abs()).to_vec()).collect();
    let step = client.transaction().await?;
    step.execute("INSERT INTO bare_body SELECT * FROM unnest($1::bigint[], $2::bytea[])", &[&ids, &bodies]).await?;
    let deliveries = "INSERT INTO bare_delivery SELECT id, id % 16, id, 0, id, 0, '{\"method\":\"POST\"}', id FROM unnest($1::bigint[]) AS id";
    step.execute(deliveries, &[&ids]).await?;
    step.commit().await
}

async fn settle(client: &mut Client, from: i64) -> Result<(), tokio_postgres::Error> {
    let ids: Vec<i64> = (from..from + BATCH).collect();
    let step = client.transaction().await?;
    let moved = "WITH gone AS (DELETE FROM bare_delivery WHERE id = ANY($1) RETURNING *) \
         INSERT INTO bare_log SELECT id, connection, seq, 2, due, 1, head, body, id FROM gone";
    step.execute(moved, &[&ids]).await?;
    let attempts = "INSERT INTO bare_attempt SELECT id, 1, id, 200, '{\"content-type\":\"application/json\"}' FROM unnest($1::bigint[]) AS id";
    step.execute(attempts, &[&ids]).await?;
    step.commit().await
}
