//! A worker whose clock is ahead of everybody's: it takes every queue from its living owner, and dies.
//!
//! What the owner writes after that must change nothing (oracle 3). The thief sends nothing itself.

use std::time::Duration;

use postrider_core::Wait;
use postrider_core::id::WorkerId;
use postrider_engine::Clock as _;

use crate::clock::SimClock;
use crate::oracle::Oracle;

/// Further than any lease reaches.
const AHEAD: Wait = Wait::from_secs(16);

/// Steals at each of these times, counted from now.
pub async fn steal(oracle: &Oracle, clock: &SimClock, times_ms: &[u64]) {
    let mut before_ms = 0;
    for at_ms in times_ms {
        tokio::time::sleep(Duration::from_millis(at_ms.saturating_sub(before_ms))).await;
        before_ms = *at_ms;
        if let Err(error) = steal_once(oracle, clock).await {
            oracle.report(3, format!("queues cannot be taken after their lease has ended: {error}"));
        }
    }
}

async fn steal_once(oracle: &Oracle, clock: &SimClock) -> Result<(), postrider_store::StoreError> {
    let store = oracle.store();
    let later = clock.now() + AHEAD;
    let thief = WorkerId::new(later, u128::from(clock.monotonic().as_millis()));
    store.open_worker(thief, Wait::from_millis(1), later).await?;
    let queues = store.all_connections().await?.iter().map(|connection| connection.id).collect();
    let taken = store.take_named_queues(thief, later, queues).await?;
    oracle.saw_stolen(&taken).await;
    Ok(())
}
