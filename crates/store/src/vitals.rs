//! What a store tells about itself from memory or with one system call, for health and metrics. It must not hold up the writer.

use postrider_core::readiness::Room;

use crate::HistogramFigures;

/// Every answer has a default, so that a store which keeps no such figures need not speak of them.
pub trait StoreVitals: Send + Sync {
    /// How much room there is on the disk below it.
    fn room(&self) -> Room {
        Room::Elsewhere
    }

    /// What its writer and its files are like; `None` for a store that keeps no such figures.
    fn figures(&self) -> Option<StoreFigures> {
        None
    }
}

/// For metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreFigures {
    /// How long transactions took that changed something, in microseconds.
    pub commit_micros: HistogramFigures,
    /// How many rows each of them brought together.
    pub commit_rows: HistogramFigures,
    pub wal_bytes: u64,
    pub file_bytes: u64,
}
