//! Direct calls with an idempotency key (D15): one call under one key, whoever asks and whatever the store does.

mod stage;

use std::sync::Arc;

use postrider_core::Timestamp;
use postrider_core::id::ProjectId;
use postrider_core::outcome::{Outcome, OutcomeState};
use postrider_engine::{Engine, EngineOptions, Refusal, SendOptions};
use postrider_store::{Idempotency, MemoryStore};
use serde_json::json;
use stage::faltering::Faltering;
use stage::*;

fn keyed(request: u8) -> SendOptions {
    let ends_at = Timestamp::from_millis(BEGAN_MS + 86_400_000);
    SendOptions {
        idempotency: Some(Idempotency { key_hash: [1; 32], request_hash: [request; 32], ends_at }),
        ..SendOptions::default()
    }
}

fn aside(engine: &Engine, project: ProjectId, request: u8) -> tokio::task::JoinHandle<Result<Outcome, Refusal>> {
    let engine = engine.clone();
    tokio::spawn(async move { engine.send(project, &named("a"), post("x"), keyed(request)).await })
}

async fn stage_with(remote: Arc<Remote>) -> (Stage, Arc<Faltering>) {
    let memory = MemoryStore::default();
    let store = Arc::new(Faltering::new(memory.clone()));
    let stage =
        Stage::over(Arc::clone(&store) as _, memory, remote, EngineOptions::default(), PausedClock::shared()).await;
    stage.connection("a", json!({"max_retries": 3, "retry_sleep_time": 2, "timeout": 60})).await;
    (stage, store)
}

#[tokio::test(start_paused = true)]
async fn d15_repeats_wait_for_the_call_under_way_through_its_retries() {
    let plays = vec![refused(), status(200).after(500)];
    let (stage, _) = stage_with(Remote::plays(plays)).await;
    let first = aside(&stage.engine, stage.project, 1);
    settle_down().await;
    let (repeat, other) = (aside(&stage.engine, stage.project, 1), aside(&stage.engine, stage.project, 2));
    let first = first.await.unwrap().unwrap();
    assert_eq!((first.state, stage.remote.count()), (OutcomeState::IsOk, 2));
    assert_eq!(repeat.await.unwrap(), Ok(first));
    assert!(matches!(other.await.unwrap(), Err(Refusal::Conflict(_))));
}

#[tokio::test(start_paused = true)]
async fn z05_retries_go_on_while_anybody_waits_and_stop_when_all_have_left() {
    for (repeat_waits, attempts) in [(true, 4), (false, 1)] {
        let (stage, _) = stage_with(Remote::always(refused())).await;
        let first = aside(&stage.engine, stage.project, 1);
        settle_down().await;
        let repeat = repeat_waits.then(|| aside(&stage.engine, stage.project, 1));
        settle_down().await;
        first.abort();
        pass(60.0).await;
        assert_eq!(stage.remote.count(), attempts);
        if let Some(repeat) = repeat {
            assert_eq!(repeat.await.unwrap().unwrap().state, OutcomeState::NotDelivered);
        }
        // Both ways it has ended, and a later repeat is told how.
        let later = aside(&stage.engine, stage.project, 1).await.unwrap().unwrap();
        assert_eq!((later.state, stage.remote.count()), (OutcomeState::NotDelivered, attempts));
    }
}

#[tokio::test(start_paused = true)]
async fn d15_a_key_that_cannot_be_committed_makes_no_call() {
    let (stage, store) = stage_with(Remote::always(status(200))).await;
    store.fail("reserve_key", 1);
    let outcome = aside(&stage.engine, stage.project, 1).await.unwrap().unwrap();
    assert_eq!((outcome.state, outcome.msg_id, stage.remote.count()), (OutcomeState::NotDelivered, None, 0));
    assert_eq!(aside(&stage.engine, stage.project, 1).await.unwrap().unwrap().state, OutcomeState::IsOk);
}

// proves: D15 (the outcome is in the log before the caller is told)
#[tokio::test(start_paused = true)]
async fn d15_the_caller_is_told_once_the_log_has_it() {
    let (stage, store) = stage_with(Remote::always(status(200))).await;
    store.fail("record_calls", 20);
    let first = aside(&stage.engine, stage.project, 1);
    pass(1.0).await;
    assert_eq!((stage.remote.ended(), first.is_finished()), (1, false), "answered, and not yet in the log");
    pass(120.0).await;
    let first = first.await.unwrap().unwrap();
    assert_eq!((first.state, stage.remote.count()), (OutcomeState::IsOk, 1));
    stage.delivery(first.msg_id.unwrap()).await;
}

#[tokio::test(start_paused = true)]
async fn d15_after_a_crash_in_the_middle_the_outcome_is_unknown_and_nothing_is_sent_again() {
    let mut stage = Stage::set(Remote::always(status(200).after(30_000))).await;
    stage.connection("a", json!({"timeout": 60})).await;
    let first = aside(&stage.engine, stage.project, 1);
    pass(1.0).await;
    stage.crash_and_restart().await;
    assert_eq!(first.await.unwrap(), Err(Refusal::Stopping));
    for _ in 0..2 {
        let repeat = aside(&stage.engine, stage.project, 1).await.unwrap();
        assert!(matches!(repeat, Err(Refusal::OutcomeUnknown { .. })), "{repeat:?}");
    }
    assert_eq!(stage.remote.count(), 1);
}

// With the queue on too: a repeat is told what the first one is told, not that it is still in the queue.
#[tokio::test(start_paused = true)]
async fn d15_a_repeat_of_a_call_in_the_queue_waits_for_its_attempt() {
    let (stage, _) = stage_with(Remote::always(status(400).after(500))).await;
    stage.change("a", json!({"use_queue": true, "max_retries": 0, "use_dlq": false, "timeout": 60})).await;
    let first = aside(&stage.engine, stage.project, 1);
    settle_down().await;
    let repeat = aside(&stage.engine, stage.project, 1);
    let first = first.await.unwrap().unwrap();
    assert_eq!((first.state, stage.remote.count()), (OutcomeState::NotDelivered, 1));
    assert_eq!(repeat.await.unwrap(), Ok(first));
}
