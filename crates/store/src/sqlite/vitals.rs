//! What the store tells about itself without asking the writer. It must not read any table.

use postrider_core::readiness::Room;

use super::SqliteStore;
use crate::StoreVitals;

impl StoreVitals for SqliteStore {
    fn room(&self) -> Room {
        self.space.room()
    }
}
