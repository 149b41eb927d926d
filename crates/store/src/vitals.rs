//! What a store tells about itself from memory or with one system call, for health and metrics. It must not hold up the writer.

use postrider_core::readiness::Room;

/// Every answer has a default, so that a store which keeps no such figures need not speak of them.
pub trait StoreVitals: Send + Sync {
    /// How much room there is on the disk below it.
    fn room(&self) -> Room {
        Room::Elsewhere
    }
}
