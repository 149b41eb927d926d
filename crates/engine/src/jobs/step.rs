//! One step of a job: the next deliveries, a decision for each, and all of it written with the progress.
//!
//! It must not know how often steps are made.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use postrider_core::decide::{Event, Snapshot, decide};
use postrider_core::delivery::{Delivery, Origin, Status};
use postrider_core::id::{DeliveryId, QueueId};
use postrider_core::job::{JobAct, SkipReason};
use postrider_core::log;
use postrider_core::{Failure, Timestamp};
use postrider_store::{
    Command, CommandAct, Job, JobItem, JobScope, JobStep, JobStepped, Settlement, Skipped, StoreError,
};

use crate::actor::Actor;
use crate::forwarding::{self, By};
use crate::runner::ToRunner;
use crate::shared::Shared;
use crate::{dispatcher, endpoints, operators};

/// A step whose deliveries keep changing is tried so often as a whole, then with ever fewer of them.
const TRIES_WHOLE: u32 = 4;
/// One delivery that keeps changing is left as it is after so many tries.
const TRIES_OF_ONE: u32 = 16;
/// Owners that have not answered are told again no sooner than this.
const TELL_AGAIN_MS: i64 = 1000;

pub(super) enum Advanced {
    Stepped,
    /// For the owners of queues.
    Waits,
}

/// What is known of a job between its steps; nothing that a crash may not forget.
#[derive(Default)]
pub(super) struct Walker {
    matched: Option<u64>,
    told_at: Option<Timestamp>,
}

/// What is to be done to one delivery.
enum Deed {
    Settle(Box<Settlement>),
    Ask(CommandAct, QueueId),
    Skip(SkipReason),
}

impl Walker {
    pub async fn advance(&mut self, shared: &Arc<Shared>, job: Job) -> Result<Advanced, StoreError> {
        let outstanding = u32::try_from(job.outstanding).unwrap_or(u32::MAX);
        let room = shared.options.job_batch_max.max(1).saturating_sub(outstanding);
        if job.walked && job.outstanding == 0 {
            let last = empty_step(shared, &job);
            shared.store.step_job(JobStep { walked: true, ..last }).await?;
            tracing::info!(event = log::JOB_DONE, job = %job.id, done = job.done, skipped = job.skipped_in_all(), "a job is done");
            return Ok(Advanced::Stepped);
        }
        if job.walked || room == 0 {
            self.tell_owners(shared, &job).await?;
            return Ok(Advanced::Waits);
        }
        if job.matched.is_none() && self.matched.is_none() {
            self.matched = Some(job.visited() + left_of(shared, &job).await?);
        }
        self.step(shared, &job, room).await?;
        Ok(Advanced::Stepped)
    }

    async fn step(&self, shared: &Arc<Shared>, job: &Job, mut room: u32) -> Result<(), StoreError> {
        let mut tries = 0;
        // Waiting deliveries whose queues have no owner that could be asked.
        let mut unowned: BTreeSet<DeliveryId> = BTreeSet::new();
        // What would be forwarded to queues that are full.
        let mut crowded: BTreeSet<DeliveryId> = BTreeSet::new();
        loop {
            let items = shared.store.job_items(job, room).await?;
            if room > 1 && bytes_to_push(shared, job, &items.items) > forwarding::BYTES_AT_ONCE {
                room = (room / 2).max(1);
                continue;
            }
            let mut step =
                JobStep { cursor: items.cursor, walked: items.ended, matched: self.matched, ..empty_step(shared, job) };
            let has_topic = has_topic(shared, job).await?;
            let gives_up = room == 1 && tries > TRIES_OF_ONE;
            for item in &items.items {
                let deed = match deed(shared, job, item, &unowned) {
                    _ if gives_up => Deed::Skip(SkipReason::Changing),
                    Deed::Settle(_) if !has_topic => Deed::Skip(SkipReason::NoTopic),
                    Deed::Settle(_) if crowded.contains(&item.id) => Deed::Skip(SkipReason::NoRoom),
                    Deed::Settle(settlement) => forwarded(shared, job, item, settlement).await?,
                    deed => deed,
                };
                enter(shared, job, item.id, deed, &mut step);
            }
            let told = Told::of(&step);
            match shared.store.step_job(step).await? {
                JobStepped::Written(_) => {
                    told.tell(shared);
                    return Ok(());
                }
                JobStepped::NoRoom(ids) => crowded.extend(ids),
                // Somebody paused it, or another worker goes on with it.
                JobStepped::Superseded => return Ok(()),
                JobStepped::Raced(raced) => {
                    tries += 1;
                    if tries > TRIES_WHOLE {
                        room = (room / 2).max(1);
                    }
                    for id in raced {
                        // One that could not be asked for is changed by version, and the other way round.
                        if !unowned.insert(id) {
                            unowned.remove(&id);
                        }
                    }
                }
            }
        }
    }

    /// Also after a restart, in which the queues of the commands may have nobody who would look.
    async fn tell_owners(&mut self, shared: &Arc<Shared>, job: &Job) -> Result<(), StoreError> {
        let now = shared.now();
        let is_early = |told_at: Timestamp| (0..TELL_AGAIN_MS).contains(&(now.as_millis() - told_at.as_millis()));
        if self.told_at.is_some_and(is_early) {
            return Ok(());
        }
        self.told_at = Some(now);
        for queue_id in shared.store.job_queues(job.id).await? {
            dispatcher::wake(shared, queue_id);
            shared.queues.tell(queue_id, ToRunner::Commands);
        }
        Ok(())
    }
}

/// How many are left behind the job's cursor.
async fn left_of(shared: &Shared, job: &Job) -> Result<u64, StoreError> {
    let JobScope::Filter(filter) = &job.scope else { return Ok(0) };
    let (mut count, mut cursor) = (0, job.cursor.clone());
    loop {
        let counted = shared.store.count_matching(filter, Some(job.created_at), cursor).await?;
        count += counted.count;
        cursor = counted.cursor;
        if cursor.is_none() {
            return Ok(count);
        }
    }
}

fn empty_step(shared: &Shared, job: &Job) -> JobStep {
    JobStep {
        job_id: job.id,
        version: job.version,
        settlements: Vec::new(),
        commands: Vec::new(),
        skipped: Skipped::new(),
        cursor: job.cursor.clone(),
        walked: false,
        matched: None,
        now: shared.now(),
        at_end: super::entry(shared, &Actor::system(), "job.end", job),
    }
}

async fn has_topic(shared: &Shared, job: &Job) -> Result<bool, StoreError> {
    match &job.act {
        JobAct::Forward { topic, .. } => Ok(shared.store.topic(job.project_id, topic).await?.is_some()),
        JobAct::Retry | JobAct::Resend | JobAct::Discard | JobAct::SetAside => Ok(true),
    }
}

fn deed(shared: &Shared, job: &Job, item: &JobItem, unowned: &BTreeSet<DeliveryId>) -> Deed {
    let Some(delivery) = &item.delivery else { return Deed::Skip(SkipReason::NotFound) };
    let Some(connection) = shared.connections.get(delivery.connection_id) else {
        return Deed::Skip(SkipReason::ConnectionGone);
    };
    if matches!(job.act, JobAct::Retry) && delivery.origin == Origin::Incoming {
        return Deed::Skip(SkipReason::Forward);
    }
    if let (JobAct::Retry | JobAct::Resend, Some(refused)) = (&job.act, endpoints::refused(shared, &connection)) {
        match refused.failure {
            Failure::EndpointOff => return Deed::Skip(SkipReason::EndpointOff),
            Failure::NotEntitled => return Deed::Skip(SkipReason::NotEntitled),
            _ => {}
        }
    }
    if let Some(act) = command(&job.act, delivery).filter(|_| !unowned.contains(&delivery.id)) {
        return Deed::Ask(act, delivery.connection_id);
    }
    let snapshot =
        Snapshot { progress: &delivery.progress, policy: &connection.spec.policy, ladder: delivery.ladder.as_ref() };
    let now = shared.now();
    match decide(Event::ByHand(job.act.by_hand()), snapshot, now, shared.roll()) {
        Ok(decision) => Deed::Settle(Box::new(operators::settlement(delivery, decision, None))),
        Err(refused) => Deed::Skip(refused.into()),
    }
}

/// With what goes to the topic, if the job forwards.
async fn forwarded(
    shared: &Shared,
    job: &Job,
    item: &JobItem,
    mut settlement: Box<Settlement>,
) -> Result<Deed, StoreError> {
    let (JobAct::Forward { topic, keep_header }, Some(delivery)) = (&job.act, &item.delivery) else {
        return Ok(Deed::Settle(settlement));
    };
    match forwarding::forward(shared, delivery, (topic, *keep_header), shared.now(), By::Hand).await? {
        Ok(Some(forward)) => {
            settlement.forward = Some(forward);
            Ok(Deed::Settle(settlement))
        }
        Ok(None) => Ok(Deed::Skip(SkipReason::Changing)),
        Err(_) => Ok(Deed::Skip(SkipReason::NoRoom)),
    }
}

/// Of the bodies that are read because a subscription pushes them.
fn bytes_to_push(shared: &Shared, job: &Job, items: &[JobItem]) -> u64 {
    let JobAct::Forward { topic, .. } = &job.act else { return 0 };
    let all = items.iter().filter_map(|item| item.delivery.as_ref());
    all.filter(|delivery| forwarding::is_pushed(shared, delivery, topic)).map(|delivery| delivery.body_bytes).sum()
}

/// What the owner of a queue is asked for what waits there (D06).
fn command(act: &JobAct, delivery: &Delivery) -> Option<CommandAct> {
    match (act, delivery.progress.status) {
        (JobAct::Discard, Status::Pending | Status::Processing) => Some(CommandAct::Discard),
        (JobAct::SetAside, Status::Pending | Status::Processing) => Some(CommandAct::SetAside),
        // Resending what waits means: attempt it now (D27).
        (JobAct::Resend, Status::Pending) => Some(CommandAct::AttemptNow),
        _ => None,
    }
}

fn enter(shared: &Shared, job: &Job, delivery_id: DeliveryId, deed: Deed, step: &mut JobStep) {
    match deed {
        Deed::Settle(settlement) => step.settlements.push(*settlement),
        Deed::Skip(reason) => *step.skipped.entry(reason).or_default() += 1,
        Deed::Ask(act, queue_id) => {
            let id = shared.new_command_id(step.now);
            step.commands.push(Command { id, queue_id, delivery_id, act, issued_at: step.now, job_id: Some(job.id) });
        }
    }
}

/// Who has to hear of a step once it is written.
struct Told {
    /// `true`: something came back to the queue; `false`: something was left in the DLQ or for the log.
    changed: BTreeMap<QueueId, bool>,
    /// What was forwarded, and is pushed.
    pushed_to: Vec<QueueId>,
    dead: Vec<(QueueId, DeliveryId)>,
    asked: BTreeSet<QueueId>,
}

impl Told {
    fn of(step: &JobStep) -> Self {
        let mut changed = BTreeMap::new();
        for settlement in &step.settlements {
            *changed.entry(settlement.queue_id).or_default() |= settlement.progress.status.is_waiting();
        }
        let dead = step.settlements.iter().filter(|one| one.progress.status == Status::Dlq);
        let dead = dead.map(|one| (one.queue_id, one.delivery_id)).collect();
        let pushed_to = step.settlements.iter().flat_map(forwarding::queues_of).collect();
        Told { changed, pushed_to, dead, asked: step.commands.iter().map(|command| command.queue_id).collect() }
    }

    fn tell(self, shared: &Arc<Shared>) {
        forwarding::tell(shared, self.pushed_to);
        for (queue_id, waits) in self.changed {
            if waits {
                dispatcher::wake(shared, queue_id);
            } else {
                shared.sweeps.dead_letter(queue_id);
            }
        }
        for (queue_id, delivery_id) in self.dead {
            shared.dead_lettered(queue_id, delivery_id);
        }
        for queue_id in self.asked {
            dispatcher::wake(shared, queue_id);
            shared.queues.tell(queue_id, ToRunner::Commands);
        }
    }
}
