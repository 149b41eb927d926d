//! The sockets that one connection keeps open between attempts.
//!
//! The newest is used first, so that a quiet connection shrinks to few sockets; one that was idle too long is closed before the peer
//! closes it as we write. It must not know how a link is opened.
#![allow(
    clippy::disallowed_methods,
    reason = "how long a socket was idle is between us and the kernel; no decision reads it"
)]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;

/// `L`: a link, or what stands for one.
pub(super) struct Pool<L> {
    idle_timeout: Duration,
    kept: Mutex<Kept<L>>,
}

struct Kept<L> {
    /// The oldest first.
    idle: Vec<Idle<L>>,
    /// A task that closes what is too old is running; it ends when nothing is left.
    reaped: bool,
}

struct Idle<L> {
    link: L,
    since: Instant,
}

impl<L: Send + 'static> Pool<L> {
    pub(super) fn new(idle_timeout: Duration) -> Arc<Self> {
        Arc::new(Pool { idle_timeout, kept: Mutex::new(Kept { idle: Vec::new(), reaped: false }) })
    }

    /// The youngest idle link; what is too old is closed.
    pub(super) fn take(&self) -> Option<L> {
        let mut kept = self.lock();
        let youngest = kept.idle.pop()?;
        if youngest.since.elapsed() < self.idle_timeout {
            return Some(youngest.link);
        }
        // If the youngest is too old, all are.
        let old = std::mem::take(&mut kept.idle);
        drop(kept);
        drop(old);
        None
    }

    pub(super) fn put(self: &Arc<Self>, link: L) {
        let mut kept = self.lock();
        kept.idle.push(Idle { link, since: Instant::now() });
        if !kept.reaped {
            kept.reaped = true;
            drop(kept);
            tokio::spawn(reap(Arc::downgrade(self), self.idle_timeout));
        }
    }

    /// Closes what is too old, and says when the next one will be; `None` when nothing is left.
    fn close_old(&self) -> Option<Instant> {
        let mut kept = self.lock();
        let now = Instant::now();
        let old_count = kept.idle.partition_point(|idle| now.duration_since(idle.since) >= self.idle_timeout);
        let old: Vec<Idle<L>> = kept.idle.drain(..old_count).collect();
        let next = kept.idle.first().map(|oldest| oldest.since + self.idle_timeout);
        kept.reaped = next.is_some();
        drop(kept);
        drop(old);
        next
    }

    fn lock(&self) -> MutexGuard<'_, Kept<L>> {
        // Nothing that can panic runs under the lock.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn reap<L: Send + 'static>(pool: Weak<Pool<L>>, idle_timeout: Duration) {
    tokio::time::sleep(idle_timeout).await;
    while let Some(next) = pool.upgrade().and_then(|pool| pool.close_old()) {
        tokio::time::sleep_until(next).await;
    }
}
