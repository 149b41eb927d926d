//! What survives a crash: the data of a memory store, or the file of an SQLite one.

use std::sync::Arc;

use postrider_store::{MemoryStore, Store, StoreLimits};

use crate::plan::StoreKind;

pub enum Disk {
    Memory(MemoryStore),
}

impl Disk {
    pub fn new(kind: StoreKind) -> Result<Disk, String> {
        match kind {
            StoreKind::Memory => Ok(Disk::Memory(MemoryStore::new(StoreLimits::default()))),
            StoreKind::Sqlite => Err("the SQLite store is not there yet".to_owned()),
        }
    }

    /// Opens the store as a new process does: every former lease has ended.
    pub fn open(&self) -> Result<Arc<dyn Store>, String> {
        match self {
            Disk::Memory(store) => Ok(Arc::new(store.reopen())),
        }
    }
}
