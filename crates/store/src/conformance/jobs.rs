//! Cases of jobs: what they are about, that a step is one transaction, and that commands are counted where they are answered.

use postrider_core::Timestamp;
use postrider_core::connection::Connection;
use postrider_core::delivery::{Progress, Status};
use postrider_core::id::{AuditId, CommandId, DeliveryId, JobId};
use postrider_core::job::{JobAct, JobState, SkipReason};

use super::TestStore;
use super::fixture::*;
use crate::*;

const ACTIVE_MAX: u32 = 3;

fn dead_letters_of(world: &World<'_>) -> DeliveryFilter {
    DeliveryFilter { project_id: Some(world.project_id), statuses: vec![Status::Dlq], ..DeliveryFilter::default() }
}

fn new_job(world: &World<'_>, act: JobAct, scope: JobScope, millis: i64) -> NewJob {
    NewJob {
        id: JobId::new(at(millis), world.id()),
        project_id: world.project_id,
        act,
        scope,
        ids: Vec::new(),
        who: "admin".to_owned(),
        created_at: at(millis),
    }
}

async fn created(world: &World<'_>, act: JobAct, filter: DeliveryFilter, millis: i64) -> Job {
    let new = new_job(world, act, JobScope::Filter(Box::new(filter)), millis);
    world.store.create_job(new.clone(), ACTIVE_MAX).await.unwrap();
    job(world, new.id).await
}

async fn job(world: &World<'_>, id: JobId) -> Job {
    world.store.job(id).await.unwrap().expect("the job is there")
}

/// Everything that is left of it, in pieces.
async fn all_items(world: &World<'_>, mut job: Job, items_max: u32) -> Vec<DeliveryId> {
    let mut found = Vec::new();
    loop {
        let items = world.store.job_items(&job, items_max).await.unwrap();
        assert!(items.items.len() <= items_max as usize);
        found.extend(items.items.iter().map(|item| item.id));
        job.cursor = items.cursor;
        if items.ended {
            return found;
        }
    }
}

async fn dead(world: &World<'_>, connection: &Connection, count: i64) -> (Vec<DeliveryId>, QueueLease) {
    let stored = world.stored(connection, count).await;
    let lease = world.owner(connection, 10).await;
    for id in &stored {
        world.attempted(*id, lease, Status::Dlq).await;
    }
    (stored, lease)
}

fn pending(progress: Progress, now: Timestamp) -> Progress {
    Progress { age_from: now, dead_at: None, ..ended(progress, Status::Pending, now) }
}

fn step(job: &Job, settlements: Vec<Settlement>, millis: i64) -> JobStep {
    JobStep {
        job_id: job.id,
        version: job.version,
        settlements,
        commands: Vec::new(),
        skipped: Skipped::new(),
        cursor: job.cursor.clone(),
        walked: false,
        matched: None,
        now: at(millis),
        at_end: end_entry(job, millis),
    }
}

fn end_entry(job: &Job, millis: i64) -> AuditEntry {
    AuditEntry {
        id: AuditId::new(at(millis), 7),
        at: at(millis),
        project_id: Some(job.project_id),
        actor: AuditActor { id: "system".to_owned(), name: "system".to_owned(), address: None },
        action: "job.end".to_owned(),
        object: Some(job.id.to_string()),
        object_name: None,
        before: None,
        after: None,
        times: 1,
    }
}

/// What the audit log says of the ends of jobs.
async fn ends(store: &dyn Store) -> Vec<AuditEntry> {
    let filter = AuditFilter { action: Some("job.end".to_owned()), ..AuditFilter::default() };
    store.audit_entries(&filter, FIRST_PAGE).await.unwrap().items
}

async fn retry_of(world: &World<'_>, id: DeliveryId, millis: i64) -> Settlement {
    let delivery = world.delivery(id).await;
    let guard = Guard::Version(delivery.version);
    let decision = world.decision(id, guard, pending(delivery.progress, at(millis))).await;
    Settlement { placement: Placement::Tail, ..decision }
}

fn written(stepped: JobStepped) -> Job {
    match stepped {
        JobStepped::Written(job) => *job,
        other => panic!("the step was not written: {other:?}"),
    }
}

pub async fn z23_a_job_is_about_what_was_there_when_it_began(store: &dyn Store) {
    let world = World::new(store).await;
    let [a, b] = [world.connection("a", true).await, world.connection("b", false).await];
    let (in_a, lease) = dead(&world, &a, 5).await;
    let (in_b, _) = dead(&world, &b, 3).await;
    // These die later than the job begins: at `at(60)`, as all attempts of the fixture end.
    let late = world.fresh(&a, 6);
    store.enqueue(vec![late.clone()]).await.unwrap();
    let mut decision = world.attempt_decision(late.id, lease, Status::Dlq).await;
    decision.progress.dead_at = Some(at(200));
    world.settle(decision).await;
    let begun = created(&world, JobAct::Retry, dead_letters_of(&world), 100).await;
    store.enqueue(vec![world.fresh(&a, 150)]).await.unwrap();
    // Queue by queue, in each the oldest first.
    let wanted: Vec<DeliveryId> =
        if a.id < b.id { [in_a.clone(), in_b.clone()].concat() } else { [in_b.clone(), in_a.clone()].concat() };
    for items_max in [1, 2, 100] {
        assert_eq!(all_items(&world, begun.clone(), items_max).await, wanted, "pieces of {items_max}");
    }
    let everything = DeliveryFilter { project_id: Some(world.project_id), ..DeliveryFilter::default() };
    let waiting = DeliveryFilter { statuses: vec![Status::Pending], ..everything.clone() };
    for (filter, as_of, count) in [
        (dead_letters_of(&world), Some(at(100)), 8),
        (dead_letters_of(&world), None, 9),
        (waiting.clone(), None, 1),
        (waiting, Some(at(100)), 0),
        (everything, None, 10),
        (DeliveryFilter { connection_id: Some(b.id), ..dead_letters_of(&world) }, None, 3),
    ] {
        let counted = store.count_matching(&filter, as_of, None).await.unwrap();
        assert_eq!(counted, Counted { count, cursor: None }, "{filter:?} {as_of:?}");
    }
}

pub async fn z23_a_job_takes_the_ids_it_names_in_their_order(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let stored = world.stored(&connection, 3).await;
    let missing = DeliveryId::from_u128(99);
    let ids = vec![stored[2], missing, stored[0]];
    let scope = JobScope::Ids { requested: 3 };
    let new = NewJob { ids: ids.clone(), ..new_job(&world, JobAct::Discard, scope.clone(), 5) };
    store.create_job(new.clone(), ACTIVE_MAX).await.unwrap();
    let begun = job(&world, new.id).await;
    assert_eq!((begun.matched, begun.state, &begun.scope), (Some(3), JobState::Running, &scope));
    assert_eq!(all_items(&world, begun.clone(), 2).await, ids);
    let items = store.job_items(&begun, 3).await.unwrap().items;
    let there: Vec<bool> = items.iter().map(|item| item.delivery.is_some()).collect();
    assert_eq!(there, [true, false, true]);
}

pub async fn z23_a_step_is_written_whole_or_not_at_all(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let (stored, _) = dead(&world, &connection, 3).await;
    let begun = created(&world, JobAct::Retry, dead_letters_of(&world), 100).await;
    let first = retry_of(&world, stored[0], 110).await;
    let mut raced = retry_of(&world, stored[1], 110).await;
    raced.guard = Guard::Version(99);
    let together = step(&begun, vec![first.clone(), raced], 110);
    assert_eq!(store.step_job(together).await.unwrap(), JobStepped::Raced(vec![stored[1]]));
    assert_eq!(world.delivery(stored[0]).await.progress.status, Status::Dlq, "nothing was written");
    assert_eq!(job(&world, begun.id).await, begun);

    let mut good = step(&begun, vec![first], 111);
    good.skipped = Skipped::from([(SkipReason::InFlight, 2)]);
    good.cursor = Some("place".to_owned());
    good.matched = Some(7);
    let now = written(store.step_job(good.clone()).await.unwrap());
    assert_eq!(now, job(&world, begun.id).await);
    assert_eq!((now.done, now.skipped_in_all(), now.matched), (1, 2, Some(7)));
    assert_eq!((now.cursor.as_deref(), now.changed_at), (Some("place"), at(111)));
    assert_eq!(world.delivery(stored[0]).await.progress.status, Status::Pending);
    // The same step once more, as after an answer that was lost: the job is further.
    assert_eq!(store.step_job(good).await.unwrap(), JobStepped::Superseded);
    assert_eq!(job(&world, begun.id).await, now);

    assert_eq!(ends(store).await, [], "it has not ended");
    let last = JobStep { walked: true, ..step(&now, Vec::new(), 120) };
    let done = written(store.step_job(last.clone()).await.unwrap());
    assert_eq!(store.step_job(last).await.unwrap(), JobStepped::Superseded);
    let end = AuditEntry { after: Some(done.for_audit()), ..end_entry(&begun, 120) };
    assert_eq!(ends(store).await, [end], "its end is in the audit log once, with what it did");
    assert_eq!((done.state, done.ended_at, done.matched), (JobState::Done, Some(at(120)), Some(3)));
}

pub async fn z22_a_step_forwards_or_leaves_all_where_it_is(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let (stored, _) = dead(&world, &connection, 1).await;
    let topic = world.topic("news").await;
    let begun = created(&world, JobAct::Retry, dead_letters_of(&world), 100).await;
    let delivery = world.delivery(stored[0]).await;
    let progress = ended(delivery.progress, Status::Forwarded, at(110));
    let mut forward = world.decision(stored[0], Guard::Version(delivery.version), progress).await;
    let draft = world.draft(&topic, 110);
    let missing = postrider_core::topic::TopicName::new("missing").unwrap();
    forward.forward = Some(TopicMessageDraft { topic: missing, ..draft.clone() }.into());
    let raced = store.step_job(step(&begun, vec![forward.clone()], 110)).await.unwrap();
    assert_eq!(raced, JobStepped::Raced(vec![stored[0]]));
    forward.forward = Some(draft.into());
    written(store.step_job(step(&begun, vec![forward], 110)).await.unwrap());
    assert_eq!(store.topic_messages(&topic, FIRST_PAGE).await.unwrap().items.len(), 1);
    assert_eq!(world.delivery(stored[0]).await.progress.status, Status::Forwarded);
}

pub async fn d06_a_jobs_commands_are_counted_where_they_are_answered(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let stored = world.stored(&connection, 3).await;
    let waiting = DeliveryFilter { project_id: Some(world.project_id), ..DeliveryFilter::default() };
    let begun = created(&world, JobAct::Discard, waiting, 100).await;
    let command = |id| Command { job_id: Some(begun.id), ..world.command(&connection, id, 101) };
    let asked: Vec<Command> = stored.iter().map(|id| command(*id)).collect();
    let handed = JobStep { commands: asked.clone(), walked: true, ..step(&begun, Vec::new(), 101) };
    let raced = store.step_job(handed.clone()).await.unwrap();
    assert_eq!(raced, JobStepped::Raced(stored.clone()), "nobody owns the queue");
    let lease = world.owner(&connection, 102).await;
    let now = written(store.step_job(JobStep { now: at(102), ..handed }).await.unwrap());
    assert_eq!((now.outstanding, now.state), (3, JobState::Running));
    assert_eq!(store.job_queues(begun.id).await.unwrap(), [connection.id]);
    let open = store.commands(lease).await.unwrap();
    assert!(open.iter().all(|command| command.job_id == Some(begun.id)) && open.len() == 3);

    // Applied in its settlement, once; refused by answer; gone with the connection.
    let discarded = ended(world.delivery(stored[0]).await.progress, Status::Discarded, at(110));
    for _ in 0..2 {
        let decision = world.decision(stored[0], Guard::Lease(lease), discarded.clone()).await;
        let answers = Some((asked[0].id, CommandAnswer::Applied));
        world.settle(Settlement { answers, ..decision }).await;
    }
    store.answer_command(lease, asked[1].id, CommandAnswer::AlreadyDelivered).await.unwrap();
    assert_eq!(store.take_answer(asked[1].id).await, Ok(None), "nobody comes for it");
    let now = job(&world, begun.id).await;
    assert_eq!((now.done, now.outstanding), (1, 1));
    assert_eq!(now.skipped, Skipped::from([(SkipReason::AlreadyDelivered, 1)]));
    store.delete_connection(connection.id, true, at(120)).await.unwrap();
    let now = job(&world, begun.id).await;
    assert_eq!((now.outstanding, now.skipped_in_all()), (0, 2));
    assert!(store.job_queues(begun.id).await.unwrap().is_empty());
    let done = written(store.step_job(JobStep { walked: true, ..step(&now, Vec::new(), 130) }).await.unwrap());
    assert_eq!(done.state, JobState::Done);
    assert_eq!(store.take_answer(CommandId::from_u128(1)).await, Ok(None));
}

pub async fn p08_a_job_that_is_held_takes_no_step(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let (stored, _) = dead(&world, &connection, 1).await;
    let begun = created(&world, JobAct::Retry, dead_letters_of(&world), 100).await;
    let held = store.set_job_state(begun.id, begun.version, JobState::Paused, at(101)).await.unwrap();
    assert_eq!((held.state, held.ended_at), (JobState::Paused, None));
    let stale = store.set_job_state(begun.id, begun.version, JobState::Running, at(102)).await;
    assert!(matches!(stale, Err(StoreError::Conflict(_))));
    assert!(store.running_jobs().await.unwrap().is_empty());
    for version in [begun.version, held.version] {
        let asked = JobStep { version, ..step(&held, vec![retry_of(&world, stored[0], 103).await], 103) };
        assert_eq!(store.step_job(asked).await.unwrap(), JobStepped::Superseded);
    }
    let again = store.set_job_state(begun.id, held.version, JobState::Running, at(104)).await.unwrap();
    assert_eq!(store.running_jobs().await.unwrap(), std::slice::from_ref(&again));
    let cancelled = store.set_job_state(begun.id, again.version, JobState::Cancelled, at(105)).await.unwrap();
    assert_eq!(cancelled.ended_at, Some(at(105)));
    let unknown = store.set_job_state(JobId::from_u128(9), 1, JobState::Paused, at(1)).await;
    assert!(matches!(unknown, Err(StoreError::NotFound { .. })));
}

pub async fn p08_only_so_many_jobs_at_once_and_ended_ones_go(store: &dyn Store) {
    let world = World::new(store).await;
    let mut made = Vec::new();
    for millis in 0..3 {
        made.push(created(&world, JobAct::Resend, dead_letters_of(&world), millis).await);
    }
    let one_more = new_job(&world, JobAct::Resend, JobScope::Filter(Box::new(dead_letters_of(&world))), 9);
    let full = store.create_job(one_more.clone(), ACTIVE_MAX).await;
    assert_eq!(full, Err(StoreError::Full { limit: "jobs_active_max" }));
    assert_eq!(store.job(one_more.id).await.unwrap(), None, "it leaves no trace");
    let other = World::named(store, 2, "other").await;
    created(&other, JobAct::Resend, dead_letters_of(&other), 4).await;
    store.set_job_state(made[1].id, 1, JobState::Cancelled, at(20)).await.unwrap();
    store.create_job(one_more.clone(), ACTIVE_MAX).await.unwrap();
    assert!(store.create_job(one_more.clone(), 100).await.is_err(), "an id is used once");
    let mut listed = Vec::new();
    let mut page = PageRequest { limit: 2, cursor: None };
    loop {
        let Page { items, next_cursor } = store.jobs(world.project_id, page).await.unwrap();
        listed.extend(items.iter().map(|job| job.id));
        let Some(cursor) = next_cursor else { break };
        page = PageRequest { limit: 2, cursor: Some(cursor) };
    }
    assert_eq!(listed, [one_more.id, made[2].id, made[1].id, made[0].id], "newest first");
    assert_eq!(store.prune_jobs(at(20), 10).await, Ok(0));
    assert_eq!(store.prune_jobs(at(21), 10).await, Ok(1));
    assert_eq!(store.job(made[1].id).await.unwrap(), None);
}

pub async fn z13_a_job_goes_on_behind_its_cursor_after_a_kill(test: &mut dyn TestStore) {
    let before = test.store();
    let world = World::new(&*before).await;
    let connection = world.connection("billing", true).await;
    let (stored, _) = dead(&world, &connection, 4).await;
    let begun = created(&world, JobAct::Retry, dead_letters_of(&world), 100).await;
    let items = before.job_items(&begun, 2).await.unwrap();
    let mut settlements = Vec::new();
    for item in &items.items {
        settlements.push(retry_of(&world, item.id, 110).await);
    }
    let asked = JobStep { cursor: items.cursor, ..step(&begun, settlements, 110) };
    let now = written(before.step_job(asked).await.unwrap());
    let last_id = world.last_id();
    drop(before);
    test.reopen().await;
    let after = test.store();
    let world = World::resumed(&*after, begun.project_id, last_id);
    assert_eq!(after.running_jobs().await.unwrap(), std::slice::from_ref(&now));
    assert_eq!(all_items(&world, now, 1).await, stored[2..]);
    assert_eq!(world.line(&connection).await, stored[..2], "in their order");
}
