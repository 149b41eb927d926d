//! Rounds of an ordered queue: when they begin, what they follow, and what holds them.

mod stage;

use postrider_core::Failure;
use postrider_core::delivery::Status;
use postrider_core::outcome::OutcomeState;
use postrider_engine::Refusal;
use postrider_store::StoreRead;
use serde_json::json;
use stage::*;

#[tokio::test(start_paused = true)]
async fn z15_a_published_request_is_attempted_at_once_and_then_follows_the_waits() {
    let stage = Stage::set(Remote::always(status(500).after(0))).await;
    stage.connection("a", json!({"use_queue": true, "max_retries": 5})).await;
    let id = stage.publish("a", "x").await;
    pass(120.0).await;
    assert_eq!(stage.remote.times(), [0, 2000, 6000, 14_000, 22_000, 30_000]);
    let progress = stage.delivery(id).await.progress;
    // proves: Z20
    assert_eq!((progress.status, progress.attempts, progress.rounds), (Status::Dlq, 6, 1));
    assert_eq!(progress.failure, Some(Failure::Status));
    assert_eq!(progress.dead_at.map(|at| at.as_millis()), Some(BEGAN_MS + 30_000));
}

#[tokio::test(start_paused = true)]
async fn z15_retry_after_means_nothing_in_the_queue() {
    let limited = Play { after_ms: 0, reply: answered(429, &[("Retry-After", "30")]) };
    let stage = Stage::set(Remote::always(limited)).await;
    stage.connection("a", json!({"use_queue": true, "max_retries": 2})).await;
    stage.publish("a", "x").await;
    pass(120.0).await;
    assert_eq!(stage.remote.gaps(), [2000, 4000]);
}

#[tokio::test(start_paused = true)]
async fn z16_with_the_dlq_off_it_stays_at_the_head_round_after_round() {
    let stage = Stage::set(Remote::always(refused())).await;
    stage.connection("a", json!({"use_queue": true, "use_dlq": false, "max_retries": 1})).await;
    let head = stage.publish("a", "head").await;
    stage.publish("a", "behind").await;
    pass(25.0).await;
    assert_eq!(stage.remote.times(), [0, 2000, 10_000, 12_000, 20_000, 22_000]);
    assert!(stage.remote.bodies().iter().all(|body| body == "head"));
    assert_eq!(stage.delivery(head).await.progress.rounds, 3);
    stage.remote.set(|_, _| status(200));
    pass(30.0).await;
    assert_eq!(stage.remote.bodies()[6..], ["head", "behind"]);
}

#[tokio::test(start_paused = true)]
async fn z15_the_policy_is_read_at_each_rounds_start() {
    let stage = Stage::set(Remote::always(refused())).await;
    let settings = json!({"use_queue": true, "use_dlq": false, "max_retries": 2, "retry_sleep_time": 3});
    stage.connection("a", settings).await;
    stage.publish("a", "x").await;
    pass(1.0).await;
    // In the middle of the first round: that one goes on with 3 s and 6 s.
    stage.change("a", json!({"use_queue": true, "use_dlq": false, "max_retries": 1, "retry_sleep_time": 5})).await;
    pass(40.0).await;
    assert_eq!(stage.remote.times()[..5], [0, 3000, 9000, 17_000, 22_000]);
}

#[tokio::test(start_paused = true)]
async fn z16_inactive_or_paused_holds_the_queue_and_nothing_marches_into_the_dlq() {
    let stage = Stage::set(Remote::always(status(200))).await;
    let connection = stage.connection("a", json!({"use_queue": true})).await;
    stage.pause("a", true).await;
    stage.publish("a", "1").await;
    stage.publish("a", "2").await;
    stage.change("a", json!({"use_queue": true, "is_active": false})).await;
    stage.pause("a", false).await;
    pass(3600.0).await;
    let summary = stage.store.queue_summary(connection.id).await.unwrap();
    assert_eq!((stage.remote.count(), summary.waiting, summary.dead), (0, 2, 0));
    stage.change("a", json!({"use_queue": true})).await;
    pass(1.0).await;
    assert_eq!(stage.remote.bodies(), ["1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn z17_what_is_too_old_leaves_for_the_dlq_even_while_paused() {
    let stage = Stage::set(Remote::always(status(200))).await;
    stage.connection("a", json!({"use_queue": true, "expires_after": 30})).await;
    stage.pause("a", true).await;
    let first = stage.publish("a", "1").await;
    pass(10.0).await;
    let second = stage.publish("a", "2").await;
    pass(20.5).await;
    let progress = stage.delivery(first).await.progress;
    assert_eq!((progress.status, progress.failure), (Status::Dlq, Some(Failure::Expired)));
    assert_eq!(progress.dead_at.map(|at| at.as_millis()), Some(BEGAN_MS + 30_000), "to the second");
    assert_eq!(stage.status(second).await, Status::Pending);
    pass(10.0).await;
    assert_eq!(stage.status(second).await, Status::Dlq);
    assert_eq!(stage.remote.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn z17_with_the_dlq_off_it_is_kept_in_the_log_as_expired() {
    let stage = Stage::set(Remote::always(refused())).await;
    let settings = json!({"use_queue": true, "use_dlq": false, "max_retries": 1, "expires_after": 15});
    stage.connection("a", settings).await;
    let id = stage.publish("a", "x").await;
    pass(60.0).await;
    assert_eq!(stage.remote.times(), [0, 2000, 10_000, 12_000]);
    assert_eq!(stage.status(id).await, Status::Expired);
    stage.check().await;
}

// D31
#[tokio::test(start_paused = true)]
async fn z18_with_the_queue_turned_off_what_is_queued_goes_first() {
    let stage = Stage::set(Remote::always(refused())).await;
    let on = json!({"use_queue": true, "max_retries": 9, "use_dlq": false});
    stage.connection("a", on).await;
    stage.publish("a", "1").await;
    stage.publish("a", "2").await;
    pass(1.0).await;
    stage.change("a", json!({"max_retries": 9, "use_dlq": false})).await;
    assert_eq!(stage.send("a", "3").await.state, OutcomeState::IsInQueue, "behind what is queued");
    stage.remote.set(|_, _| status(200));
    pass(30.0).await;
    assert_eq!(stage.remote.bodies()[1..], ["1", "2", "3"]);
    stage.remote.set(|_, _| status(500));
    assert_eq!(stage.send("a", "4").await.state, OutcomeState::NotDelivered, "direct again");
}

#[tokio::test(start_paused = true)]
async fn z18_deleting_with_requests_queued_is_refused_unless_forced() {
    let stage = Stage::set(Remote::always(refused())).await;
    let connection = stage.connection("a", json!({"use_queue": true, "max_retries": 9})).await;
    let id = stage.publish("a", "x").await;
    pass(1.0).await;
    let refusal = stage.engine.delete_connection(stage.project, &named("a"), false).await.unwrap_err();
    assert!(matches!(refusal, Refusal::Conflict(_)), "{refusal}");
    stage.engine.delete_connection(stage.project, &named("a"), true).await.unwrap();
    assert_eq!(stage.status(id).await, Status::Discarded);
    let before = stage.remote.count();
    pass(60.0).await;
    assert_eq!(stage.remote.count(), before);
    assert!(stage.store.connection(connection.id).await.unwrap().is_none());
    stage.check().await;
}

#[tokio::test(start_paused = true)]
async fn z14_one_connections_trouble_does_not_slow_another() {
    let stage =
        Stage::set(Remote::new(
            |outgoing, _| {
                if outgoing.connection.name == "bad" { timed_out(30_000) } else { status(200) }
            },
        ))
        .await;
    stage.connection("bad", json!({"use_queue": true, "max_retries": 9, "use_dlq": false})).await;
    stage.connection("good", json!({"use_queue": true})).await;
    for number in 0..200 {
        stage.publish("bad", &number.to_string()).await;
        stage.publish("good", &number.to_string()).await;
    }
    pass(2.5).await;
    let good: Vec<String> =
        stage.remote.seen().into_iter().filter(|seen| seen.connection == "good").map(|seen| seen.body).collect();
    assert_eq!(good, (0..200).map(|number| number.to_string()).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn z13_a_round_cut_short_resumes_where_it_was() {
    let mut stage = Stage::set(Remote::always(refused())).await;
    stage.connection("a", json!({"use_queue": true, "max_retries": 4})).await;
    let id = stage.publish("a", "x").await;
    pass(7.0).await;
    assert_eq!(stage.remote.times(), [0, 2000, 6000]);
    stage.crash_and_restart().await;
    pass(60.0).await;
    assert_eq!(stage.remote.times(), [0, 2000, 6000, 14_000, 22_000], "attempts already made count");
    let progress = stage.delivery(id).await.progress;
    assert_eq!((progress.status, progress.attempts), (Status::Dlq, 5));
}

// D04
#[tokio::test(start_paused = true)]
async fn z13_an_attempt_in_flight_at_a_crash_is_on_record_and_made_again() {
    let mut stage = Stage::set(Remote::plays(vec![status(200).after(5000), status(200)])).await;
    stage.connection("a", json!({"use_queue": true})).await;
    let first = stage.publish("a", "1").await;
    let second = stage.publish("a", "2").await;
    pass(1.0).await;
    stage.crash_and_restart().await;
    pass(10.0).await;
    assert_eq!(stage.remote.bodies(), ["1", "1", "2"]);
    let attempts = stage.store.attempts(first).await.unwrap();
    let failures: Vec<_> = attempts.iter().map(|attempt| attempt.failure).collect();
    assert_eq!(failures, [Some(Failure::Interrupted), None]);
    assert_eq!(stage.store.attempts(second).await.unwrap().len(), 1, "only the head");
    stage.check().await;
}

#[tokio::test(start_paused = true)]
async fn z13_nothing_accepted_is_lost_over_many_crashes() {
    let mut stage = Stage::set(Remote::always(status(200).after(300))).await;
    stage.connection("a", json!({"use_queue": true, "max_retries": 3})).await;
    let mut wanted = Vec::new();
    for number in 0..40 {
        stage.publish("a", &format!("{number:02}")).await;
        wanted.push(format!("{number:02}"));
        if number % 8 == 7 {
            pass(0.7).await;
            stage.crash_and_restart().await;
        }
    }
    pass(60.0).await;
    let mut first_receipts = Vec::new();
    for body in stage.remote.bodies() {
        if !first_receipts.contains(&body) {
            first_receipts.push(body);
        }
    }
    assert_eq!(first_receipts, wanted);
    assert_eq!(stage.store.counts(None).await.unwrap().success, 40);
    stage.check().await;
}

// Z16: a held queue does not pay for restarts.
#[tokio::test(start_paused = true)]
async fn z16_restarts_while_paused_count_for_nothing() {
    for ordered in [true, false] {
        let mut stage = Stage::set(Remote::always(status(200))).await;
        stage.connection("a", json!({"use_queue": true, "ordered": ordered})).await;
        stage.pause("a", true).await;
        let id = stage.publish("a", "x").await;
        for _ in 0..5 {
            stage.crash_and_restart().await;
            pass(20.0).await;
        }
        stage.pause("a", false).await;
        pass(1.0).await;
        let progress = stage.delivery(id).await.progress;
        assert_eq!((progress.status, progress.attempts), (Status::Success, 1), "ordered: {ordered}");
    }
}

// proves: R03
#[tokio::test(start_paused = true)]
async fn p01_a_connection_may_use_a_ladder() {
    for ordered in [true, false] {
        let stage = Stage::set(Remote::always(status(503).after(0))).await;
        let settings = json!({
            "use_queue": true, "ordered": ordered, "retry_delays": [60, 300], "max_attempts": 4, "jitter": false,
        });
        stage.connection("a", settings).await;
        let id = stage.publish("a", "x").await;
        pass(3600.0).await;
        assert_eq!(stage.remote.times(), [0, 60_000, 360_000, 660_000], "ordered: {ordered}");
        assert_eq!(stage.status(id).await, Status::Dlq);
    }
}
