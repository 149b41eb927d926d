//! A place for one message at a time: its socket, if one is open, and the pause that it still has to make.
//!
//! It must not know what is sent.

use std::pin::Pin;

use postrider_core::Wait;
use tokio::time::Sleep;

use super::exchange::Socket;

#[derive(Default)]
pub(super) struct Lane {
    pub(super) socket: Option<Socket>,
    pause: Option<Pin<Box<Sleep>>>,
}

impl Lane {
    /// Waits for what is left of the last pause.
    pub(super) async fn rest(&mut self) {
        if let Some(pause) = self.pause.take() {
            pause.await;
        }
    }

    /// The next message goes out after this long.
    pub(super) fn pause(&mut self, gap: Wait) {
        self.pause = (gap > Wait::ZERO).then(|| Box::pin(tokio::time::sleep(gap.as_duration())));
    }
}
