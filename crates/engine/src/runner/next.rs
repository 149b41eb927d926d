//! What a runner does next, and for how long it rests before. It must not know what is attempted, nor in which order.

use std::time::Duration;

use postrider_core::Timestamp;

use super::Exit;
use crate::shared::Shared;

/// What a look at the queue came to.
pub(super) enum Next {
    /// Only an event goes on.
    Event,
    At(Timestamp),
    In(Duration),
    Again,
    Exit(Exit),
}

impl Next {
    /// Rests as long as it says.
    pub async fn rest(self, shared: &Shared) {
        match self {
            Next::In(pause) => tokio::time::sleep(pause).await,
            Next::At(time) => shared.sleep_until(time).await,
            Next::Event => std::future::pending().await,
            Next::Again | Next::Exit(_) => {}
        }
    }
}
