//! The store that is moved: a SQLite file that nobody else has open. Its rows are read, and only its mark is written.

use std::path::Path;

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, params_from_iter};

use super::cell::Cell;
use super::shape::Shape;
use super::state::{MARK, Mark};
use crate::StoreError;
use crate::sqlite::Alone;

pub(super) struct Source {
    alone: Alone,
}

/// Rows that were read.
pub(super) struct Batch {
    pub rows: Vec<Vec<Cell>>,
    /// Where the next one begins; `None`: there is no more.
    pub cursor: Option<String>,
}

impl Source {
    /// With its schema up to date and no lease left, as a server would find it. Nobody else opens it until this is dropped.
    pub fn open(database: &Path) -> Result<Self, StoreError> {
        Ok(Source { alone: Alone::open(database)? })
    }

    const fn connection(&self) -> &Connection {
        &self.alone.connection
    }

    pub fn mark(&self) -> Result<Option<Mark>, StoreError> {
        let sql = "SELECT value FROM value WHERE name = ?1";
        let found: Option<String> = self.connection().query_row(sql, [MARK], |row| row.get(0)).optional()?;
        let read = |text: String| serde_json::from_str(&text);
        found
            .map(read)
            .transpose()
            .map_err(|error| StoreError::Corrupt(format!("the value `{MARK}` of the source: {error}")))
    }

    pub fn set_mark(&self, mark: &Mark) -> Result<(), StoreError> {
        let text = serde_json::to_string(mark).map_err(|error| StoreError::Corrupt(error.to_string()))?;
        self.connection().execute("INSERT OR REPLACE INTO value (name, value) VALUES (?1, ?2)", [MARK, &text])?;
        Ok(())
    }

    pub fn clear_mark(&self) -> Result<(), StoreError> {
        self.connection().execute("DELETE FROM value WHERE name = ?1", [MARK])?;
        Ok(())
    }

    pub fn columns(&self, table: &str) -> Result<Vec<String>, StoreError> {
        self.texts("SELECT name FROM pragma_table_info(?1) ORDER BY cid", table)
    }

    /// What the rows of a table lie in the order of.
    pub fn order(&self, table: &str) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT wr FROM pragma_table_list WHERE schema = 'main' AND name = ?1";
        let without_rowid: Option<bool> = self.connection().query_row(sql, [table], |row| row.get(0)).optional()?;
        match without_rowid {
            Some(false) => Ok(vec!["rowid".to_owned()]),
            Some(true) => self.texts("SELECT name FROM pragma_table_info(?1) WHERE pk > 0 ORDER BY pk", table),
            None => Err(StoreError::Corrupt(format!("the source has no table `{table}`"))),
        }
    }

    fn texts(&self, sql: &str, table: &str) -> Result<Vec<String>, StoreError> {
        let mut statement = self.connection().prepare_cached(sql)?;
        let texts = statement.query_map([table], |row| row.get(0))?.collect::<Result<_, _>>()?;
        Ok(texts)
    }

    pub fn count(&self, shape: &Shape) -> Result<u64, StoreError> {
        let sql = format!("SELECT count(*) FROM {} WHERE {}", shape.table.source, shape.table.only);
        let count: i64 = self.connection().query_row(&sql, [], |row| row.get(0))?;
        Ok(u64::try_from(count).unwrap_or_default())
    }

    /// When the oldest delivery of the log ended, in milliseconds since 1970.
    pub fn oldest_end(&self) -> Result<Option<i64>, StoreError> {
        Ok(self.connection().query_row("SELECT min(ended_at) FROM delivery_log", [], |row| row.get(0))?)
    }

    /// The number that the next message of a topic would get: one that was given is never given again, whether or not its message is there.
    pub fn next_sequence(&self) -> Result<i64, StoreError> {
        let sql = "SELECT seq FROM sqlite_sequence WHERE name = 'topic_message'";
        let last: Option<i64> = self.connection().query_row(sql, [], |row| row.get(0)).optional()?;
        Ok(last.unwrap_or_default().saturating_add(1))
    }

    /// The next rows: at most so many, and no more once they have so many bytes.
    pub fn batch(
        &self,
        shape: &Shape,
        cursor: Option<&str>,
        rows_max: usize,
        bytes_max: usize,
    ) -> Result<Batch, StoreError> {
        let keys = cursor.map(read_cursor).transpose()?.unwrap_or_default();
        let mut statement = self.connection().prepare_cached(&batch_sql(shape, !keys.is_empty(), rows_max))?;
        let mut found = statement.query(params_from_iter(keys))?;
        let (mut rows, mut bytes, mut last) = (Vec::new(), 0, None);
        while let Some(row) = found.next()? {
            let mut cells = Vec::with_capacity(shape.columns.len());
            for (column, index) in shape.columns.iter().zip(shape.order.len()..) {
                let cell = column.kind.read(row.get_ref(index)?).map_err(|what| {
                    let (table, name) = (shape.table.source, &column.name);
                    StoreError::Corrupt(format!("`{name}` of a row of the source's `{table}` is {what}"))
                })?;
                bytes += cell.size();
                cells.push(cell);
            }
            rows.push(cells);
            let is_full = rows.len() == rows_max || bytes >= bytes_max;
            if is_full {
                let keys: Result<Vec<Key>, _> =
                    (0..shape.order.len()).map(|at| Ok(Key::of(row.get_ref(at)?))).collect();
                last = Some(keys.map_err(|error: rusqlite::Error| StoreError::from(error))?);
                break;
            }
        }
        let cursor = last.map(|keys| serde_json::to_string(&keys)).transpose();
        Ok(Batch { rows, cursor: cursor.map_err(|error| StoreError::Corrupt(error.to_string()))? })
    }
}

fn batch_sql(shape: &Shape, has_cursor: bool, rows_max: usize) -> String {
    let order = shape.order.join(", ");
    let expressions: Vec<&str> = shape.columns.iter().map(|column| column.expression.as_str()).collect();
    let behind = if has_cursor {
        let places: Vec<String> = (1..=shape.order.len()).map(|number| format!("?{number}")).collect();
        format!("({order}) > ({})", places.join(", "))
    } else {
        "true".to_owned()
    };
    format!(
        "SELECT {order}, {} FROM {} WHERE {behind} AND {} ORDER BY {order} LIMIT {rows_max}",
        expressions.join(", "),
        shape.table.source,
        shape.table.only
    )
}

/// One column of the last row's key.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum Key {
    Int(i64),
    Text(String),
    Blob(Vec<u8>),
}

impl Key {
    fn of(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Integer(number) => Key::Int(number),
            ValueRef::Text(text) => Key::Text(String::from_utf8_lossy(text).into_owned()),
            ValueRef::Blob(bytes) => Key::Blob(bytes.to_vec()),
            // No key of ours is one.
            ValueRef::Null | ValueRef::Real(_) => Key::Int(0),
        }
    }
}

fn read_cursor(text: &str) -> Result<Vec<Value>, StoreError> {
    let keys: Vec<Key> = serde_json::from_str(text)
        .map_err(|error| StoreError::Corrupt(format!("the note of how far the move is: {error}")))?;
    let value = |key| match key {
        Key::Int(number) => Value::Integer(number),
        Key::Text(text) => Value::Text(text),
        Key::Blob(bytes) => Value::Blob(bytes),
    };
    Ok(keys.into_iter().map(value).collect())
}
