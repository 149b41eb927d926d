//! Retention: removes what has ended long ago, in small steps.
//!
//! It must not know what may be removed; the store never touches what waits, nor the DLQ.

use std::sync::Arc;
use std::time::Duration;

use postrider_core::log;
use postrider_core::readiness::Worker;
use postrider_store::Pruned;

use crate::shared::Shared;

const EVERY: Duration = Duration::from_secs(60);
/// The audit log grows slowly, so once an hour is enough for it.
const AUDIT_EVERY_ROUNDS: u64 = 60;
const ROWS_MAX: u32 = 1000;
/// More than come in a minute, so that they do not pile up.
const RECEIPTS_MAX: u32 = 20_000;
/// Between two steps, so that writers are not held up for long.
const BREATH: Duration = Duration::from_millis(100);

pub(crate) async fn run(shared: Arc<Shared>) {
    for round in 1_u64.. {
        shared.vitals.idle(Worker::Pruner);
        tokio::time::sleep(EVERY).await;
        loop {
            shared.vitals.busy(Worker::Pruner);
            let now = shared.now();
            match shared.store.prune(now - shared.options.log_retention, now, ROWS_MAX).await {
                Ok(pruned) if pruned == Pruned::default() => break,
                Ok(pruned) => tracing::debug!(event = log::RETENTION_DONE, ?pruned, "retention"),
                Err(error) => {
                    tracing::warn!(event = log::RETENTION_HELD_UP, %error, "retention could not go on");
                    break;
                }
            }
            tokio::time::sleep(BREATH).await;
        }
        // Few, and what is left goes a minute later.
        if let Err(error) = shared.store.prune_jobs(shared.now() - shared.options.job_retention, ROWS_MAX).await {
            tracing::warn!(event = log::RETENTION_HELD_UP, %error, "old jobs could not be removed");
        }
        prune_sessions(&shared).await;
        if let Err(error) = shared.store.prune_alerts(shared.now() - shared.options.log_retention, ROWS_MAX).await {
            tracing::warn!(event = log::RETENTION_HELD_UP, %error, "past alerts could not be removed");
        }
        if let Err(error) = shared.store.prune_receipts(shared.now(), RECEIPTS_MAX).await {
            tracing::warn!(event = log::RETENTION_HELD_UP, %error, "what came in long ago could not be forgotten");
        }
        if round % AUDIT_EVERY_ROUNDS == 0 {
            prune_audit(&shared).await;
            prune_kept_programs(&shared).await;
        }
    }
}

/// Those that have ended by themselves; they open nothing, whether or not they are still there.
async fn prune_sessions(shared: &Shared) {
    let (now, limits) = (shared.now(), shared.options.sessions);
    if let Err(error) = shared.store.prune_sessions(now - limits.idle_max, now - limits.age_max, ROWS_MAX).await {
        tracing::warn!(event = log::RETENTION_HELD_UP, %error, "ended sessions could not be removed");
    }
}

/// Of subscriptions that are gone. What they made leaves the log after its retention, so before that there is nothing to look for.
async fn prune_kept_programs(shared: &Shared) {
    match shared.store.prune_kept_programs(shared.now() - shared.options.log_retention).await {
        Ok(0) => {}
        Ok(programs) => tracing::debug!(event = log::RETENTION_DONE, programs, "transformations that nothing needs"),
        Err(error) => {
            tracing::warn!(event = log::RETENTION_HELD_UP, %error, "unneeded transformations could not be removed");
        }
    }
}

/// The audit log has a retention of its own.
async fn prune_audit(shared: &Shared) {
    loop {
        shared.vitals.busy(Worker::Pruner);
        match shared.store.prune_audit(shared.now() - shared.options.audit_retention, ROWS_MAX).await {
            Ok(0) => return,
            Ok(entries) => tracing::debug!(event = log::RETENTION_DONE, entries, "retention of the audit log"),
            Err(error) => {
                tracing::warn!(event = log::RETENTION_HELD_UP, %error, "retention of the audit log could not go on");
                return;
            }
        }
        tokio::time::sleep(BREATH).await;
    }
}
