//! Claims of a worker that died: taken over once they have timed out, and the attempt that was cut off is in the history (R01, D05).
#![allow(clippy::unwrap_used, reason = "tests")]

use postrider_core::delivery::Status;
use postrider_core::{Failure, Wait};
use postrider_engine::EngineOptions;
use postrider_store::StoreRead;
use serde_json::json;

use crate::lab::{deliveries, endpoint, options, set, subscribe, tell};
use crate::stage::*;

#[tokio::test(start_paused = true)]
async fn r01_a_claim_of_a_dead_worker_is_taken_over_once_it_has_timed_out() {
    let remote = Remote::new(|_, index| status(200).after(if index == 0 { 60_000 } else { 10 }));
    let options = EngineOptions { claim_timeout: Wait::from_secs(300), ..options() };
    let mut stage = Stage::with(remote, options).await;
    let to = endpoint(&stage, "a", json!({})).await;
    subscribe(&stage, &to, json!({"event_type": "order.*"})).await;
    tell(&stage, "order.created", json!(1)).await;
    pass(1.0).await;
    assert_eq!(deliveries(&stage, &to).await[0].progress.status, Status::Processing);
    stage.crash_and_restart().await;
    tell(&stage, "order.created", json!(2)).await;
    pass(297.0).await;
    let all = deliveries(&stage, &to).await;
    assert_eq!((all[0].progress.status, all[1].progress.status), (Status::Processing, Status::Success));
    assert_eq!(stage.remote.count(), 2, "the rest of the queue goes on meanwhile");
    pass(5.0).await;
    let all = deliveries(&stage, &to).await;
    assert_eq!((all[0].progress.status, all[0].progress.attempts), (Status::Success, 2));
    let failures: Vec<_> = stage.store.attempts(all[0].id).await.unwrap().iter().map(|one| one.failure).collect();
    assert_eq!(failures, [Some(Failure::Interrupted), None]);
    let retried = stage.remote.seen().into_iter().find(|seen| seen.attempt == 2).unwrap();
    assert!(retried.at_ms >= 300_000, "{retried:?}");
}

#[tokio::test(start_paused = true)]
async fn r01_where_the_store_proves_that_the_worker_is_dead_nobody_waits() {
    let mut stage = set(Remote::new(|_, index| status(200).after(if index == 0 { 60_000 } else { 10 }))).await;
    let to = endpoint(&stage, "a", json!({})).await;
    subscribe(&stage, &to, json!({"event_type": "order.*"})).await;
    tell(&stage, "order.created", json!(1)).await;
    pass(1.0).await;
    stage.crash_and_restart().await;
    pass(5.0).await;
    let all = deliveries(&stage, &to).await;
    assert_eq!((all[0].progress.status, all[0].progress.attempts), (Status::Success, 2));
}
