//! Unordered queues: concurrency instead of order.

mod stage;

use postrider_core::Failure;
use postrider_core::delivery::Status;
use postrider_core::outcome::OutcomeState;
use postrider_store::StoreRead;
use serde_json::json;
use stage::*;

#[tokio::test(start_paused = true)]
async fn z11_without_order_as_many_at_once_as_allowed() {
    let stage = Stage::set(Remote::always(status(200).after(1000))).await;
    stage.connection("a", json!({"use_queue": true, "ordered": false, "concurrency": 4})).await;
    for number in 0..20 {
        stage.publish("a", &number.to_string()).await;
    }
    pass(5.5).await;
    assert_eq!((stage.remote.count(), stage.remote.most_at_once()), (20, 4));
    assert_eq!(stage.store.counts(None).await.unwrap().success, 20);
    stage.check().await;
}

#[tokio::test(start_paused = true)]
async fn z11_without_order_a_failing_request_holds_up_nobody() {
    let stage =
        Stage::set(Remote::new(|outgoing, _| if &outgoing.body[..] == b"bad" { refused() } else { status(200) })).await;
    stage.connection("a", json!({"use_queue": true, "ordered": false, "concurrency": 1, "max_retries": 3})).await;
    let bad = stage.publish("a", "bad").await;
    stage.publish("a", "good").await;
    pass(1.0).await;
    assert_eq!(stage.remote.bodies(), ["bad", "good"]);
    pass(60.0).await;
    let bad_at: Vec<u64> =
        stage.remote.seen().into_iter().filter(|seen| seen.body == "bad").map(|seen| seen.at_ms).collect();
    assert_eq!(bad_at, [0, 2000, 6000, 14_000]);
    assert_eq!(stage.status(bad).await, Status::Dlq);
}

#[tokio::test(start_paused = true)]
async fn z10_a_call_on_an_unordered_queue_waits_for_a_slot_and_its_outcome() {
    let stage = Stage::set(Remote::always(status(200).after(1000))).await;
    stage.connection("a", json!({"use_queue": true, "ordered": false, "concurrency": 2, "timeout": 3})).await;
    let calls: Vec<_> = (0..10).map(|number| stage.send_aside("a", &number.to_string())).collect();
    let mut ok = 0;
    for call in calls {
        let outcome = call.await.unwrap();
        ok += u32::from(outcome.state == OutcomeState::IsOk);
        assert!(matches!(outcome.state, OutcomeState::IsOk | OutcomeState::IsInQueue));
    }
    assert!((6..=8).contains(&ok), "{ok} found a slot within 3 s");
    pass(10.0).await;
    assert_eq!((stage.remote.count(), stage.store.counts(None).await.unwrap().success), (10, 10));
}

#[tokio::test(start_paused = true)]
async fn z10_a_failed_call_on_an_unordered_queue_is_queued() {
    let stage = Stage::set(Remote::plays(vec![status(500), status(200)])).await;
    stage.connection("a", json!({"use_queue": true, "ordered": false, "max_retries": 3})).await;
    let outcome = stage.send("a", "x").await;
    assert_eq!((outcome.state, outcome.response.unwrap().status), (OutcomeState::IsInQueue, Some(500)));
    pass(10.0).await;
    assert_eq!(stage.status(outcome.msg_id.unwrap()).await, Status::Success);
    assert_eq!(stage.remote.gaps(), [2010]);
}

// D04: the claim was committed before the send, and the one cut off is in the history.
#[tokio::test(start_paused = true)]
async fn z13_attempts_in_flight_at_a_crash_are_on_record_and_made_again() {
    let mut stage = Stage::set(Remote::new(|_, index| status(200).after(if index < 3 { 60_000 } else { 10 }))).await;
    stage.connection("a", json!({"use_queue": true, "ordered": false, "concurrency": 3})).await;
    let mut ids = Vec::new();
    for number in 0..6 {
        ids.push(stage.publish("a", &number.to_string()).await);
    }
    pass(1.0).await;
    stage.crash_and_restart().await;
    pass(30.0).await;
    assert_eq!(stage.store.counts(None).await.unwrap().success, 6);
    for (index, id) in ids.iter().enumerate() {
        let failures: Vec<_> = stage.store.attempts(*id).await.unwrap().iter().map(|attempt| attempt.failure).collect();
        let wanted = if index < 3 { vec![Some(Failure::Interrupted), None] } else { vec![None] };
        assert_eq!(failures, wanted, "{index}");
    }
    stage.check().await;
}

#[tokio::test(start_paused = true)]
async fn z16_a_pause_holds_an_unordered_queue() {
    let stage = Stage::set(Remote::always(status(200))).await;
    stage.connection("a", json!({"use_queue": true, "ordered": false, "concurrency": 3})).await;
    stage.pause("a", true).await;
    for number in 0..5 {
        stage.publish("a", &number.to_string()).await;
    }
    assert_eq!(stage.send("a", "call").await.state, OutcomeState::IsInQueue);
    pass(600.0).await;
    assert_eq!(stage.remote.count(), 0);
    stage.pause("a", false).await;
    pass(1.0).await;
    assert_eq!(stage.remote.count(), 6);
}

#[tokio::test(start_paused = true)]
async fn z17_what_is_too_old_is_not_sent() {
    let stage = Stage::set(Remote::always(status(200))).await;
    stage.connection("a", json!({"use_queue": true, "ordered": false, "expires_after": 30})).await;
    stage.pause("a", true).await;
    let id = stage.publish("a", "1").await;
    pass(31.0).await;
    let progress = stage.delivery(id).await.progress;
    assert_eq!((progress.status, progress.failure, progress.attempts), (Status::Dlq, Some(Failure::Expired), 0));
    assert_eq!(stage.remote.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn z14_order_can_be_turned_on_and_off_with_requests_queued() {
    let stage = Stage::set(Remote::always(status(200).after(1000))).await;
    stage.connection("a", json!({"use_queue": true, "ordered": false, "concurrency": 2})).await;
    for number in 0..12 {
        stage.publish("a", &format!("{number:02}")).await;
    }
    pass(1.5).await;
    stage.change("a", json!({"use_queue": true})).await;
    pass(3.0).await;
    stage.change("a", json!({"use_queue": true, "ordered": false, "concurrency": 8})).await;
    pass(10.0).await;
    let bodies = stage.remote.bodies();
    let ordered_part = &bodies[4..7];
    assert!(ordered_part.is_sorted(), "while it was ordered: {bodies:?}");
    let mut all = bodies.clone();
    all.sort();
    assert_eq!(all, (0..12).map(|number| format!("{number:02}")).collect::<Vec<_>>());
    assert_eq!(stage.store.counts(None).await.unwrap().success, 12);
}

// Z14: asking a dead remote system as fast as the machine can only slows down the others.
#[tokio::test(start_paused = true)]
async fn z14_a_queue_whose_remote_is_unreachable_slows_down_and_comes_back() {
    let stage = Stage::set(Remote::always(refused())).await;
    let settings = json!({"use_queue": true, "ordered": false, "concurrency": 4, "max_retries": 0});
    stage.connection("a", settings).await;
    stage.pause("a", true).await;
    for number in 0..400 {
        stage.publish("a", &number.to_string()).await;
    }
    stage.pause("a", false).await;
    pass(1.0).await;
    // The first 64 at once, then four every 50 ms.
    assert!((64..=64 + 4 * 22).contains(&stage.remote.count()), "{} attempts in a second", stage.remote.count());
    stage.remote.set(|_, _| status(200));
    pass(1.0).await;
    assert_eq!(stage.remote.count(), 400, "one that arrives ends it");
    stage.check().await;
}
