//! A copy of a store in one file, while it is open elsewhere or not (D08).
//!
//! The copy is of one instant: a read transaction holds the snapshot, pages are copied in short steps, and the writer never waits for it. The WAL
//! grows meanwhile by what is written. It must not change the file that it reads.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::disk::{FileLock, beside, for_owner};
use crate::StoreError;

/// 1 MiB a step.
const STEP_PAGES: i32 = 256;
/// Between two steps, so that the disk is there for others too.
const BREATH: Duration = Duration::from_millis(2);
/// What was copied goes to the disk this often, and not all at once in the end.
const SYNC_EVERY_STEPS: u32 = 16;
const BUSY: Duration = Duration::from_secs(30);

/// What must be the same in both files.
const COUNTED: [&str; 8] =
    ["project", "connection", "security", "delivery", "delivery_log", "attempt", "topic_message", "audit"];

/// How far a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub pages: u64,
    pub pages_total: u64,
}

/// A copy that was read back and found whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    pub bytes: u64,
    /// Rows, by table.
    pub rows: Vec<(&'static str, u64)>,
}

/// Copies the store `from` to the new file `to`, and reads the copy back: its structure, and as many rows as the source had at that instant. `to` is on
/// disk when this returns; a copy that fails is not there.
///
/// # Errors
/// `Unavailable` when `from` cannot be read or `to` cannot be written, or is there already; `Corrupt` when the source is no store or the copy is not
/// what was read.
pub fn copy(from: &Path, to: &Path, told: &mut dyn FnMut(Progress)) -> Result<Copied, StoreError> {
    let source = reader(from)?;
    if schema_version(&source)? == 0 {
        return Err(StoreError::Corrupt(format!("`{}` is no store", from.display())));
    }
    // Under another name until it is whole, and never over what is there.
    let partial = Partial::begin(to)?;
    let rows = copy_into(&source, &partial.path, told)?;
    let bytes = std::fs::metadata(&partial.path).map_err(|error| unwritten(&partial.path, &error))?.len();
    std::fs::rename(&partial.path, to).map_err(|error| unwritten(to, &error))?;
    sync_directory(to)?;
    Ok(Copied { bytes, rows })
}

/// A copy that has not got its name yet. One at a time; what an earlier one left that was cut off is replaced.
struct Partial {
    path: PathBuf,
    lock: PathBuf,
    _alone: FileLock,
}

impl Partial {
    fn begin(to: &Path) -> Result<Self, StoreError> {
        let path = beside(to, ".partial");
        let lock = beside(&path, ".lock");
        let alone = FileLock::of(&lock).map_err(|error| unwritten(&path, &error))?;
        let Some(alone) = alone else {
            return Err(StoreError::Unavailable(format!("`{}` is being written by another copy", to.display())));
        };
        let partial = Partial { path, lock, _alone: alone };
        // Nobody else can make it any more.
        if to.exists() {
            return Err(unwritten(to, &std::io::ErrorKind::AlreadyExists.into()));
        }
        let _ = std::fs::remove_file(&partial.path);
        let made = for_owner().write(true).create_new(true).open(&partial.path);
        made.map_err(|error| unwritten(&partial.path, &error))?;
        Ok(partial)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_file(&self.lock);
    }
}

/// Where a store is made from a copy: under another name until it may be opened. No server opens the place meanwhile, and what an earlier
/// one left that was cut off is removed.
pub struct Place {
    database: PathBuf,
    unnamed: PathBuf,
    _alone: FileLock,
}

impl Place {
    /// # Errors
    /// `Unavailable` when the place is in use, has a store, or cannot be written.
    pub fn take(database: &Path) -> Result<Place, StoreError> {
        let alone = FileLock::take(database)?;
        if database.exists() {
            return Err(unwritten(database, &std::io::ErrorKind::AlreadyExists.into()));
        }
        let place = Place { database: database.to_owned(), unnamed: beside(database, ".restoring"), _alone: alone };
        place.clear();
        Ok(place)
    }

    /// For the store, until it is closed.
    pub fn unnamed(&self) -> &Path {
        &self.unnamed
    }

    /// Gives it its name, on disk when this returns.
    ///
    /// # Errors
    /// `Unavailable` when the place cannot be written.
    pub fn name(self) -> Result<(), StoreError> {
        std::fs::rename(&self.unnamed, &self.database).map_err(|error| unwritten(&self.database, &error))?;
        sync_directory(&self.database)
    }

    fn clear(&self) {
        for ending in ["", "-wal", "-shm", ".lock"] {
            let _ = std::fs::remove_file(beside(&self.unnamed, ending));
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.clear();
        if !self.database.exists() {
            let _ = std::fs::remove_file(beside(&self.database, ".lock"));
        }
    }
}

/// So that the name outlives a crash too.
fn sync_directory(file: &Path) -> Result<(), StoreError> {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(|error| unwritten(file, &error))
}

fn copy_into(
    source: &Connection,
    to: &Path,
    told: &mut dyn FnMut(Progress),
) -> Result<Vec<(&'static str, u64)>, StoreError> {
    // The snapshot: from the first read on, and until it is let go.
    source.execute_batch("BEGIN")?;
    let wanted = counts(source)?;
    let mut copy = Connection::open(to)?;
    copy.execute_batch("PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF;")?;
    let synced = File::options().write(true).open(to).map_err(|error| unwritten(to, &error))?;
    {
        let backup = Backup::new(source, &mut copy)?;
        for step in 1u32.. {
            let result = backup.step(STEP_PAGES)?;
            let now = backup.progress();
            let (total, left) = (u64::try_from(now.pagecount).unwrap_or(0), u64::try_from(now.remaining).unwrap_or(0));
            told(Progress { pages: total.saturating_sub(left), pages_total: total });
            if result == StepResult::Done {
                break;
            }
            if step.is_multiple_of(SYNC_EVERY_STEPS) {
                synced.sync_data().map_err(|error| unwritten(to, &error))?;
            }
            // Nobody wakes it, and waking early would do no harm.
            std::thread::park_timeout(BREATH);
        }
    }
    source.execute_batch("COMMIT")?;
    // A file of its own: no WAL beside it.
    copy.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))?;
    drop(copy);
    synced.sync_all().map_err(|error| unwritten(to, &error))?;
    verify(to, &wanted)?;
    Ok(wanted)
}

fn verify(copy: &Path, wanted: &[(&'static str, u64)]) -> Result<(), StoreError> {
    let copied = reader(copy)?;
    let damage = damage(&copied, "integrity_check")?;
    if !damage.is_empty() {
        return Err(StoreError::Corrupt(format!("the copy is damaged: {}", damage.join("; "))));
    }
    let found = counts(&copied)?;
    if found != wanted {
        return Err(StoreError::Corrupt(format!("the copy has {found:?} rows and not {wanted:?}")));
    }
    Ok(())
}

/// Beside whoever has the store, and without a change to it.
pub(super) fn reader(database: &Path) -> Result<Connection, StoreError> {
    if !database.is_file() {
        return Err(StoreError::Unavailable(format!("there is no file `{}`", database.display())));
    }
    let named = |error: rusqlite::Error| match StoreError::from(error) {
        StoreError::Corrupt(why) => StoreError::Corrupt(format!("`{}` is no store: {why}", database.display())),
        StoreError::Unavailable(why) => {
            StoreError::Unavailable(format!("`{}` cannot be read: {why}", database.display()))
        }
        other => StoreError::Unavailable(format!("`{}` cannot be read: {other}", database.display())),
    };
    // Reading beside a writer needs its shared memory, hence not read-only; `query_only` keeps the rows as they are.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags).map_err(named)?;
    connection.busy_timeout(BUSY).map_err(named)?;
    connection.execute_batch("PRAGMA query_only = ON;").map_err(named)?;
    let ours = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'delivery_log')";
    if !connection.query_row(ours, [], |row| row.get::<_, bool>(0)).map_err(named)? {
        return Err(StoreError::Corrupt(format!("`{}` is no store", database.display())));
    }
    Ok(connection)
}

pub(super) fn schema_version(connection: &Connection) -> Result<i64, StoreError> {
    Ok(connection.query_row("PRAGMA user_version", [], |row| row.get(0))?)
}

fn counts(connection: &Connection) -> Result<Vec<(&'static str, u64)>, StoreError> {
    let count = |table: &'static str| {
        let count: i64 = connection.query_row(&format!("SELECT COUNT(*) FROM {table}"), [], |row| row.get(0))?;
        Ok((table, u64::try_from(count).unwrap_or(0)))
    };
    COUNTED.into_iter().map(count).collect()
}

/// What a check of the whole file finds, at most a few lines; empty: nothing.
pub(super) fn damage(connection: &Connection, pragma: &str) -> Result<Vec<String>, StoreError> {
    let mut statement = connection.prepare(&format!("PRAGMA {pragma}(10)"))?;
    let lines = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    Ok(if lines == ["ok"] { Vec::new() } else { lines })
}

fn unwritten(to: &Path, error: &std::io::Error) -> StoreError {
    match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            StoreError::Unavailable(format!("`{}` is there already, and is not written over", to.display()))
        }
        _ => StoreError::Unavailable(format!("`{}` cannot be written: {error}", to.display())),
    }
}
