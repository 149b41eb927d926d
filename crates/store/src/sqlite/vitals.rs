//! What the store tells about itself without asking the writer. It must not read any table.

use std::path::Path;

use postrider_core::readiness::Room;

use super::SqliteStore;
use super::disk::beside;
use crate::{StoreFigures, StoreVitals};

impl StoreVitals for SqliteStore {
    fn room(&self) -> Room {
        self.space.room()
    }

    fn figures(&self) -> Option<StoreFigures> {
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
        let database = self.database.as_deref()?;
        Some(StoreFigures {
            commit_micros: self.counters.commit_micros.read(),
            commit_rows: self.counters.commit_rows.read(),
            wal_bytes: size(&beside(database, "-wal")),
            file_bytes: size(database),
        })
    }
}
