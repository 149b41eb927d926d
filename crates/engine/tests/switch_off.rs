//! Endpoints that are switched off, over simulated time: on a 410, after a hundred deliveries, after three days; what becomes of what waits;
//! on again; and that its owner is told once (V03-V06, D27-D29).
#![allow(clippy::unwrap_used, reason = "tests")]

mod stage;

use std::sync::Arc;

use postrider_core::decide::ByHand;
use postrider_core::delivery::{Delivery, Status};
use postrider_core::health::{EndpointHealth, SwitchOffReason};
use postrider_core::id::{DeliveryId, EndpointId};
use postrider_core::job::JobAct;
use postrider_core::{Failure, NoAnswerKind, Reply, Wait};
use postrider_engine::{JobOrder, JobTarget, Refusal, TestEvent};
use postrider_store::{DeliveryFilter, MemoryStore, ProjectSettings, Store};
use postrider_wire::mail::NotMailed;
use serde_json::json;
use stage::faltering::Faltering;
use stage::scene::{Scene, options};
use stage::*;

const HOUR_S: f64 = 3600.0;

#[tokio::test(start_paused = true)]
async fn v03_a_410_switches_off_at_once_and_a_late_success_does_not_undo_it() {
    let mut scene = Scene::set().await;
    let endpoint = scene.endpoint("a", json!({})).await;
    let healthy = scene.endpoint("b", json!({})).await;
    // The first is still under way when the second is told that the address is gone.
    scene.answers("a", status(200).after(5000));
    assert_eq!(scene.publish("slow").await, 2);
    pass(1.0).await;
    scene.answers("a", status(410));
    assert_eq!(scene.publish("gone").await, 2);
    pass(1.0).await;
    assert_eq!(scene.off(&endpoint).await, Some(SwitchOffReason::Gone));
    assert_eq!(scene.audited("endpoint.switch_off").await, 1);
    pass(10.0).await;
    let slow = &scene.deliveries().await[0];
    assert_eq!(slow.progress.status, Status::Success, "the late one was delivered all the same");
    assert_eq!(scene.off(&endpoint).await, Some(SwitchOffReason::Gone));
    assert_eq!(
        (scene.off(&healthy).await, scene.publish("later").await),
        (None, 1),
        "only the other one gets new ones"
    );
    scene.stage.crash_and_restart().await;
    assert_eq!((scene.off(&endpoint).await, scene.publish("later still").await), (Some(SwitchOffReason::Gone), 1));
    pass(60.0).await;
    assert_eq!(scene.postman.subjects(), ["Switched off: the webhook endpoint a"], "its owner is told once");
    scene.stage.check().await;
}

/// D20: an ordinary status under the other preset, unless its owner wants it otherwise.
#[tokio::test(start_paused = true)]
async fn v03_only_where_the_endpoint_says_so() {
    let scene = Scene::set().await;
    let plain = scene.endpoint("plain", json!({"retry_preset": "webhook"})).await;
    let strict = scene.endpoint("strict", json!({"retry_preset": "webhook", "switch_off_on_gone": true})).await;
    let patient = scene.endpoint("patient", json!({"switch_off_on_gone": false})).await;
    for name in ["plain", "strict", "patient"] {
        scene.answers(name, status(410));
    }
    scene.publish("x").await;
    pass(1.0).await;
    assert_eq!(scene.off(&plain).await, None);
    assert_eq!(scene.off(&strict).await, Some(SwitchOffReason::Gone));
    assert_eq!(scene.off(&patient).await, None);
    let ends = scene.ends().await;
    assert_eq!(ends.iter().filter(|(status, _)| *status == Status::Dlq).count(), 3, "dead-lettered at once: {ends:?}");
}

#[tokio::test(start_paused = true)]
async fn v04_a_hundred_different_deliveries_in_a_row_however_often_each_fails() {
    for ordered in [false, true] {
        let scene = Scene::set().await;
        let endpoint = scene.endpoint("a", json!({"ordered": ordered, "max_attempts": 2, "retry_delays": [1]})).await;
        scene.answers("a", status(500));
        for n in 0..99 {
            scene.publish(&format!("{n}")).await;
        }
        pass(600.0).await;
        let failed = scene.state(&endpoint).await.health;
        assert_eq!((failed.failed_in_a_row, scene.off(&endpoint).await), (99, None), "ordered: {ordered}");
        assert_eq!(scene.stage.remote.count(), 198, "each failed twice and counts once");
        // One success, and the count starts over.
        scene.answers("a", status(200));
        scene.publish("well").await;
        pass(10.0).await;
        assert_eq!(scene.state(&endpoint).await.health, EndpointHealth::default());
        scene.answers("a", refused());
        for n in 0..100 {
            scene.publish(&format!("again {n}")).await;
        }
        pass(600.0).await;
        assert_eq!(scene.off(&endpoint).await, Some(SwitchOffReason::FailuresInARow), "ordered: {ordered}");
        assert_eq!(scene.postman.subjects().len(), 1);
        scene.stage.check().await;
    }
}

/// Crashes at any moment: what was decided and not written is decided again, and counted once.
#[tokio::test(start_paused = true)]
async fn v04_counts_are_never_off_by_a_crash() {
    for ordered in [false, true] {
        let mut scene = Scene::set().await;
        let endpoint = scene.endpoint("a", json!({"ordered": ordered, "retry_delays": [1], "jitter": false})).await;
        scene.answers("a", status(500));
        for n in 0..30 {
            scene.publish(&format!("{n}")).await;
        }
        for round in 0..12 {
            pass(0.013 + f64::from(round) * 0.007).await;
            scene.stage.crash_and_restart().await;
        }
        pass(600.0).await;
        let counted = scene.deliveries().await.iter().filter(|one| one.progress.counting.stored().is_some()).count();
        let health = scene.state(&endpoint).await.health;
        assert_eq!((health.failed_in_a_row as usize, counted), (30, 30), "ordered: {ordered}");
        scene.stage.check().await;
    }
}

/// A store that falters between: the same decisions are written later, and nothing is counted twice.
#[tokio::test(start_paused = true)]
async fn v04_counts_are_never_off_by_a_store_that_falters() {
    let memory = MemoryStore::default();
    let store = Arc::new(Faltering::new(memory.clone()));
    let remote = Remote::always(status(500));
    let stage =
        Stage::over(Arc::clone(&store) as Arc<dyn Store>, memory, remote, options(), PausedClock::shared()).await;
    let scene = Scene { stage, postman: Arc::default(), answers: Arc::default() };
    let endpoint = scene.endpoint("a", json!({"retry_delays": [1], "max_attempts": 3})).await;
    store.fail("settle", 7);
    for n in 0..20 {
        scene.publish(&format!("{n}")).await;
        store.fail("settle", 1 + n % 3);
        pass(0.2).await;
    }
    pass(600.0).await;
    assert_eq!(scene.state(&endpoint).await.health.failed_in_a_row, 20);
}

#[tokio::test(start_paused = true)]
async fn v04_failing_for_three_days_is_noticed_though_no_attempt_is_left() {
    let mut scene = Scene::set().await;
    let endpoint = scene.endpoint("a", json!({})).await;
    scene.answers("a", status(500));
    scene.publish("the only one").await;
    pass(46.0 * HOUR_S).await;
    assert_eq!(scene.ends().await, [(Status::Dlq, Some(Failure::Status))], "the ladder has run out after 45 hours");
    pass(25.9 * HOUR_S).await;
    assert_eq!(scene.off(&endpoint).await, None, "three days are not over");
    scene.stage.crash_and_restart().await;
    pass(0.2 * HOUR_S).await;
    assert_eq!(scene.off(&endpoint).await, Some(SwitchOffReason::FailingFor));
    assert_eq!((scene.publish("new").await, scene.audited("endpoint.switch_off").await), (0, 1));
    pass(60.0).await;
    assert_eq!(scene.postman.subjects().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn v05_what_waits_is_dead_lettered_in_order_when_it_comes_due() {
    for ordered in [false, true] {
        let scene = Scene::set().await;
        let endpoint = scene.endpoint("a", json!({"ordered": ordered})).await;
        scene.answers("a", status(500));
        for n in 0..40 {
            scene.publish(&format!("{n}")).await;
        }
        pass(30.0).await;
        let attempts = scene.stage.remote.count();
        scene.stage.engine.disable_endpoint(scene.stage.project, EndpointId::of(endpoint.id)).await.unwrap();
        assert_eq!(scene.publish("never").await, 0, "no delivery now or later");
        pass(20.0).await;
        assert!(scene.ends().await.iter().all(|end| end.0 == Status::Pending), "nothing is due yet");
        pass(20.0).await;
        let dead = scene.deliveries().await;
        assert_eq!(dead.len(), 40);
        for one in &dead {
            let progress = &one.progress;
            assert_eq!((progress.status, progress.failure), (Status::Dlq, Some(Failure::EndpointOff)), "{progress:?}");
        }
        assert_eq!(scene.stage.remote.count(), attempts, "without an attempt");
        let mut by_arrival = dead.clone();
        by_arrival.sort_by_key(|one| (one.progress.dead_at, one.id));
        let ids = |list: &[Delivery]| list.iter().map(|one| one.id).collect::<Vec<DeliveryId>>();
        if ordered {
            assert_eq!(ids(&by_arrival), ids(&dead), "in the order in which they came");
        }
        scene.stage.check().await;
    }
}

/// What still waits when it is on again is delivered (D28), and the count starts over.
#[tokio::test(start_paused = true)]
async fn v06_on_again_what_still_waits_is_delivered_and_the_count_starts_over() {
    let scene = Scene::set().await;
    let endpoint = scene.endpoint("a", json!({})).await;
    scene.answers("a", status(500));
    scene.publish("waits").await;
    pass(1.0).await;
    scene.answers("a", status(410));
    scene.publish("gone").await;
    pass(1.0).await;
    assert!(scene.off(&endpoint).await.is_some());
    scene.answers("a", status(200));
    scene.enable(&endpoint).await;
    let state = scene.state(&endpoint).await;
    assert_eq!((state.off, state.health), (None, EndpointHealth::default()));
    assert_eq!(scene.publish("new").await, 1);
    pass(120.0).await;
    let ends = scene.ends().await;
    let statuses: Vec<Status> = ends.iter().map(|end| end.0).collect();
    assert_eq!(statuses, [Status::Success, Status::Dlq, Status::Success]);
    assert_eq!(scene.audited("endpoint.enable").await, 1);
    scene.enable(&endpoint).await;
    assert_eq!(scene.audited("endpoint.enable").await, 1, "it is on: nothing was changed");
}

/// D29: what was dialled before it was mended does not count against it.
#[tokio::test(start_paused = true)]
async fn v06_a_late_410_does_not_switch_off_what_was_switched_on_since() {
    let scene = Scene::set().await;
    let endpoint = scene.endpoint("a", json!({})).await;
    scene.answers("a", status(410).after(5000));
    scene.publish("late").await;
    pass(1.0).await;
    scene.answers("a", status(410));
    scene.publish("gone").await;
    pass(1.0).await;
    scene.enable(&endpoint).await;
    pass(10.0).await;
    assert_eq!(scene.off(&endpoint).await, None);
}

// proves: V04, D27
#[tokio::test(start_paused = true)]
async fn v04_what_a_person_sends_again_never_counts_and_its_success_resets() {
    let scene = Scene::set().await;
    let endpoint =
        scene.endpoint("a", json!({"retry_delays": [1], "max_attempts": 1, "switch_off_after_failures": 3})).await;
    scene.answers("a", status(500));
    for n in 0..2 {
        scene.publish(&format!("{n}")).await;
    }
    pass(10.0).await;
    let ids: Vec<DeliveryId> = scene.deliveries().await.iter().map(|one| one.id).collect();
    for act in [ByHand::Retry, ByHand::Resend] {
        for id in &ids {
            scene.stage.engine.by_hand(scene.stage.project, *id, act).await.unwrap();
            pass(3600.0).await;
        }
        let state = scene.state(&endpoint).await;
        assert_eq!((state.health.failed_in_a_row, state.off), (2, None), "{act:?}");
    }
    scene.answers("a", status(200));
    scene.stage.engine.by_hand(scene.stage.project, ids[0], ByHand::Resend).await.unwrap();
    pass(10.0).await;
    assert_eq!(scene.state(&endpoint).await.health, EndpointHealth::default());
}

// proves: V05, V08, D27, D45
#[tokio::test(start_paused = true)]
async fn v05_off_or_not_entitled_nobody_sends_anything_again() {
    let scene = Scene::set().await;
    let endpoint = scene.endpoint("a", json!({"retry_delays": [60], "jitter": false})).await;
    scene.answers("a", status(500));
    scene.publish("x").await;
    pass(1.0).await;
    scene.settings(ProjectSettings { entitled: false, ..Default::default() }).await;
    pass(120.0).await;
    assert_eq!(scene.ends().await, [(Status::Dlq, Some(Failure::NotEntitled))]);
    let id = scene.deliveries().await[0].id;
    for act in [ByHand::Retry, ByHand::Resend] {
        let refused = scene.stage.engine.by_hand(scene.stage.project, id, act).await;
        assert!(matches!(&refused, Err(Refusal::Conflict(why)) if why.contains("entitled")), "{refused:?}");
    }
    scene.settings(ProjectSettings::default()).await;
    scene.stage.engine.disable_endpoint(scene.stage.project, EndpointId::of(endpoint.id)).await.unwrap();
    for act in [ByHand::Retry, ByHand::Resend] {
        let refused = scene.stage.engine.by_hand(scene.stage.project, id, act).await;
        assert!(matches!(&refused, Err(Refusal::Conflict(why)) if why.contains("the endpoint is off")), "{refused:?}");
    }
    let order = JobOrder { act: JobAct::Retry, target: JobTarget::Ids(vec![id]) };
    let job = scene.stage.engine.create_job(scene.stage.project, order).await.unwrap();
    pass(5.0).await;
    let job = scene.stage.engine.job(scene.stage.project, job.id).await.unwrap();
    assert_eq!((job.done, job.skipped_in_all()), (0, 1), "{job:?}");
    assert!(job.skipped.keys().any(|reason| reason.as_str() == "endpoint_off"), "{job:?}");
    scene.enable(&endpoint).await;
    scene.answers("a", status(200));
    scene.stage.engine.by_hand(scene.stage.project, id, ByHand::Retry).await.unwrap();
    pass(5.0).await;
    assert_eq!(scene.ends().await, [(Status::Success, None)]);
}

// proves: V03, V04, V09
#[tokio::test(start_paused = true)]
async fn v09_tests_and_resends_are_ten_a_minute_together_and_a_job_counts_once() {
    let scene = Scene::set().await;
    let endpoint = scene.endpoint("a", json!({})).await;
    let (engine, project, id) = (&scene.stage.engine, scene.stage.project, EndpointId::of(endpoint.id));
    scene.publish("x").await;
    pass(1.0).await;
    let delivery = scene.deliveries().await[0].id;
    scene.answers("a", status(500));
    for _ in 0..4 {
        let probe = engine.test_endpoint(project, id, TestEvent::default()).await.unwrap();
        assert_eq!((probe.attempt.failure, probe.attempt.status), (Some(Failure::Status), Some(500)));
    }
    assert_eq!(scene.state(&endpoint).await.health, EndpointHealth::default(), "tests count for nothing");
    assert_eq!(scene.deliveries().await.len(), 1, "and leave no delivery");
    assert!(scene.state(&endpoint).await.last_test.is_some_and(|test| !test.succeeded));
    scene.answers("a", status(200));
    for _ in 0..5 {
        engine.by_hand(project, delivery, ByHand::Resend).await.unwrap();
        pass(1.0).await;
    }
    let filter = Box::new(DeliveryFilter { statuses: vec![Status::Success], ..DeliveryFilter::default() });
    let order = JobOrder { act: JobAct::Resend, target: JobTarget::Filter(filter) };
    engine.create_job(project, order.clone()).await.unwrap();
    for refused in [
        engine.test_endpoint(project, id, TestEvent::default()).await.err(),
        engine.by_hand(project, delivery, ByHand::Resend).await.err(),
        engine.create_job(project, order).await.err(),
    ] {
        let Some(Refusal::TooMany { retry_after, .. }) = refused else { panic!("{refused:?}") };
        assert!(retry_after > Wait::from_secs(50) && retry_after <= Wait::from_secs(60), "{retry_after}");
    }
    pass(60.0).await;
    let probe = engine.test_endpoint(project, id, TestEvent::default()).await.unwrap();
    assert_eq!(probe.attempt.failure, None);
    assert!(scene.state(&endpoint).await.last_test.is_some_and(|test| test.succeeded));
}

/// The mail server is away over a crash; then it is there, and takes one mail.
#[tokio::test(start_paused = true)]
async fn v04_the_owner_is_told_once_also_over_a_crash_and_a_mail_server_that_is_away() {
    let mut scene = Scene::set().await;
    scene.endpoint("a", json!({})).await;
    *scene.postman.refuses.lock().unwrap() = Some(NotMailed::Later("greylisted".to_owned()));
    scene.answers("a", status(410));
    scene.publish("x").await;
    pass(100.0).await;
    scene.stage.crash_and_restart().await;
    pass(10.0).await;
    *scene.postman.refuses.lock().unwrap() = None;
    pass(2.0 * HOUR_S).await;
    let taken = scene.postman.told();
    assert_eq!(taken.len(), 1, "{taken:?}");
    assert_eq!(taken[0].to, ["ada@clinic.example"]);
    assert!(taken[0].text.contains("answered 410 Gone") && taken[0].text.contains("/enable"), "{}", taken[0].text);
    scene.stage.crash_and_restart().await;
    pass(HOUR_S).await;
    assert_eq!(scene.postman.subjects().len(), 1, "and not again");
}

/// A long outage of the mail server: whoever tells keeps telling, and nobody else begins.
#[tokio::test(start_paused = true)]
async fn v04_a_mail_that_waits_for_hours_is_one_mail() {
    let scene = Scene::set().await;
    scene.endpoint("a", json!({})).await;
    *scene.postman.refuses.lock().unwrap() = Some(NotMailed::Later("greylisted".to_owned()));
    scene.answers("a", status(410));
    scene.publish("x").await;
    pass(1.5 * HOUR_S).await;
    *scene.postman.refuses.lock().unwrap() = None;
    pass(2.0 * HOUR_S).await;
    assert_eq!(scene.postman.subjects().len(), 1);
}

// proves: P09, D43
#[tokio::test(start_paused = true)]
async fn p09_an_endpoint_that_keeps_failing_rings_once_and_once_when_it_is_well() {
    let mut scene = Scene::set().await;
    scene.endpoint("a", json!({})).await;
    scene.answers("a", status(500));
    scene.publish("x").await;
    let rung = |scene: &Scene| {
        let taken = scene.postman.taken.lock().unwrap();
        let of_endpoints =
            taken.iter().map(|mail| mail.subject.clone()).filter(|subject| subject.contains("endpoint_failing"));
        of_endpoints.collect::<Vec<_>>()
    };
    pass(0.9 * HOUR_S).await;
    assert!(rung(&scene).is_empty());
    pass(0.2 * HOUR_S).await;
    let raised = "Alert: endpoint_failing of a (default)".to_owned();
    assert_eq!(rung(&scene), std::slice::from_ref(&raised));
    scene.stage.crash_and_restart().await;
    scene.answers("a", status(200));
    pass(3.0 * HOUR_S).await;
    assert_eq!(rung(&scene), [raised, "Recovered: endpoint_failing of a (default)".to_owned()]);
}

/// The seed's row `error`: tried again on the schedule, and no fault of the endpoint's.
#[tokio::test(start_paused = true)]
async fn v08_trouble_on_our_side_is_an_error_is_retried_and_counts_for_nothing() {
    let scene = Scene::set().await;
    let endpoint = scene.endpoint("a", json!({})).await;
    let broken = Reply::unanswered(NoAnswerKind::Internal, "sending broke down");
    scene.answers("a", Play { after_ms: 0, reply: broken });
    scene.publish("x").await;
    pass(62.0).await;
    let progress = scene.deliveries().await.remove(0).progress;
    assert_eq!((progress.status, progress.failure, progress.attempts), (Status::Pending, Some(Failure::Error), 2));
    assert_eq!(scene.state(&endpoint).await.health, EndpointHealth::default());
}
