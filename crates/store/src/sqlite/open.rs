//! Opening the file: connections with the settings that durability rests on. It must not know what is in the tables.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension as _};

use super::disk::{FileLock, make_for_owner};
use super::schema;
use crate::StoreError;
use crate::moving::MARK;

/// Only a checkpoint that cuts the WAL ever holds the writer up, and shortly.
const BUSY: Duration = Duration::from_secs(5);

fn named(database: &Path) -> impl Fn(rusqlite::Error) -> StoreError {
    move |error| match StoreError::from(error) {
        StoreError::Corrupt(why) => {
            StoreError::Corrupt(format!("`{}` is no store, or is damaged: {why}", database.display()))
        }
        StoreError::Unavailable(why) => {
            StoreError::Unavailable(format!("the store `{}` cannot be opened: {why}", database.display()))
        }
        other => other,
    }
}

/// Whatever goes wrong before the store is open is told with the file's name.
pub(super) fn opening(database: &Path) -> impl Fn(StoreError) -> StoreError {
    let name = database.display().to_string();
    move |error| match error {
        StoreError::Unavailable(why) if why.contains(&name) => StoreError::Unavailable(why),
        StoreError::Corrupt(why) if why.contains(&name) => StoreError::Corrupt(why),
        StoreError::Unavailable(why) => StoreError::Unavailable(format!("the store `{name}` cannot be opened: {why}")),
        StoreError::Corrupt(why) => StoreError::Corrupt(format!("the store `{name}` is damaged: {why}")),
        other => StoreError::Unavailable(format!("the store `{name}` cannot be opened: {other}")),
    }
}

/// A database with tables and none of ours belongs to another program, and is left as it is.
fn refuse_foreign(connection: &Connection, database: &Path) -> Result<(), StoreError> {
    let sql = "SELECT COUNT(*), COALESCE(SUM(name = 'delivery_log'), 0) FROM sqlite_schema";
    let (any, ours): (i64, i64) =
        connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).map_err(named(database))?;
    if any > 0 && ours == 0 {
        let name = database.display();
        return Err(StoreError::Corrupt(format!("`{name}` is no store: it is the database of another program")));
    }
    Ok(())
}

/// The connection that writes: WAL, and every commit on disk before it returns.
pub(super) fn writer(database: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    make_for_owner(database);
    let connection = Connection::open_with_flags(database, flags).map_err(named(database))?;
    connection.busy_timeout(BUSY)?;
    refuse_foreign(&connection, database)?;
    let mode: String =
        connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(named(database))?;
    if !mode.eq_ignore_ascii_case("wal") {
        return Err(StoreError::Unavailable(format!(
            "the store `{}` cannot use a write-ahead log (its journal mode is `{mode}`): is it on a network file system?",
            database.display()
        )));
    }
    // Checkpoints have a thread of their own. 16 MiB of cache for the hot pages; the system keeps the rest of the file in its own.
    connection
        .execute_batch(
            "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY; \
             PRAGMA foreign_keys = OFF;",
        )
        .map_err(named(database))?;
    Ok(connection)
}

pub(super) fn reader(database: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags).map_err(named(database))?;
    connection.busy_timeout(BUSY)?;
    connection.execute_batch("PRAGMA query_only = ON; PRAGMA cache_size = -4096; PRAGMA temp_store = MEMORY;")?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// The checkpointer's: it copies pages and needs none of its own.
pub(super) fn checkpointer(database: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags).map_err(named(database))?;
    connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;")?;
    Ok(connection)
}

/// For the simulator: in memory, or a file that survives a crash of the process but not of the machine.
pub(super) fn inline(database: Option<&Path>) -> Result<Connection, StoreError> {
    let Some(database) = database else { return Ok(Connection::open_in_memory()?) };
    let connection = writer(database)?;
    connection.execute_batch("PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 1000;")?;
    Ok(connection)
}

/// A store that nobody else has, with its schema up to date and no lease left, for whoever wants its rows and not its verbs.
pub(crate) struct Alone {
    pub connection: Connection,
    _lock: FileLock,
}

impl Alone {
    /// # Errors
    /// `Unavailable` when it is not there, a server has it, or a newer one wrote it; `Corrupt` when it is no store.
    pub fn open(database: &Path) -> Result<Self, StoreError> {
        if !database.is_file() {
            return Err(StoreError::Unavailable(format!("there is no file `{}`", database.display())));
        }
        Alone::open_file(database).map_err(opening(database))
    }

    fn open_file(database: &Path) -> Result<Self, StoreError> {
        let lock = FileLock::take(database)?;
        let connection = writer(database)?;
        schema::migrate(&connection)?;
        connection.execute_batch("BEGIN IMMEDIATE; UPDATE queue SET owner = NULL; DELETE FROM worker; COMMIT;")?;
        Ok(Alone { connection, _lock: lock })
    }
}

/// Whoever serves a store that is being moved makes it another one: the move does not go on from it. One that was moved is not served any
/// more, since two live copies would deliver everything twice (D08).
pub(super) fn leave_move(connection: &Connection) -> Result<(), StoreError> {
    let sql = "SELECT value ->> 'state' = 'moved', value ->> 'to' FROM value WHERE name = ?1";
    let found: Option<(bool, String)> =
        connection.query_row(sql, [MARK], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    match found {
        Some((true, to)) => Err(StoreError::Unavailable(format!(
            "it was moved to the {to}, and two live copies would deliver everything twice: serve that one; to use this one again all the same, \
             run `postrider migrate --take-back` first"
        ))),
        Some((false, _)) => {
            connection.execute("DELETE FROM value WHERE name = ?1", [MARK])?;
            Ok(())
        }
        None => Ok(()),
    }
}
