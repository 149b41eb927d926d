//! The store that rows are moved to: one connection to PostgreSQL, on which a batch is copied in and noted in one transaction.

use std::pin::pin;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

use super::cell::{self, Cell};
use super::shape::Shape;
use super::state::{MARK, State};
use crate::postgres::{reach_back, told, way_in};
use crate::{Database, StoreError};

/// Whoever moves into a schema has this lock, with the schema's name.
const LOCK: i32 = 0x6d6f_7665;
/// The connection of a move that was killed ends at once, but for a moment.
const LOCK_TRIES_MAX: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(250);
/// Rows between two notes of how far the reading back is.
const TOLD_EVERY_ROWS: u64 = 2000;

pub(super) struct Target {
    client: Client,
    database: Database,
}

impl Target {
    /// With its schema up to date. Another move into it is refused until this is dropped.
    pub async fn open(database: &Database) -> Result<Self, StoreError> {
        let target = Target { client: way_in(database).await?, database: database.clone() };
        target.lock().await?;
        Ok(target)
    }

    async fn lock(&self) -> Result<(), StoreError> {
        for _ in 0..LOCK_TRIES_MAX {
            let sql = "SELECT pg_try_advisory_lock($1, hashtext(current_schema()))";
            if self.client.query_one(sql, &[&LOCK]).await.map_err(told)?.get(0) {
                return Ok(());
            }
            tokio::time::sleep(LOCK_PAUSE).await;
        }
        Err(StoreError::Conflict(format!("another move into the {} is under way", self.database.shown())))
    }

    pub const fn database(&self) -> &Database {
        &self.database
    }

    /// Each with its type, but for those that are computed.
    pub async fn columns(&self, table: &str) -> Result<Vec<(String, String)>, StoreError> {
        let sql = "SELECT attname::text, format_type(atttypid, NULL) FROM pg_attribute \
             WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum";
        let rows = self.client.query(sql, &[&table]).await.map_err(told)?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    /// # Errors
    /// `Conflict`, with the tables that have rows.
    pub async fn require_empty(&self, shapes: &[Shape]) -> Result<(), StoreError> {
        let mut filled = Vec::new();
        for shape in shapes {
            let sql = format!("SELECT EXISTS (SELECT 1 FROM {})", shape.table.name);
            if self.client.query_one(&sql, &[]).await.map_err(told)?.get(0) {
                filled.push(shape.table.name);
            }
        }
        if filled.is_empty() {
            return Ok(());
        }
        Err(StoreError::Conflict(format!(
            "the {} is not empty (there are rows in {}): a store is moved into an empty one; name another database or `schema`",
            self.database.shown(),
            filled.join(", ")
        )))
    }

    pub async fn fresh_id(&self) -> Result<String, StoreError> {
        Ok(self.client.query_one("SELECT gen_random_uuid()::text", &[]).await.map_err(told)?.get(0))
    }

    /// `None`: no move has begun here.
    pub async fn state(&self) -> Result<Option<State>, StoreError> {
        let sql = "SELECT value FROM value WHERE name = $1";
        let Some(row) = self.client.query_opt(sql, &[&MARK]).await.map_err(told)? else { return Ok(None) };
        let unreadable = |error| StoreError::Corrupt(format!("the value `{MARK}` of the target: {error}"));
        serde_json::from_str(row.get(0)).map(Some).map_err(unreadable)
    }

    pub async fn begin(&self, state: &State) -> Result<(), StoreError> {
        let sql = "INSERT INTO value (name, value) VALUES ($1, $2)";
        self.client.execute(sql, &[&MARK, &written(state)?]).await.map_err(told)?;
        Ok(())
    }

    pub async fn write_state(&self, state: &State) -> Result<(), StoreError> {
        let sql = "UPDATE value SET value = $2 WHERE name = $1";
        match self.client.execute(sql, &[&MARK, &written(state)?]).await.map_err(told)? {
            1 => Ok(()),
            _ => Err(StoreError::Conflict("somebody else has ended this move".to_owned())),
        }
    }

    /// These rows, and that they are there.
    pub async fn add(&mut self, shape: &Shape, rows: &[Vec<Cell>], state: &State) -> Result<(), StoreError> {
        self.client.batch_execute("BEGIN").await.map_err(told)?;
        let added = self.add_in(shape, rows, state).await;
        if added.is_err() {
            // The connection may be gone as well; then it is rolled back anyway.
            let _ = self.client.batch_execute("ROLLBACK").await;
            return added;
        }
        self.client.batch_execute("COMMIT").await.map_err(told)
    }

    async fn add_in(&self, shape: &Shape, rows: &[Vec<Cell>], state: &State) -> Result<(), StoreError> {
        if !rows.is_empty() {
            let sql = format!("COPY {} ({}) FROM STDIN (FORMAT binary)", shape.table.name, shape.names());
            let types: Vec<Type> = shape.columns.iter().map(|column| column.kind.sql_type()).collect();
            let sink = self.client.copy_in(&sql).await.map_err(told)?;
            let mut writer = pin!(BinaryCopyInWriter::new(sink, &types));
            for row in rows {
                let cells: Vec<&(dyn ToSql + Sync)> = row.iter().map(|cell| cell as &(dyn ToSql + Sync)).collect();
                writer.as_mut().write(&cells).await.map_err(told)?;
            }
            writer.finish().await.map_err(told)?;
        }
        self.write_state(state).await
    }

    /// The log has a partition for every day from this time on.
    pub async fn reach_back(&mut self, oldest_end: i64) -> Result<(), StoreError> {
        reach_back(&mut self.client, oldest_end).await
    }

    /// The number that the next message of a topic gets.
    pub async fn set_next_sequence(&self, next: i64) -> Result<(), StoreError> {
        let sql = "SELECT setval(pg_get_serial_sequence('topic_message', 'sequence'), $1, false)";
        self.client.query_one(sql, &[&next]).await.map_err(told)?;
        Ok(())
    }

    /// How many rows there are, and what they add up to.
    pub async fn sum(&self, shape: &Shape, tell: &mut (dyn FnMut(u64) + Send)) -> Result<(u64, u128), StoreError> {
        let sql = format!("SELECT {} FROM {} WHERE {}", shape.names(), shape.table.name, shape.table.only);
        let none: [&(dyn ToSql + Sync); 0] = [];
        let mut rows = pin!(self.client.query_raw(&sql, none).await.map_err(told)?);
        let (mut count, mut sum) = (0_u64, 0_u128);
        while let Some(row) = rows.try_next().await.map_err(told)? {
            sum = sum.wrapping_add(cell::hash(&cells(&row)?));
            count += 1;
            if count.is_multiple_of(TOLD_EVERY_ROWS) {
                tell(count);
            }
        }
        tell(count);
        Ok((count, sum))
    }

    /// Plans that were made for empty tables are of no use.
    pub async fn analyze(&self, shapes: &[Shape]) -> Result<(), StoreError> {
        let names: Vec<&str> = shapes.iter().map(|shape| shape.table.name).collect();
        self.client.batch_execute(&format!("ANALYZE {}", names.join(", "))).await.map_err(told)
    }

    /// Servers may open it.
    pub async fn end(&mut self) -> Result<(), StoreError> {
        let transaction = self.client.transaction().await.map_err(told)?;
        transaction.execute("DELETE FROM value WHERE name = $1", &[&MARK]).await.map_err(told)?;
        transaction.execute("UPDATE version SET configuration = configuration + 1", &[]).await.map_err(told)?;
        transaction.commit().await.map_err(told)
    }
}

fn cells(row: &Row) -> Result<Vec<Cell>, StoreError> {
    (0..row.len()).map(|index| row.try_get(index).map_err(told)).collect()
}

fn written(state: &State) -> Result<String, StoreError> {
    serde_json::to_string(state).map_err(|error| StoreError::Corrupt(error.to_string()))
}
