//! A database of many rows for measurements and for looking at plans: made by the database itself, as copies of rows that the store wrote.
//!
//! It must not be part of the product.
#![allow(clippy::unwrap_used, reason = "a measurement fails loudly")]

use postrider_core::connection::Connection;
use postrider_core::delivery::Status;
use tokio_postgres::Client;

use super::partitions::{DAY, reach_back};
use super::{Database, PostgresStore, way_in};
use crate::conformance::fixture::{World, at};

/// How many rows of each kind, over all connections.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Ended, each with a body and one attempt, spread evenly over the days before now.
    pub ended: i64,
    pub days: i64,
    pub waiting: i64,
    pub dead: i64,
    pub connections: usize,
}

/// Rows of one statement.
const PIECE: i64 = 250_000;
/// The number of the world that the rows belong to.
const WORLD: u64 = 900;

/// Fills the store of this database, and tells how far it is. Half of the connections keep order.
pub async fn fill(store: &PostgresStore, database: &Database, sizes: Sizes, told: &mut (dyn FnMut(&str, i64) + Send)) {
    let world = World::named(store, WORLD, "filled").await;
    let mut connections = Vec::new();
    for number in 0..sizes.connections {
        connections.push(world.connection(&format!("filled {number}"), number.is_multiple_of(2)).await);
    }
    templates(&world, &connections[0]).await;
    let mut client = way_in(database).await.unwrap();
    let row = client.query_one("SELECT (extract(epoch FROM now()) * 1000)::bigint", &[]).await.unwrap();
    let began = row.get::<_, i64>(0) - sizes.days * DAY;
    reach_back(&mut client, began).await.unwrap();
    let keys: Vec<String> = connections.iter().map(|one| format!("'{:032x}'::uuid", one.id.as_u128())).collect();
    let filler = Filler { client, queue: format!("(ARRAY[{}])[1 + g % {}]", keys.join(", "), keys.len()) };
    let step = (sizes.days * DAY / sizes.ended.max(1)).max(1);
    for first in (0..sizes.ended).step_by(PIECE as usize) {
        let last = (first + PIECE).min(sizes.ended);
        filler.ended(first, last, began, step).await;
        told("ended", last);
    }
    filler.waiting(sizes.waiting, began).await;
    told("waiting", sizes.waiting);
    filler.dead(sizes.dead, began).await;
    told("dead", sizes.dead);
    filler.count().await;
    filler
        .client
        .batch_execute("ANALYZE delivery, delivery_log, attempt, body, queue, queue_entry, queue_exit")
        .await
        .unwrap();
}

/// One delivered, one dead and one that waits.
async fn templates(world: &World<'_>, connection: &Connection) {
    let stored = world.stored(connection, 3).await;
    let lease = world.owner(connection, 5).await;
    world.attempted(stored[0], lease, Status::Success).await;
    world.attempted(stored[1], lease, Status::Dlq).await;
    world.store.close_worker(lease.worker_id).await.unwrap();
    assert!(world.delivery(stored[2]).await.created_at >= at(0));
}

struct Filler {
    client: Client,
    /// The connection of the row number `g`.
    queue: String,
}

/// An id of this time with the row's number behind it; `kind` tells those of one row apart.
fn id(time: &str, kind: char) -> String {
    format!("(lpad(to_hex({time}), 12, '0') || '{kind}' || lpad(to_hex(g), 19, '0'))::uuid")
}

impl Filler {
    /// `INSERT` of so many copies of the one row of `from`, with these columns changed.
    async fn copies(&self, table: &str, from: &str, numbers: (i64, i64), changed: &[(&str, String)]) {
        let sql = "SELECT attname::text FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped \
             AND attgenerated = '' ORDER BY attnum";
        let columns: Vec<String> =
            self.client.query(sql, &[&table]).await.unwrap().iter().map(|row| row.get(0)).collect();
        let values: Vec<String> = columns
            .iter()
            .map(|column| match changed.iter().find(|(name, _)| name == column) {
                Some((_, expression)) => expression.clone(),
                None => format!("t.{column}"),
            })
            .collect();
        let (first, last) = numbers;
        let sql = format!(
            "INSERT INTO {table} ({}) SELECT {} FROM ({from}) AS t, generate_series({first}::bigint, {}) AS g",
            columns.join(", "),
            values.join(", "),
            last - 1
        );
        self.client.batch_execute(&sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    async fn ended(&self, first: i64, last: i64, began: i64, step: i64) {
        let time = format!("({began} + g * {step})");
        let (delivery, body, numbers) = (id(&time, '1'), id(&time, 'b'), (first, last));
        let log = [
            ("id", delivery.clone()),
            ("connection_id", self.queue.clone()),
            ("created_at", time.clone()),
            ("body_id", body.clone()),
            ("ended_at", format!("{time} + 50")),
        ];
        let template = "SELECT * FROM delivery_log_before ORDER BY ended_at LIMIT 1";
        self.copies("delivery_log", template, numbers, &log).await;
        let bodies = [("id", body), ("uses", "1".to_owned())];
        self.copies("body", "SELECT * FROM body ORDER BY id LIMIT 1", numbers, &bodies).await;
        let attempts = [("delivery_id", delivery), ("started_at", time)];
        self.copies(
            "attempt",
            "SELECT * FROM attempt WHERE number = 1 ORDER BY delivery_id LIMIT 1",
            numbers,
            &attempts,
        )
        .await;
    }

    async fn waiting(&self, rows: i64, began: i64) {
        let time = format!("({began} + g)");
        let (delivery, body) = (id(&time, '2'), id(&time, 'c'));
        let hot = [
            ("id", delivery),
            ("connection_id", self.queue.clone()),
            ("created_at", time.clone()),
            ("due_at", time),
            ("body_id", body.clone()),
            ("position", "1000 + g".to_owned()),
            ("by_due", "g % 2 = 1".to_owned()),
        ];
        let template = "SELECT * FROM delivery WHERE position IS NOT NULL ORDER BY id LIMIT 1";
        self.copies("delivery", template, (0, rows), &hot).await;
        let bodies = [("id", body), ("uses", "1".to_owned())];
        self.copies("body", "SELECT * FROM body ORDER BY id LIMIT 1", (0, rows), &bodies).await;
    }

    async fn dead(&self, rows: i64, began: i64) {
        let time = format!("({began} + g)");
        let (delivery, body) = (id(&time, '3'), id(&time, 'd'));
        let hot = [
            ("id", delivery),
            ("connection_id", self.queue.clone()),
            ("created_at", time.clone()),
            ("dead_at", time),
            ("body_id", body.clone()),
        ];
        let template = "SELECT * FROM delivery WHERE status = 'DLQ' ORDER BY id LIMIT 1";
        self.copies("delivery", template, (0, rows), &hot).await;
        let bodies = [("id", body), ("uses", "1".to_owned())];
        self.copies("body", "SELECT * FROM body ORDER BY id LIMIT 1", (0, rows), &bodies).await;
    }

    /// The queues' own numbers, from what is there now.
    async fn count(&self) {
        let sql = "
            WITH hot AS (SELECT connection_id, count(*) FILTER (WHERE position IS NOT NULL) AS waiting,
                coalesce(sum(body_bytes) FILTER (WHERE position IS NOT NULL), 0) AS bytes,
                count(*) FILTER (WHERE status = 'DLQ') AS dead, count(*) AS all_hot, max(position) AS last FROM delivery GROUP BY 1),
            log AS (SELECT connection_id, count(*) AS ended FROM delivery_log GROUP BY 1),
            entry AS (UPDATE queue_entry AS e SET accepted = coalesce(hot.all_hot, 0) + coalesce(log.ended, 0), entered = coalesce(hot.waiting, 0),
                entered_bytes = coalesce(hot.bytes, 0), next_position = coalesce(hot.last, 0) + 1
                FROM queue LEFT JOIN hot ON hot.connection_id = queue.id LEFT JOIN log ON log.connection_id = queue.id WHERE queue.id = e.id),
            leaving AS (UPDATE queue_exit AS x SET left_count = 0, left_bytes = 0, dead = coalesce(hot.dead, 0)
                FROM queue LEFT JOIN hot ON hot.connection_id = queue.id WHERE queue.id = x.id)
            UPDATE queue SET wanted = EXISTS (SELECT 1 FROM hot WHERE hot.connection_id = queue.id AND hot.waiting > 0)";
        self.client.batch_execute(sql).await.unwrap();
    }
}
