//! What can be said of a store without opening it as one: another process may have it, or nobody.
//!
//! It must not change anything, and it judges nothing.

use std::path::Path;

use postrider_core::connection::Connection;
use postrider_core::endpoint::EndpointState;
use postrider_core::id::{ConnectionId, ProjectId};
use postrider_core::readiness::Room;
use postrider_core::security::SecurityDefinition;
use postrider_core::topic::TopicName;

use super::backup::{damage, reader, schema_version};
use super::disk::{Space, beside};
use super::{SqliteOptions, endpoints, events, lookups, rows, schema, security};
use crate::{QueueSummary, StoreError};

#[derive(Clone, Debug)]
pub struct Inspected {
    pub schema_version: i64,
    /// The version that this program reads and writes.
    pub schema_expected: i64,
    /// What `PRAGMA quick_check` found, at most a few lines; empty: nothing is wrong.
    pub damage: Vec<String>,
    pub database_bytes: u64,
    pub wal_bytes: u64,
    pub room: Room,
    /// `None` where another version wrote it, or it is damaged.
    pub contents: Option<Contents>,
}

#[derive(Clone, Debug)]
pub struct Contents {
    pub definitions: Vec<SecurityDefinition>,
    /// Each with its queue.
    pub connections: Vec<(Connection, QueueSummary)>,
    /// How each webhook endpoint stands.
    pub endpoints: Vec<(ConnectionId, EndpointState)>,
    /// Topics that nobody subscribes to.
    pub unread_topics: Vec<String>,
}

/// # Errors
/// `Unavailable` when it cannot be read, `Corrupt` when it is no store or a row cannot be read.
pub fn inspect(database: &Path) -> Result<Inspected, StoreError> {
    let connection = reader(database)?;
    let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
    let inspected = Inspected {
        schema_version: schema_version(&connection)?,
        schema_expected: schema::newest(),
        damage: damage(&connection, "quick_check")?,
        database_bytes: bytes(database),
        wal_bytes: bytes(&beside(database, "-wal")),
        room: Space::below(database, SqliteOptions::default().free_bytes_min).room(),
        contents: None,
    };
    // What another version wrote cannot be read by this one's words.
    if inspected.schema_version != inspected.schema_expected || !inspected.damage.is_empty() {
        return Ok(inspected);
    }
    Ok(Inspected { contents: Some(contents(&connection)?), ..inspected })
}

fn contents(connection: &rusqlite::Connection) -> Result<Contents, StoreError> {
    let sql = format!("SELECT {} FROM connection ORDER BY name", rows::CONNECTION);
    let known = rows::read_all(connection, &sql, &[], rows::read_connection)?;
    let with_queue = |known: Connection| {
        let queue = lookups::queue_summary(connection, known.id)?;
        Ok::<_, StoreError>((known, queue))
    };
    let connections = known.into_iter().map(with_queue).collect::<Result<_, _>>()?;
    let sql = format!("SELECT {} FROM endpoint ORDER BY id", endpoints::COLUMNS);
    let endpoints = rows::read_all(connection, &sql, &[], endpoints::read)?;
    let endpoints = endpoints.into_iter().map(|row| (row.id, row.state)).collect();
    let unread_topics = unread_topics(connection)?;
    Ok(Contents { definitions: security::all(connection)?, connections, endpoints, unread_topics })
}

/// Neither by somebody who pulls nor by a subscription that pushes.
fn unread_topics(connection: &rusqlite::Connection) -> Result<Vec<String>, StoreError> {
    let sql = "SELECT project_id, name FROM topic WHERE NOT EXISTS (SELECT 1 FROM subscription WHERE topic_id = topic.id) \
               ORDER BY name";
    let unpulled = rows::read_all(connection, sql, &[], |row| {
        let mut at = rows::Columns { row, next: 0 };
        Ok((ProjectId::from_u128(at.id()?), at.take::<String>()?))
    })?;
    let pushing = events::all_push(connection)?;
    let is_pushed = |project_id: ProjectId, name: &str| {
        TopicName::new(name).is_ok_and(|name| {
            pushing.iter().any(|subscription| subscription.project_id == project_id && subscription.selects(&name))
        })
    };
    Ok(unpulled.into_iter().filter(|(project, name)| !is_pushed(*project, name)).map(|(_, name)| name).collect())
}
