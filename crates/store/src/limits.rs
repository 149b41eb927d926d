//! The limits of a store, by the names that a refusal gives (law 5, D07). It must not know how a store counts.

/// What a queue may hold. A full queue refuses new deliveries; settlements, retries and resends go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreLimits {
    /// Deliveries that wait in one queue.
    pub queue_messages_max: u64,
    /// Bytes of the bodies that wait in one queue.
    pub queue_bytes_max: u64,
}

impl StoreLimits {
    pub const QUEUE_MESSAGES_MAX: &'static str = "queue_messages_max";
    pub const QUEUE_BYTES_MAX: &'static str = "queue_bytes_max";

    /// The limit that one more delivery with `body_bytes` would break, given what waits in the queue already.
    pub const fn broken_by(&self, waiting: u64, waiting_bytes: u64, body_bytes: u64) -> Option<&'static str> {
        if waiting >= self.queue_messages_max {
            return Some(Self::QUEUE_MESSAGES_MAX);
        }
        if waiting_bytes.saturating_add(body_bytes) > self.queue_bytes_max {
            return Some(Self::QUEUE_BYTES_MAX);
        }
        None
    }
}

impl Default for StoreLimits {
    fn default() -> Self {
        StoreLimits { queue_messages_max: 10_000_000, queue_bytes_max: 64 << 30 }
    }
}
