//! Direct calls on a connection with the queue on: stored first, attempted in their turn (D10).

mod stage;

use std::sync::Arc;

use postrider_core::delivery::Status;
use postrider_core::outcome::OutcomeState;
use postrider_store::StoreRead;
use serde_json::json;
use stage::*;

#[tokio::test(start_paused = true)]
async fn z10_a_call_that_succeeds_is_ok_and_one_attempt() {
    let stage = Stage::set(Remote::always(status(200))).await;
    stage.connection("a", json!({"use_queue": true, "max_retries": 3})).await;
    let outcome = stage.send("a", "x").await;
    assert_eq!((outcome.state, outcome.response.unwrap().status), (OutcomeState::IsOk, Some(200)));
    // Told only after it was settled (law 3).
    assert_eq!(stage.status(outcome.msg_id.unwrap()).await, Status::Success);
    assert_eq!(stage.remote.count(), 1);
}

// proves: Z15, Z30
#[tokio::test(start_paused = true)]
async fn z10_any_failure_is_queued_and_the_call_counts_as_the_first_attempt() {
    for play in [status(500), status(302), status(404), refused(), timed_out(1000)] {
        let stage = Stage::set(Remote::plays(vec![play.clone(), status(200)])).await;
        stage.connection("a", json!({"use_queue": true, "max_retries": 3})).await;
        let outcome = stage.send("a", "x").await;
        assert_eq!(outcome.state, OutcomeState::IsInQueue, "{play:?}");
        assert_eq!(
            outcome.response.and_then(|answer| answer.status),
            play.reply.answer().and_then(|answer| answer.status)
        );
        assert!(outcome.error.is_some());
        assert_eq!(stage.remote.count(), 1, "one call, without retries");
        let answered_at = stage.now();
        pass(30.0).await;
        assert_eq!(stage.status(outcome.msg_id.unwrap()).await, Status::Success);
        let second = stage.remote.times()[1];
        let first_ended = answered_at.since(postrider_core::Timestamp::from_millis(BEGAN_MS)).as_millis();
        assert_eq!(second - first_ended, 2000, "the round begins with the first wait");
    }
}

#[tokio::test(start_paused = true)]
async fn z10_without_retries_a_failed_call_goes_to_the_dlq_or_back() {
    let stage = Stage::set(Remote::always(status(500))).await;
    stage.connection("dlq", json!({"use_queue": true})).await;
    let outcome = stage.send("dlq", "x").await;
    assert_eq!(outcome.state, OutcomeState::IsInDlq);
    assert_eq!(stage.status(outcome.msg_id.unwrap()).await, Status::Dlq);
    stage.connection("back", json!({"use_queue": true, "use_dlq": false})).await;
    let outcome = stage.send("back", "x").await;
    assert_eq!((outcome.state, outcome.response.unwrap().status), (OutcomeState::NotDelivered, Some(500)));
    assert_eq!(stage.status(outcome.msg_id.unwrap()).await, Status::Failed);
}

#[tokio::test(start_paused = true)]
async fn z11_a_call_behind_a_backlog_is_queued_unsent() {
    let stage = Stage::set(Remote::new(|outgoing, _| {
        if &outgoing.body[..] == b"first" && outgoing.attempt < 3 { refused() } else { status(200) }
    }))
    .await;
    stage.connection("a", json!({"use_queue": true, "max_retries": 5})).await;
    stage.publish("a", "first").await;
    pass(1.0).await;
    let before = stage.now();
    let outcome = stage.send("a", "second").await;
    assert_eq!((outcome.state, outcome.error), (OutcomeState::IsInQueue, None));
    assert_eq!(stage.now(), before, "told at once");
    pass(30.0).await;
    assert_eq!(stage.remote.bodies(), ["first", "first", "first", "second"]);
}

#[tokio::test(start_paused = true)]
async fn z11_two_callers_race_and_the_first_one_fails_without_inversion() {
    let stage = Stage::set(Remote::plays(vec![refused().after(500), status(200)])).await;
    stage.connection("a", json!({"use_queue": true, "max_retries": 5})).await;
    let first = stage.send_aside("a", "1");
    settle_down().await;
    let second = stage.send_aside("a", "2");
    let (first, second) = (first.await.unwrap(), second.await.unwrap());
    assert_eq!((first.state, second.state), (OutcomeState::IsInQueue, OutcomeState::IsInQueue));
    assert_eq!(second.error, None, "its own turn never came");
    pass(30.0).await;
    assert_eq!(stage.remote.bodies(), ["1", "1", "2"]);
    // What was never called directly is attempted at once (Z15).
    assert_eq!(stage.remote.times()[2] - stage.remote.times()[1], 10);
}

#[tokio::test(start_paused = true)]
async fn z11_calls_wait_for_calls_ahead_of_them() {
    let stage = Stage::set(Remote::always(status(200).after(1000))).await;
    stage.connection("a", json!({"use_queue": true, "max_retries": 5})).await;
    let calls: Vec<_> = (0..5).map(|number| stage.send_aside("a", &number.to_string())).collect();
    for call in calls {
        assert_eq!(call.await.unwrap().state, OutcomeState::IsOk);
    }
    assert_eq!(stage.remote.bodies(), ["0", "1", "2", "3", "4"]);
    assert_eq!(stage.remote.most_at_once(), 1);
}

#[tokio::test(start_paused = true)]
async fn z11_two_hundred_callers_at_once_and_none_hangs_past_its_timeout() {
    let stage = Arc::new(Stage::set(Remote::always(status(200).after(1000))).await);
    stage.connection("a", json!({"use_queue": true, "max_retries": 5, "timeout": 30})).await;
    let began = stage.now();
    let calls: Vec<_> = (0..200)
        .map(|number| {
            let stage = Arc::clone(&stage);
            tokio::spawn(async move {
                let outcome = stage.send("a", &format!("{number:03}")).await;
                (outcome, stage.now())
            })
        })
        .collect();
    let mut ok = 0;
    for call in calls {
        let (outcome, at) = call.await.unwrap();
        assert!(at.since(began).as_millis() <= 31_000, "{outcome:?} after {}", at.since(began));
        match outcome.state {
            OutcomeState::IsOk => ok += 1,
            state => assert_eq!(state, OutcomeState::IsInQueue),
        }
    }
    assert!((29..=31).contains(&ok), "{ok} had their turn within 30 s");
    pass(200.0).await;
    let wanted: Vec<String> = (0..200).map(|number| format!("{number:03}")).collect();
    assert_eq!(stage.remote.bodies(), wanted, "each once, in the order of arrival");
    stage.check().await;
}

#[tokio::test(start_paused = true)]
async fn z10_the_request_of_a_caller_who_leaves_is_delivered() {
    let stage = Stage::set(Remote::plays(vec![refused().after(500), refused(), status(200)])).await;
    stage.connection("a", json!({"use_queue": true, "max_retries": 0, "use_dlq": false})).await;
    let call = stage.send_aside("a", "x");
    pass(0.1).await;
    call.abort();
    pass(60.0).await;
    // Nobody is there to be told, so it goes round after round (Z16), 8 s between two.
    assert_eq!(stage.remote.count(), 3);
    assert_eq!(stage.remote.gaps(), [8500, 8000]);
}

#[tokio::test(start_paused = true)]
async fn z10_while_paused_a_call_is_stored_and_told_at_once() {
    let stage = Stage::set(Remote::always(status(200))).await;
    stage.connection("a", json!({"use_queue": true, "max_retries": 3})).await;
    stage.pause("a", true).await;
    assert_eq!(stage.send("a", "1").await.state, OutcomeState::IsInQueue);
    pass(60.0).await;
    assert_eq!(stage.remote.count(), 0);
    stage.pause("a", false).await;
    pass(1.0).await;
    assert_eq!(stage.remote.bodies(), ["1"]);
}

// D10: a pause ends the waiting of those whose turn has not come.
#[tokio::test(start_paused = true)]
async fn z11_a_pause_while_callers_wait_tells_them() {
    let stage = Stage::set(Remote::always(status(200).after(2000))).await;
    stage.connection("a", json!({"use_queue": true})).await;
    let first = stage.send_aside("a", "1");
    settle_down().await;
    let second = stage.send_aside("a", "2");
    pass(1.0).await;
    stage.pause("a", true).await;
    assert_eq!(second.await.unwrap().state, OutcomeState::IsInQueue);
    assert_eq!(first.await.unwrap().state, OutcomeState::IsOk, "the attempt under way ends as it does");
    assert_eq!(stage.remote.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn z31_publish_stores_and_returns() {
    let stage = Stage::set(Remote::always(status(200).after(60_000))).await;
    let connection = stage.connection("a", json!({"use_queue": true})).await;
    let before = stage.now();
    for number in 0..300 {
        stage.publish("a", &number.to_string()).await;
    }
    assert_eq!(stage.now(), before);
    assert_eq!(stage.store.queue_summary(connection.id).await.unwrap().waiting, 300);
}

// proves: Z14
#[tokio::test(start_paused = true)]
async fn z31_what_is_published_is_delivered_once_and_in_order() {
    let stage = Stage::set(Remote::always(status(200))).await;
    stage.connection("a", json!({"use_queue": true})).await;
    for number in 0..500 {
        stage.publish("a", &number.to_string()).await;
    }
    pass(60.0).await;
    assert_eq!(stage.remote.bodies(), (0..500).map(|number| number.to_string()).collect::<Vec<_>>());
    stage.check().await;
    assert_eq!(stage.store.counts(None).await.unwrap().success, 500);
}

// D10: the timeout bounds the wait for the turn; an attempt that has begun is waited for.
#[tokio::test(start_paused = true)]
async fn z11_a_caller_whose_turn_came_in_time_is_told_the_outcome() {
    let stage = Stage::set(Remote::always(status(200).after(1500))).await;
    stage.connection("a", json!({"use_queue": true, "timeout": 2})).await;
    let calls: Vec<_> = (0..3).map(|number| stage.send_aside("a", &number.to_string())).collect();
    let mut states = Vec::new();
    for call in calls {
        states.push(call.await.unwrap().state);
    }
    assert_eq!(states, [OutcomeState::IsOk, OutcomeState::IsOk, OutcomeState::IsInQueue]);
    pass(10.0).await;
    assert_eq!(stage.remote.bodies(), ["0", "1", "2"]);
}

// A caller must not be told that a request waits which was discarded with its connection.
#[tokio::test(start_paused = true)]
async fn z18_callers_are_told_when_the_connection_is_deleted_under_them() {
    for ordered in [true, false] {
        for max_retries in [0, 3] {
            let stage = Stage::set(Remote::always(timed_out(5000))).await;
            let settings = json!({"use_queue": true, "max_retries": max_retries, "ordered": ordered, "concurrency": 1});
            stage.connection("a", settings).await;
            let calls = ["1", "2", "3"].map(|body| stage.send_aside("a", body));
            pass(1.0).await;
            stage.engine.delete_connection(stage.project, &named("a"), true).await.unwrap();
            pass(120.0).await;
            for call in calls {
                let outcome = call.await.unwrap();
                assert_eq!(outcome.state, OutcomeState::NotDelivered, "{ordered} {max_retries}: {outcome:?}");
                assert!(outcome.error.unwrap().starts_with("discarded with its connection"));
                assert_eq!(stage.status(outcome.msg_id.unwrap()).await, Status::Discarded);
            }
            assert_eq!(stage.remote.count(), 1, "nothing was sent after it");
            stage.check().await;
        }
    }
}
