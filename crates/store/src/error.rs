//! Why a store did not do what it was asked; small, for callers to act on.

/// Every variant means: nothing of the call was written, unless it says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Try again later: disk trouble, connection lost, locked.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// A named limit is reached (D07); reading and settling go on.
    #[error("the store is full: limit `{limit}` is reached")]
    Full { limit: &'static str },
    /// The worker's lease has ended; its writes change nothing (law 4).
    #[error("the lease on the queue has ended")]
    LeaseLost,
    /// What was read back cannot be understood; it is never skipped in silence.
    #[error("the store holds something unreadable: {0}")]
    Corrupt(String),
    #[error("{what} is not there")]
    NotFound { what: &'static str },
    /// A name is taken, a version has changed, or the thing is still in use.
    #[error("{0}")]
    Conflict(String),
    #[error("the store is closed")]
    Closed,
}
