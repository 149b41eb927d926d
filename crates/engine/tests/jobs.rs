//! Jobs: one act over many deliveries, through crashes, pauses and the hands of others (Z23, P08, D06, D27, D44).
#![allow(clippy::unwrap_used, reason = "tests")]

mod stage;

use std::sync::Arc;

use postrider_core::Wait;
use postrider_core::delivery::Status;
use postrider_core::id::DeliveryId;
use postrider_core::job::{JobAct, JobControl, JobState, SkipReason};
use postrider_core::topic::TopicName;
use postrider_engine::{EngineOptions, JobOrder, JobTarget, Refusal};
use postrider_store::{AuditFilter, DeliveryFilter, Job, MemoryStore, PageRequest, StoreRead};
use serde_json::json;
use stage::faltering::Faltering;
use stage::*;

fn order(act: JobAct, target: JobTarget) -> JobOrder {
    JobOrder { act, target }
}

async fn begun(stage: &Stage, act: JobAct, target: JobTarget) -> Job {
    stage.engine.create_job(stage.project, order(act, target)).await.unwrap()
}

fn of(connection: &postrider_core::connection::Connection) -> JobTarget {
    JobTarget::Filter(Box::new(DeliveryFilter { connection_id: Some(connection.id), ..DeliveryFilter::default() }))
}

async fn now(stage: &Stage, job: &Job) -> Job {
    stage.engine.job(stage.project, job.id).await.unwrap()
}

async fn ended(stage: &Stage, job: &Job) -> Job {
    for _ in 0..1000 {
        let job = now(stage, job).await;
        if job.state.has_ended() {
            return job;
        }
        pass(0.1).await;
    }
    panic!("it goes on and on: {:?}", now(stage, job).await);
}

async fn published(stage: &Stage, name: &str, count: usize) -> Vec<DeliveryId> {
    let mut ids = Vec::new();
    for number in 0..count {
        ids.push(stage.publish(name, &number.to_string()).await);
    }
    ids
}

fn dead_on_arrival() -> serde_json::Value {
    json!({"use_queue": true, "max_retries": 0})
}

// proves: Z23, P08, D27
#[tokio::test(start_paused = true)]
async fn z23_all_dead_letters_are_retried_once_and_in_their_order() {
    let options = EngineOptions { job_batch_max: 7, ..EngineOptions::default() };
    let stage = Stage::with(Remote::always(refused()), options).await;
    let connection = stage.connection("a", dead_on_arrival()).await;
    let ids = published(&stage, "a", 40).await;
    pass(5.0).await;
    assert_eq!(stage.remote.count(), 40);
    // Each fails again and is dead-lettered once more while the job goes on.
    let job = begun(&stage, JobAct::Retry, of(&connection)).await;
    assert_eq!((job.state, job.who.as_str()), (JobState::Running, "system"));
    let job = ended(&stage, &job).await;
    assert_eq!((job.state, job.done, job.matched), (JobState::Done, 40, Some(40)));
    assert!(job.skipped.is_empty() && job.ended_at.is_some(), "{job:?}");
    let ends = AuditFilter { action: Some("job.end".to_owned()), ..AuditFilter::default() };
    let ends = stage.engine.audit_entries(&ends, PageRequest { limit: 10, cursor: None }).await.unwrap().items;
    assert_eq!(ends.len(), 1, "its end is in the audit log");
    assert_eq!((&ends[0].object, &ends[0].after.as_ref().unwrap()["done"]), (&Some(job.id.to_string()), &json!(40)));
    pass(60.0).await;
    assert_eq!(stage.remote.count(), 80, "once each");
    let again: Vec<DeliveryId> = stage.remote.seen()[40..].iter().map(|seen| seen.id).collect();
    assert_eq!(again, ids);
    stage.check().await;
}

// proves: Z23, P08
#[tokio::test(start_paused = true)]
async fn p08_a_crash_in_the_middle_repeats_nothing_and_the_job_goes_on() {
    for ordered in [true, false] {
        let options = EngineOptions { job_batch_max: 3, ..EngineOptions::default() };
        let mut stage = Stage::with(Remote::always(status(500).after(0)), options).await;
        let connection = stage.connection("a", json!({"use_queue": true, "max_retries": 0, "ordered": ordered})).await;
        published(&stage, "a", 50).await;
        pass(5.0).await;
        stage.remote.set(|_, _| status(200).after(0));
        let job = begun(&stage, JobAct::Retry, of(&connection)).await;
        let mut crashes = 0;
        while now(&stage, &job).await.done < 50 && crashes < 8 {
            pass(0.004).await;
            stage.crash_and_restart().await;
            crashes += 1;
        }
        let done = now(&stage, &job).await.done;
        assert!(crashes >= 3 && done < 50 * 2, "the crashes came too late: {crashes}, {done} done");
        let job = ended(&stage, &job).await;
        assert_eq!((job.done, job.skipped_in_all(), job.matched), (50, 0, Some(50)));
        pass(30.0).await;
        let counts = stage.store.counts(None).await.unwrap();
        assert_eq!(counts.success, 50, "{counts:?}");
        stage.check().await;
    }
}

// proves: D06, D44
#[tokio::test(start_paused = true)]
async fn d44_everything_that_waits_is_set_aside_but_what_was_under_way() {
    for ordered in [true, false] {
        let stage = Stage::set(Remote::always(status(200).after(5000))).await;
        let settings = json!({"use_queue": true, "ordered": ordered, "concurrency": 1});
        let connection = stage.connection("a", settings).await;
        // More than the owner's window and more than one step.
        let ids = published(&stage, "a", 300).await;
        pass(1.0).await;
        let job = begun(&stage, JobAct::SetAside, of(&connection)).await;
        pass(1.0).await;
        let half = now(&stage, &job).await;
        assert_eq!(
            (half.state, half.outstanding > 0),
            (JobState::Running, true),
            "the attempt is waited for: {half:?}"
        );
        let job = ended(&stage, &job).await;
        assert_eq!((job.done, job.matched), (299, Some(300)), "ordered: {ordered}");
        assert_eq!(job.skipped.get(&SkipReason::AlreadyDelivered), Some(&1));
        assert_eq!(stage.status(ids[0]).await, Status::Success);
        pass(60.0).await;
        assert_eq!(stage.remote.count(), 1, "nothing else was sent");
        let summary = stage.store.queue_summary(connection.id).await.unwrap();
        assert_eq!((summary.waiting, summary.dead), (0, 299));
        stage.check().await;
    }
}

// proves: D06
#[tokio::test(start_paused = true)]
async fn d06_commands_outlive_a_crash_of_the_owner_and_are_counted_once() {
    let mut stage = Stage::set(Remote::always(status(503).after(4000))).await;
    let connection = stage.connection("a", json!({"use_queue": true, "max_retries": 9, "use_dlq": false})).await;
    let ids = published(&stage, "a", 20).await;
    pass(1.0).await;
    let job = begun(&stage, JobAct::Discard, of(&connection)).await;
    pass(0.5).await;
    assert!(now(&stage, &job).await.outstanding > 0);
    stage.crash_and_restart().await;
    let job = ended(&stage, &job).await;
    assert_eq!((job.done, job.skipped_in_all(), job.outstanding), (20, 0, 0));
    for id in ids {
        assert_eq!(stage.status(id).await, Status::Discarded);
    }
    stage.check().await;
}

// proves: P08
#[tokio::test(start_paused = true)]
async fn p08_a_replay_sends_again_what_was_delivered_in_a_time_range() {
    let stage = Stage::set(Remote::always(status(200))).await;
    let connection = stage.connection("a", json!({"use_queue": true})).await;
    published(&stage, "a", 5).await;
    pass(60.0).await;
    let from = stage.now();
    let ids = published(&stage, "a", 5).await;
    pass(60.0).await;
    let filter = DeliveryFilter {
        connection_id: Some(connection.id),
        created_from: Some(from),
        created_before: Some(from + Wait::from_secs(30)),
        ..DeliveryFilter::default()
    };
    let target = JobTarget::Filter(Box::new(filter));
    let dry = stage.engine.count_for(stage.project, &order(JobAct::Resend, target.clone())).await.unwrap();
    assert_eq!(dry, (5, true));
    assert_eq!(stage.remote.count(), 10, "a dry run sends nothing");
    let job = begun(&stage, JobAct::Resend, target).await;
    assert_eq!(ended(&stage, &job).await.done, 5);
    pass(10.0).await;
    let again: Vec<DeliveryId> = stage.remote.seen()[10..].iter().map(|seen| seen.id).collect();
    assert_eq!(again, ids);
}

#[tokio::test(start_paused = true)]
async fn p08_a_job_is_paused_resumed_and_cancelled() {
    let options = EngineOptions { job_batch_max: 1, jobs_active_max: 2, ..EngineOptions::default() };
    let stage = Stage::with(Remote::always(refused()), options).await;
    let connection = stage.connection("a", dead_on_arrival()).await;
    published(&stage, "a", 100).await;
    pass(5.0).await;
    let job = begun(&stage, JobAct::Discard, of(&connection)).await;
    let tell = async |control| stage.engine.control_job(stage.project, job.id, control).await;
    pass(0.01).await;
    let paused = tell(JobControl::Pause).await.unwrap();
    assert!(paused.state == JobState::Paused && paused.done > 0 && paused.done < 100, "{paused:?}");
    pass(60.0).await;
    assert_eq!(now(&stage, &job).await, paused, "it stands still");
    let second = begun(&stage, JobAct::Retry, JobTarget::Ids(Vec::new())).await;
    let third = stage.engine.create_job(stage.project, order(JobAct::Retry, of(&connection))).await;
    // The second one had nothing to do and may have ended; the limit counts what has not.
    let _ = second;
    if let Err(refusal) = third {
        assert_eq!(refusal, Refusal::Full { limit: "jobs_active_max" });
    }
    tell(JobControl::Resume).await.unwrap();
    pass(0.01).await;
    let cancelled = tell(JobControl::Cancel).await.unwrap();
    assert!(cancelled.done > paused.done, "it went on");
    pass(60.0).await;
    assert_eq!(now(&stage, &job).await.done, cancelled.done);
    let refusal = tell(JobControl::Resume).await.unwrap_err();
    assert_eq!(refusal, Refusal::Conflict("the job has ended: it is CANCELLED".to_owned()));
    let foreign = postrider_core::id::ProjectId::from_u128(9);
    assert!(matches!(stage.engine.job(foreign, job.id).await, Err(Refusal::NotFound { .. })));
}

#[tokio::test(start_paused = true)]
async fn p08_only_so_many_jobs_at_once() {
    let options = EngineOptions { jobs_active_max: 1, ..EngineOptions::default() };
    let stage = Stage::with(Remote::always(status(200).after(60_000)), options).await;
    let connection = stage.connection("a", json!({"use_queue": true})).await;
    published(&stage, "a", 2).await;
    let first = begun(&stage, JobAct::SetAside, of(&connection)).await;
    pass(1.0).await;
    let second = stage.engine.create_job(stage.project, order(JobAct::SetAside, of(&connection))).await;
    assert_eq!(second, Err(Refusal::Full { limit: "jobs_active_max" }));
    ended(&stage, &first).await;
    begun(&stage, JobAct::SetAside, of(&connection)).await;
}

#[tokio::test(start_paused = true)]
async fn z23_ids_are_taken_once_each_and_what_cannot_be_done_is_told() {
    let stage = Stage::set(Remote::new(
        |outgoing, _| {
            if &outgoing.body[..] == b"0" { refused() } else { status(200).after(0) }
        },
    ))
    .await;
    stage.connection("a", dead_on_arrival()).await;
    let ids = published(&stage, "a", 2).await;
    pass(5.0).await;
    let named = vec![ids[0], DeliveryId::from_u128(7), ids[1], ids[0]];
    let job = begun(&stage, JobAct::Retry, JobTarget::Ids(named)).await;
    let job = ended(&stage, &job).await;
    assert_eq!((job.matched, job.done), (Some(3), 1));
    let skipped: Vec<_> = job.skipped.into_iter().collect();
    assert_eq!(skipped, [(SkipReason::AlreadyDelivered, 1), (SkipReason::NotFound, 1)]);
}

// proves: Z22
#[tokio::test(start_paused = true)]
async fn z22_a_job_forwards_to_a_topic_as_long_as_there_is_one() {
    let options = EngineOptions { job_batch_max: 4, ..EngineOptions::default() };
    let stage = Stage::with(Remote::always(refused()), options).await;
    let connection = stage.connection("a", dead_on_arrival()).await;
    published(&stage, "a", 30).await;
    pass(5.0).await;
    let topic = TopicName::new("claims").unwrap();
    let act = JobAct::Forward { topic: topic.clone(), keep_header: true };
    let missing = stage.engine.create_job(stage.project, order(act.clone(), of(&connection))).await;
    assert_eq!(missing, Err(Refusal::NotFound { what: "topic", name: "claims".to_owned() }));
    let created = stage.engine.create_topic(stage.project, topic.clone(), String::new(), Wait::from_secs(3600)).await;
    let created = created.unwrap();
    let job = begun(&stage, act, of(&connection)).await;
    pass(0.003).await;
    let page = PageRequest { limit: 100, cursor: None };
    let published = stage.store.topic_messages(&created, page).await.unwrap().items.len() as u64;
    stage.engine.delete_topic(stage.project, &topic).await.unwrap();
    let job = ended(&stage, &job).await;
    assert!(published > 0 && job.done >= published && job.done < 30, "{published} {job:?}");
    assert_eq!(job.skipped.get(&SkipReason::NoTopic), Some(&(30 - job.done)));
    let summary = stage.store.queue_summary(connection.id).await.unwrap();
    assert_eq!(summary.dead, 30 - job.done);
}

#[tokio::test(start_paused = true)]
async fn law2_a_step_whose_store_falters_is_made_once() {
    let memory = MemoryStore::default();
    let store = Arc::new(Faltering::new(memory.clone()));
    let remote = Remote::always(refused());
    let options = EngineOptions { job_batch_max: 5, ..EngineOptions::default() };
    let stage = Stage::over(store.clone(), memory, remote, options, PausedClock::shared()).await;
    let connection = stage.connection("a", dead_on_arrival()).await;
    published(&stage, "a", 12).await;
    pass(5.0).await;
    store.fail("step_job", 3);
    let job = begun(&stage, JobAct::Retry, of(&connection)).await;
    let job = ended(&stage, &job).await;
    assert_eq!((job.done, job.matched), (12, Some(12)));
    pass(5.0).await;
    assert_eq!(stage.remote.count(), 24);
}
