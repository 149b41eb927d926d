//! The file around the database: the lock that keeps a second server out, and the free space below it.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use postrider_core::readiness::Room;

use crate::StoreError;

/// Held while the store is open; the kernel frees it when the process ends, however it ends.
#[derive(Debug)]
pub(super) struct FileLock {
    _file: File,
}

impl FileLock {
    /// # Errors
    /// `Unavailable`, with the file's name, when another server has it or the directory cannot be written.
    pub fn take(database: &Path) -> Result<Self, StoreError> {
        let lock = beside(database, ".lock");
        match FileLock::of(&lock) {
            Ok(Some(taken)) => Ok(taken),
            Ok(None) => Err(StoreError::Unavailable(format!(
                "the store `{}` is in use: another server has it (lock `{}`)",
                database.display(),
                lock.display()
            ))),
            Err(error) => {
                Err(StoreError::Unavailable(format!("the store `{}` cannot be locked: {error}", database.display())))
            }
        }
    }

    /// `None`: somebody else has it.
    pub fn of(lock: &Path) -> std::io::Result<Option<Self>> {
        let file = for_owner().create(true).truncate(false).write(true).open(lock)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(FileLock { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// What is made by it may be read by nobody but its owner: there are bodies in it.
pub(super) fn for_owner() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// So that SQLite, which would make it for all to read, finds the file; those beside it are given its mode.
pub(super) fn make_for_owner(database: &Path) {
    // Whatever is wrong with the place, SQLite is told too when it opens it.
    let _ = for_owner().create_new(true).write(true).open(database);
}

/// `name` plus an ending, as SQLite names its own files.
pub(super) fn beside(database: &Path, ending: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// How much space must stay free (`store_free_bytes_min`, D07).
#[derive(Clone, Debug)]
pub(super) struct Space {
    /// `None`: in memory, where there is no disk to fill.
    directory: Option<PathBuf>,
    free_bytes_min: u64,
}

impl Space {
    pub fn below(database: &Path, free_bytes_min: u64) -> Self {
        let directory = match database.parent() {
            Some(parent) if parent.as_os_str().is_empty() => PathBuf::from("."),
            Some(parent) => parent.to_owned(),
            None => PathBuf::from("."),
        };
        Space { directory: Some(directory), free_bytes_min }
    }

    pub fn unlimited() -> Self {
        Space { directory: None, free_bytes_min: 0 }
    }

    /// Intake stops here, so that settlements still find room. One system call; it is made once a batch.
    pub fn check(&self) -> Result<(), StoreError> {
        let Some(directory) = &self.directory else { return Ok(()) };
        if self.free_bytes_min == 0 {
            return Ok(());
        }
        match free_bytes(directory) {
            Ok(free) if free < self.free_bytes_min => Err(StoreError::Full { limit: "store_free_bytes_min" }),
            Ok(_) => Ok(()),
            Err(error) => Err(StoreError::Unavailable(format!("the disk does not say how much is free: {error}"))),
        }
    }

    /// The same as numbers, for health and metrics.
    pub fn room(&self) -> Room {
        match self.directory.as_deref().map(free_bytes) {
            None => Room::Elsewhere,
            Some(Ok(free)) => Room::Bytes { free, min: self.free_bytes_min },
            Some(Err(_)) => Room::Unknown,
        }
    }
}

fn free_bytes(directory: &Path) -> Result<u64, rustix::io::Errno> {
    rustix::fs::statvfs(directory).map(|stat| stat.f_bavail.saturating_mul(stat.f_frsize))
}
