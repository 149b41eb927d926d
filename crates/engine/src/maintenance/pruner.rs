//! Retention: removes what has ended long ago, in small steps.
//!
//! It must not know what may be removed; the store never touches what waits, nor the DLQ.

use std::sync::Arc;
use std::time::Duration;

use postrider_store::Pruned;

use crate::shared::Shared;

const EVERY: Duration = Duration::from_secs(60);
const ROWS_MAX: u32 = 1000;
/// Between two steps, so that writers are not held up for long.
const BREATH: Duration = Duration::from_millis(100);

pub(crate) async fn run(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(EVERY).await;
        loop {
            let now = shared.now();
            match shared.store.prune(now - shared.options.log_retention, now, ROWS_MAX).await {
                Ok(pruned) if pruned == Pruned::default() => break,
                Ok(pruned) => tracing::debug!(?pruned, "retention"),
                Err(error) => {
                    tracing::warn!(%error, "retention could not go on");
                    break;
                }
            }
            tokio::time::sleep(BREATH).await;
        }
        // Few, and what is left goes a minute later.
        if let Err(error) = shared.store.prune_jobs(shared.now() - shared.options.job_retention, ROWS_MAX).await {
            tracing::warn!(%error, "old jobs could not be removed");
        }
    }
}
