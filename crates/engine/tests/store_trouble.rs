//! When the store falters, the lease ends or the server stops: nothing is lost, and nothing is sent again for our own trouble.

mod stage;

use std::sync::Arc;

use postrider_core::delivery::Status;
use postrider_core::outcome::OutcomeState;
use postrider_core::{Failure, Wait};
use postrider_engine::{EngineOptions, Refusal, SendOptions};
use postrider_store::{MemoryStore, Store, StoreLimits, StoreRead};
use serde_json::json;
use stage::faltering::Faltering;
use stage::*;

async fn faltering(remote: Arc<Remote>) -> (Stage, Arc<Faltering>) {
    let memory = MemoryStore::default();
    let store = Arc::new(Faltering::new(memory.clone()));
    let clock = PausedClock::shared();
    let stage = Stage::over(Arc::clone(&store) as _, memory, remote, EngineOptions::default(), clock).await;
    (stage, store)
}

#[tokio::test(start_paused = true)]
async fn z30_if_storing_fails_all_flags_are_false_and_the_error_says_why() {
    let (stage, store) = faltering(Remote::always(status(200))).await;
    stage.connection("a", json!({"use_queue": true, "max_retries": 3})).await;
    store.fail("enqueue", 1);
    let outcome = stage.send("a", "x").await;
    assert_eq!((outcome.state, outcome.msg_id), (OutcomeState::NotDelivered, None));
    assert_eq!(outcome.error.as_deref(), Some("the store is unavailable; nothing was stored"));
    pass(60.0).await;
    assert_eq!(stage.remote.count(), 0, "what is not stored is not sent");
    assert_eq!(stage.send("a", "y").await.state, OutcomeState::IsOk);
}

// D07
#[tokio::test(start_paused = true)]
async fn z30_a_full_store_refuses_and_drops_nothing() {
    let memory = MemoryStore::new(StoreLimits { queue_messages_max: 2, ..StoreLimits::default() });
    let remote = Remote::always(refused());
    let options = EngineOptions::default();
    let stage = Stage::over(Arc::new(memory.clone()), memory, remote, options, PausedClock::shared()).await;
    stage.connection("a", json!({"use_queue": true, "max_retries": 9, "use_dlq": false})).await;
    stage.publish("a", "1").await;
    stage.publish("a", "2").await;
    let full = Err(Refusal::Full { limit: "queue_messages_max" });
    assert_eq!(stage.try_send("a", post("3")).await, full);
    stage.pause("a", true).await;
    let options = SendOptions::default();
    assert_eq!(stage.engine.publish(stage.project, &named("a"), post("3"), options).await, full);
}

#[tokio::test(start_paused = true)]
async fn r16_nothing_is_sent_again_because_our_own_store_faltered_after_an_answer() {
    for ordered in [true, false] {
        let (stage, store) = faltering(Remote::always(status(200))).await;
        stage.connection("a", json!({"use_queue": true, "max_retries": 3, "ordered": ordered})).await;
        let call = stage.send_aside("a", "x");
        store.fail("settle", 20);
        pass(10.0).await;
        assert!(!call.is_finished(), "told only once it is on disk");
        pass(600.0).await;
        assert_eq!((call.await.unwrap().state, stage.remote.count()), (OutcomeState::IsOk, 1));
    }
}

// D03: at most `settle_ahead_max` answered successes may be uncommitted.
#[tokio::test(start_paused = true)]
async fn r16_a_queue_runs_only_a_bounded_number_of_commits_ahead() {
    let (stage, store) = faltering(Remote::always(status(200))).await;
    stage.connection("a", json!({"use_queue": true})).await;
    store.fail("settle", u32::MAX);
    for number in 0..100 {
        stage.publish("a", &format!("{number:03}")).await;
    }
    pass(60.0).await;
    assert_eq!(stage.remote.count(), 17, "one and sixteen ahead of it");
    store.fail("settle", 0);
    pass(60.0).await;
    assert_eq!(stage.remote.bodies(), (0..100).map(|number| format!("{number:03}")).collect::<Vec<_>>());
}

// D03: after a crash the answered and uncommitted ones are sent again, in order.
#[tokio::test(start_paused = true)]
async fn z13_after_a_crash_uncommitted_successes_are_sent_again_in_order() {
    let (mut stage, store) = faltering(Remote::always(status(200))).await;
    stage.connection("a", json!({"use_queue": true})).await;
    store.fail("settle", u32::MAX);
    for number in 0..5 {
        stage.publish("a", &number.to_string()).await;
    }
    pass(1.0).await;
    store.fail("settle", 0);
    stage.crash_and_restart().await;
    pass(10.0).await;
    assert_eq!(stage.remote.bodies(), ["0", "1", "2", "3", "4", "0", "1", "2", "3", "4"]);
    assert_eq!(stage.store.counts(None).await.unwrap().success, 5);
}

// D05: the store could not be reached for longer than the lease; nothing is sent without one, and all goes on afterwards.
#[tokio::test(start_paused = true)]
async fn z13_without_a_lease_nothing_is_sent_and_afterwards_all_goes_on() {
    let (stage, store) = faltering(Remote::always(status(200).after(1000))).await;
    stage.connection("a", json!({"use_queue": true})).await;
    for number in 0..40 {
        stage.publish("a", &format!("{number:02}")).await;
    }
    pass(3.5).await;
    store.fail("renew_worker", 20);
    pass(20.0).await;
    let sent = stage.remote.count();
    assert!(sent < 16, "{sent} were sent, though the lease had 15 s");
    pass(120.0).await;
    let mut bodies = stage.remote.bodies();
    bodies.dedup();
    assert_eq!(bodies, (0..40).map(|number| format!("{number:02}")).collect::<Vec<_>>());
    assert_eq!(stage.store.counts(None).await.unwrap().success, 40);
    stage.check().await;
}

// D05: another worker took the queue; what the former one decides changes nothing.
#[tokio::test(start_paused = true)]
async fn z13_a_stale_token_changes_nothing() {
    let stage = Stage::set(Remote::plays(vec![status(200).after(10_000), status(200)])).await;
    stage.connection("a", json!({"use_queue": true})).await;
    let id = stage.publish("a", "x").await;
    pass(1.0).await;
    // Every lease ends behind the engine's back, as when the store was opened by somebody else.
    let _ = stage.store.reopen();
    pass(60.0).await;
    assert_eq!(stage.status(id).await, Status::Success);
    assert_eq!(stage.remote.count(), 2, "the outcome of the first attempt was not ours to write");
    let attempts = stage.store.attempts(id).await.unwrap();
    assert_eq!(attempts[0].failure, Some(Failure::Interrupted), "but it is on record (D04)");
    assert_eq!(
        attempts.iter().map(|attempt| attempt.number).collect::<Vec<_>>(),
        (1..=attempts.len() as u32).collect::<Vec<_>>()
    );
    stage.check().await;
}

#[tokio::test(start_paused = true)]
async fn z13_a_graceful_stop_lets_the_attempt_end_and_gives_the_queue_back() {
    for ordered in [true, false] {
        let mut stage = Stage::set(Remote::always(status(200).after(2000))).await;
        stage.connection("a", json!({"use_queue": true, "ordered": ordered, "concurrency": 1})).await;
        let first = stage.publish("a", "1").await;
        let second = stage.publish("a", "2").await;
        pass(1.0).await;
        stage.engine.stop(Wait::from_secs(10)).await;
        assert_eq!((stage.status(first).await, stage.status(second).await), (Status::Success, Status::Pending));
        let refusal = stage.try_send("a", post("3")).await.unwrap_err();
        assert_eq!(refusal, Refusal::Stopping);
        stage.crash_and_restart().await;
        pass(10.0).await;
        assert_eq!(stage.remote.bodies(), ["1", "2"], "ordered: {ordered}");
        assert_eq!(stage.store.attempts(second).await.unwrap().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn z13_a_stop_does_not_wait_longer_than_its_grace() {
    for ordered in [true, false] {
        let stage = Stage::set(Remote::always(status(200).after(60_000))).await;
        stage.connection("a", json!({"use_queue": true, "ordered": ordered})).await;
        let id = stage.publish("a", "1").await;
        pass(1.0).await;
        let began = stage.now();
        stage.engine.stop(Wait::from_secs(3)).await;
        assert_eq!(stage.now().since(began).as_millis(), 3000);
        let attempts = stage.store.attempts(id).await.unwrap();
        assert_eq!(attempts.iter().map(|attempt| attempt.failure).collect::<Vec<_>>(), [Some(Failure::Interrupted)]);
        assert_eq!(stage.status(id).await, Status::Pending);
        stage.store.close().await.unwrap();
    }
}

// D03: only successes may run ahead of their commit.
#[tokio::test(start_paused = true)]
async fn z16_what_is_behind_a_failure_waits_until_that_is_written() {
    let (stage, store) = faltering(Remote::plays(vec![refused(), status(200)])).await;
    stage.connection("a", json!({"use_queue": true})).await;
    store.fail("settle", 10);
    let first = stage.publish("a", "1").await;
    stage.publish("a", "2").await;
    pass(2.0).await;
    assert_eq!(stage.remote.bodies(), ["1"]);
    pass(60.0).await;
    assert_eq!((stage.remote.bodies(), stage.status(first).await), (vec!["1".to_owned(), "2".to_owned()], Status::Dlq));
}

#[tokio::test(start_paused = true)]
async fn z14_a_sender_that_breaks_down_is_a_failed_attempt_and_no_more() {
    for ordered in [true, false] {
        let stage = Stage::set(Remote::always(status(200))).await;
        stage.connection("a", json!({"use_queue": true, "ordered": ordered})).await;
        let broken = stage.publish("a", BREAKS_DOWN).await;
        stage.publish("a", "good").await;
        pass(1.0).await;
        assert_eq!(stage.remote.bodies(), [BREAKS_DOWN, "good"]);
        let progress = stage.delivery(broken).await.progress;
        assert_eq!((progress.status, progress.failure), (Status::Dlq, Some(Failure::Error)));
    }
}

#[tokio::test(start_paused = true)]
async fn z14_a_queue_in_which_nothing_is_due_asks_the_store_nothing() {
    let (stage, store) = faltering(Remote::always(refused())).await;
    let ladder = json!({"retry_delays": [86400], "max_attempts": 3, "jitter": false});
    stage.connection("ladder", ladder).await;
    stage.connection("ordered", json!({"use_queue": true})).await;
    stage.connection("unordered", json!({"use_queue": true, "ordered": false})).await;
    for name in ["ladder", "ordered", "unordered"] {
        stage.publish(name, "x").await;
    }
    stage.pause("ordered", true).await;
    stage.publish("ordered", "waits").await;
    pass(10.0).await;
    let asked = |store: &Faltering| (store.asked("load"), store.asked("claim"), store.asked("settle"));
    let before = asked(&store);
    pass(3600.0).await;
    assert_eq!(asked(&store), before);
}

#[tokio::test(start_paused = true)]
async fn z05_the_log_falters_and_ended_calls_are_entered_later() {
    let (stage, store) = faltering(Remote::always(status(200))).await;
    let connection = stage.connection("a", json!({})).await;
    store.fail("record_calls", 5);
    assert_eq!(stage.send("a", "x").await.state, OutcomeState::IsOk, "off the caller's path");
    pass(60.0).await;
    assert_eq!(stage.store.counts(Some(connection.id)).await.unwrap().success, 1);
}

#[tokio::test(start_paused = true)]
async fn r16_an_unordered_queue_too_runs_only_a_bounded_number_of_commits_ahead() {
    let (stage, store) = faltering(Remote::always(status(200))).await;
    stage.connection("a", json!({"use_queue": true, "ordered": false, "concurrency": 2})).await;
    store.fail("settle", u32::MAX);
    for number in 0..200 {
        stage.publish("a", &number.to_string()).await;
        pass(0.02).await;
    }
    pass(60.0).await;
    let sent = stage.remote.count();
    assert!((64..=67).contains(&sent), "{sent} were sent");
    store.fail("settle", 0);
    pass(60.0).await;
    assert_eq!((stage.remote.count(), stage.store.counts(None).await.unwrap().success), (200, 200));
}

/// What is settled while the store is asked for the next due time is not in its answer, and is due all the same.
#[tokio::test(start_paused = true)]
async fn z13_a_retry_is_not_lost_to_an_older_answer_about_the_next_due_time() {
    let remote = Remote::new(|outgoing, nth| match (&outgoing.body[..], nth) {
        (b"fails once", 0) => refused().after(500),
        _ => status(200),
    });
    let (stage, store) = faltering(remote).await;
    stage.connection("a", json!({"use_queue": true, "ordered": false, "concurrency": 2, "max_retries": 3})).await;
    store.answer_next_due_late(1000);
    stage.publish("a", "fails once").await;
    stage.publish("a", "at once").await;
    pass(10.0).await;
    let seen: Vec<_> = stage.remote.seen().into_iter().map(|seen| (seen.body, seen.at_ms)).collect();
    let times = seen.iter().filter(|(body, _)| body == "fails once").map(|(_, at)| *at).collect::<Vec<_>>();
    assert_eq!(times, [0, 2500], "{seen:?}");
}
