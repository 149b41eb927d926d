//! What survives a crash: the data of a memory store, or the file of an SQLite one.

use std::path::PathBuf;
use std::sync::Arc;

use postrider_store::{MemoryStore, SqliteOptions, SqliteStore, Store, StoreLimits};
use tempfile::TempDir;

use crate::plan::StoreKind;

pub enum Disk {
    Memory(MemoryStore),
    Sqlite { file: PathBuf, _removed_with: TempDir },
}

impl Disk {
    pub fn new(kind: StoreKind) -> Result<Disk, String> {
        match kind {
            StoreKind::Memory => Ok(Disk::Memory(MemoryStore::new(StoreLimits::default()))),
            StoreKind::Sqlite => {
                let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
                Ok(Disk::Sqlite { file: directory.path().join("store.db"), _removed_with: directory })
            }
        }
    }

    /// Opens the store as a new process does: every former lease has ended. The former store must be gone.
    pub fn open(&self) -> Result<Arc<dyn Store>, String> {
        match self {
            Disk::Memory(store) => Ok(Arc::new(store.reopen())),
            Disk::Sqlite { file, .. } => {
                // The host's own disk is none of a run's business.
                let options = SqliteOptions { free_bytes_min: 0, ..SqliteOptions::default() };
                let store = SqliteStore::open_inline(Some(file), options).map_err(|error| error.to_string())?;
                Ok(Arc::new(store))
            }
        }
    }
}
