//! The suite over a real file and over the inline mode; what only this store can get wrong has its own files beside.

mod durability;
mod opening;
mod plans;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use tempfile::TempDir;

use super::{SqliteOptions, SqliteStore};
use crate::conformance::TestStore;
use crate::{Store, StoreLimits};

/// A store in a directory of its own.
pub(super) struct InFile {
    pub directory: TempDir,
    options: SqliteOptions,
    inline: bool,
    store: Option<Arc<SqliteStore>>,
}

impl InFile {
    pub fn new(limits: StoreLimits, inline: bool) -> Self {
        let options = SqliteOptions { limits, free_bytes_min: 0 };
        let mut made = InFile { directory: TempDir::new().unwrap(), options, inline, store: None };
        made.open();
        made
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("store.db")
    }

    pub fn sqlite(&self) -> Arc<SqliteStore> {
        Arc::clone(self.store.as_ref().unwrap())
    }

    fn open(&mut self) {
        let store = if self.inline {
            SqliteStore::open_inline(Some(&self.path()), self.options)
        } else {
            SqliteStore::open(&self.path(), self.options)
        };
        self.store = Some(Arc::new(store.unwrap()));
    }
}

#[async_trait]
impl TestStore for InFile {
    fn store(&self) -> Arc<dyn Store> {
        self.sqlite()
    }

    async fn reopen(&mut self) {
        // Cases may still hold the former one.
        self.sqlite().abandon();
        self.open();
    }
}

mod in_a_file {
    use super::*;

    async fn make_store(limits: StoreLimits) -> InFile {
        InFile::new(limits, false)
    }

    crate::conformance_suite!(make_store);
}

mod inline {
    use super::*;

    async fn make_store(limits: StoreLimits) -> InFile {
        InFile::new(limits, true)
    }

    crate::conformance_suite!(make_store);
}
