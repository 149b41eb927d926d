//! Direct calls with the queue off: what is retried, when, and what the caller is told.

mod stage;

use postrider_core::delivery::Status;
use postrider_core::outcome::OutcomeState;
use postrider_engine::{ConnectionRef, Refusal};
use postrider_store::StoreRead;
use serde_json::json;
use stage::*;

/// Retries, first wait, multiplier, total, and the waits of the seed.
type Example = (u32, f64, f64, f64, &'static [u64]);

const SEVEN_EXAMPLES: [Example; 7] = [
    (0, 2.0, 2.0, 60.0, &[]),
    (5, 2.0, 2.0, 60.0, &[2, 4, 8, 8, 8]),
    (10, 2.0, 2.0, 60.0, &[2, 4, 8, 8, 8, 8, 8, 8, 6]),
    (3, 20.0, 2.0, 60.0, &[8, 8, 8]),
    (3, 10.0, 2.0, 5.0, &[5]),
    (4, 3.0, 1.0, 60.0, &[3, 3, 3, 3]),
    (4, 3.0, 0.0, 60.0, &[3, 1, 1, 1]),
];

#[tokio::test(start_paused = true)]
async fn z03_the_waits_of_the_seed_on_the_wire_to_the_second() {
    for (retries, first, multiplier, total, waits) in SEVEN_EXAMPLES {
        let stage = Stage::set(Remote::always(refused())).await;
        let settings = json!({
            "max_retries": retries, "retry_sleep_time": first,
            "retry_backoff_multiplier": multiplier, "retry_backoff_threshold": total,
        });
        stage.connection("a", settings).await;
        let outcome = stage.send("a", "x").await;
        assert_eq!(outcome.state, OutcomeState::NotDelivered);
        let wanted: Vec<u64> = waits.iter().map(|seconds| seconds * 1000).collect();
        assert_eq!(stage.remote.gaps(), wanted, "{retries} retries, first wait {first} s");
    }
}

#[tokio::test(start_paused = true)]
async fn z01_only_what_the_seed_names_is_retried() {
    for (play, sent) in [
        (refused(), 2),
        (timed_out(1000), 2),
        (status(429), 2),
        (status(500), 1),
        (status(503), 1),
        (status(404), 1),
        (status(301), 1),
        (status(200), 1),
    ] {
        let stage = Stage::set(Remote::plays(vec![play.clone(), status(200)])).await;
        stage.connection("a", json!({"max_retries": 3})).await;
        let outcome = stage.send("a", "x").await;
        assert_eq!(stage.remote.count(), sent, "{play:?}");
        let delivered = sent == 2 || play.reply.answer().is_some_and(|answer| answer.status == Some(200));
        assert_eq!(outcome.state == OutcomeState::IsOk, delivered, "{play:?}");
    }
}

// proves: Z30
#[tokio::test(start_paused = true)]
async fn z02_without_retries_one_attempt_and_the_failure_is_reported() {
    let stage = Stage::set(Remote::always(refused())).await;
    stage.connection("a", json!({})).await;
    let outcome = stage.send("a", "x").await;
    assert_eq!((outcome.state, outcome.error.as_deref()), (OutcomeState::NotDelivered, Some("connection refused")));
    assert_eq!(stage.remote.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn z04_retry_after_replaces_the_wait_and_what_does_not_fit_ends_the_retries() {
    let limited = |seconds: &'static str| Play { after_ms: 0, reply: answered(429, &[("Retry-After", seconds)]) };
    let stage = Stage::set(Remote::plays(vec![limited("20"), limited("0"), limited("41"), status(200)])).await;
    stage.connection("a", json!({"max_retries": 9})).await;
    let outcome = stage.send("a", "x").await;
    // 41 s do not fit in what is left of 60 s.
    assert_eq!(stage.remote.gaps(), [20_000, 0]);
    assert_eq!((outcome.state, outcome.response.unwrap().status), (OutcomeState::NotDelivered, Some(429)));
}

#[tokio::test(start_paused = true)]
async fn z05_a_caller_who_leaves_lets_the_attempt_end_and_no_further_one_starts() {
    let stage = Stage::set(Remote::always(timed_out(5000))).await;
    let connection = stage.connection("a", json!({"max_retries": 3})).await;
    let call = stage.send_aside("a", "x");
    pass(1.0).await;
    call.abort();
    pass(60.0).await;
    assert_eq!((stage.remote.count(), stage.remote.ended()), (1, 1));
    let counts = stage.store.counts(Some(connection.id)).await.unwrap();
    assert_eq!((counts.accepted, counts.failed), (1, 1), "it is in the log");
}

#[tokio::test(start_paused = true)]
async fn z05_a_caller_who_leaves_while_waiting_gets_no_further_attempt() {
    let stage = Stage::set(Remote::always(refused())).await;
    let connection = stage.connection("a", json!({"max_retries": 3, "retry_sleep_time": 8})).await;
    let call = stage.send_aside("a", "x");
    pass(4.0).await;
    call.abort();
    pass(60.0).await;
    assert_eq!(stage.remote.count(), 1);
    assert_eq!(stage.store.counts(Some(connection.id)).await.unwrap().failed, 1);
}

// D12: entered in the log after the fact, with every attempt.
#[tokio::test(start_paused = true)]
async fn z05_a_call_enters_the_log_with_its_attempts() {
    let stage = Stage::set(Remote::plays(vec![refused(), refused(), status(201)])).await;
    stage.connection("a", json!({"max_retries": 3})).await;
    let outcome = stage.send("a", "x").await;
    assert_eq!(outcome.state, OutcomeState::IsOk);
    pass(1.0).await;
    let id = outcome.msg_id.unwrap();
    assert_eq!(stage.status(id).await, Status::Success);
    let attempts = stage.store.attempts(id).await.unwrap();
    assert_eq!(attempts.iter().map(|attempt| attempt.number).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(attempts[2].status, Some(201));
    stage.check().await;
}

#[tokio::test(start_paused = true)]
async fn z12_reads_never_queue_and_get_one_attempt() {
    let stage = Stage::set(Remote::always(refused())).await;
    let connection = stage.connection("a", json!({"use_queue": true, "max_retries": 5})).await;
    let outcome = stage.try_send("a", get()).await.unwrap();
    assert_eq!(outcome.state, OutcomeState::NotDelivered);
    pass(60.0).await;
    assert_eq!(stage.remote.count(), 1);
    let summary = stage.store.queue_summary(connection.id).await.unwrap();
    assert_eq!((summary.waiting, summary.dead), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn z12_a_read_does_not_wait_behind_a_blocked_queue() {
    let stage =
        Stage::set(Remote::new(|outgoing, _| if outgoing.head.method.only_reads() { status(200) } else { refused() }))
            .await;
    stage.connection("a", json!({"use_queue": true, "max_retries": 5})).await;
    stage.publish("a", "blocks").await;
    pass(1.0).await;
    assert_eq!(stage.try_send("a", get()).await.unwrap().state, OutcomeState::IsOk);
}

#[tokio::test(start_paused = true)]
async fn z16_an_inactive_connection_refuses_calls() {
    let stage = Stage::set(Remote::always(status(200))).await;
    stage.connection("a", json!({"is_active": false})).await;
    assert_eq!(stage.try_send("a", post("x")).await, Err(Refusal::Inactive("a".to_owned())));
    let unknown = ConnectionRef { name: "nobody".to_owned(), kind: None };
    let refusal = stage.engine.connection(stage.project, &unknown).await.unwrap_err();
    assert!(matches!(refusal, Refusal::NotFound { what: "connection", .. }), "{refusal}");
    assert_eq!(stage.remote.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn z30_our_own_refusals_come_before_anything_is_sent() {
    let stage = Stage::set(Remote::always(status(200))).await;
    stage.connection("a", json!({"url_path": "/claims/{id}"})).await;
    assert!(matches!(stage.try_send("a", post("x")).await, Err(Refusal::Invalid(_))), "the path has no id");
    stage.connection("b", json!({})).await;
    let large = "x".repeat((8 << 20) + 1);
    assert!(matches!(stage.try_send("b", post(&large)).await, Err(Refusal::TooLarge { .. })));
    assert_eq!(stage.remote.count(), 0);
}
