//! Jobs: one act over many deliveries, in the background, in steps that are each one transaction with their progress (law 2, Z23, P08).
//!
//! Whoever starts after a crash goes on behind the last step. It must not know what an act means; the core decides delivery by delivery.

mod step;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use postrider_core::Wait;
use postrider_core::connection::ConnectionKind;
use postrider_core::id::{DeliveryId, JobId, ProjectId};
use postrider_core::job::{JobAct, JobControl};
use postrider_core::log;
use postrider_core::readiness::Worker;
use postrider_store::{AuditEntry, Change, DeliveryFilter, Job, JobScope, NewJob, StoreError};
use tokio::sync::Notify;

use crate::actor::Actor;
use crate::audit::Describe as _;
use crate::quotas;
use crate::refusal::Refusal;
use crate::shared::Shared;
use step::{Advanced, Walker};

/// How long a dry run counts at most.
const COUNTING_MAX: Wait = Wait::from_secs(2);
/// A change of state is tried so often when a step was faster.
const TRIES: u32 = 32;
/// A job that waits for the owners of queues is looked at again after this, and then ever more seldom.
const FIRST_LOOK: Duration = Duration::from_millis(5);
const LONGEST_LOOK: Duration = Duration::from_secs(1);
const STORE_PAUSE: Duration = Duration::from_secs(1);
/// With other workers, jobs of one that has died are looked for this often.
const LOOK_FOR_OTHERS: Duration = Duration::from_secs(3);
/// Between two steps, live traffic has the store for as long as the step took, within these bounds.
const SHORTEST_BREATH: Duration = Duration::from_millis(1);
const LONGEST_BREATH: Duration = Duration::from_millis(250);

/// What a person orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobOrder {
    pub act: JobAct,
    pub target: JobTarget,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobTarget {
    /// In this order; what is named twice is taken once.
    Ids(Vec<DeliveryId>),
    /// Without a status, those to which the act can be done.
    Filter(Box<DeliveryFilter>),
}

/// How others tell the jobs' task to look.
#[derive(Default)]
pub(crate) struct JobNotice(Notify);

pub(crate) async fn create(
    shared: &Shared,
    actor: &Actor,
    project_id: ProjectId,
    order: JobOrder,
) -> Result<Job, Refusal> {
    if let JobAct::Forward { topic, .. } = &order.act
        && shared.store.topic(project_id, topic).await?.is_none()
    {
        return Err(Refusal::NotFound { what: "topic", name: topic.to_string() });
    }
    // D27: the job counts once, whatever it is about. Only webhooks are bound so.
    if order.act == JobAct::Resend && may_be_about_webhooks(shared, &order.target) {
        quotas::take(shared, project_id).await?;
    }
    let now = shared.now();
    let (scope, ids) = match order.target {
        JobTarget::Ids(ids) => {
            let ids = each_once(ids);
            (JobScope::Ids { requested: ids.len() as u64 }, ids)
        }
        JobTarget::Filter(filter) => (JobScope::Filter(completed(filter, project_id, &order.act)), Vec::new()),
    };
    let id = JobId::new(now, shared.dice.bits());
    let new = NewJob { id, project_id, act: order.act, scope, ids, who: actor.name.clone(), created_at: now };
    let job = Job::begun(&new);
    // What it does to each delivery stands in the job and in the log of deliveries; who wanted it stands here, before it begins.
    let entry = entry(shared, actor, "job.create", &job).with_after(job.for_audit());
    let change = Change::CreateJob { job: Box::new(new), active_max: shared.options.jobs_active_max };
    shared.store.change(change, entry).await?;
    tracing::info!(event = log::JOB_BEGAN, job = %id, act = job.act.as_str(), who = job.who, "a job begins");
    shared.jobs.0.notify_one();
    Ok(job)
}

fn entry(shared: &Shared, actor: &Actor, action: &str, job: &Job) -> AuditEntry {
    shared.audit_entry(actor, Some(job.project_id), action).about(job.id, job.act.as_str())
}

fn may_be_about_webhooks(shared: &Shared, target: &JobTarget) -> bool {
    match target {
        JobTarget::Ids(_) => true,
        JobTarget::Filter(filter) => filter.connection_id.is_none_or(|id| {
            shared.connections.get(id).is_none_or(|connection| connection.kind() == ConnectionKind::Webhook)
        }),
    }
}

fn each_once(ids: Vec<DeliveryId>) -> Vec<DeliveryId> {
    let mut seen = std::collections::BTreeSet::new();
    ids.into_iter().filter(|id| seen.insert(*id)).collect()
}

fn completed(mut filter: Box<DeliveryFilter>, project_id: ProjectId, act: &JobAct) -> Box<DeliveryFilter> {
    filter.project_id = Some(project_id);
    if filter.statuses.is_empty() {
        filter.statuses = act.statuses().to_vec();
    }
    filter
}

pub(crate) async fn one(shared: &Shared, project_id: ProjectId, id: JobId) -> Result<Job, Refusal> {
    let found = shared.store.job(id).await?.filter(|job| job.project_id == project_id);
    found.ok_or_else(|| Refusal::NotFound { what: "job", name: id.to_string() })
}

pub(crate) async fn control(
    shared: &Shared,
    actor: &Actor,
    project_id: ProjectId,
    id: JobId,
    control: JobControl,
) -> Result<Job, Refusal> {
    for _ in 0..TRIES {
        let job = one(shared, project_id, id).await?;
        let state = job.state.after(control).map_err(|ended| Refusal::Conflict(ended.to_string()))?;
        if state == job.state {
            return Ok(job);
        }
        let action = match control {
            JobControl::Pause => "job.pause",
            JobControl::Resume => "job.resume",
            JobControl::Cancel => "job.cancel",
        };
        let entry = entry(shared, actor, action, &job).with_before(job.for_audit());
        let change = Change::SetJobState { id, version: job.version, state, now: shared.now() };
        match shared.store.change(change, entry).await {
            Ok(()) => {
                tracing::info!(event = log::JOB_TOLD, job = %id, state = state.as_str(), "a job was told");
                shared.jobs.0.notify_one();
                return one(shared, project_id, id).await;
            }
            // A step was faster.
            Err(StoreError::Conflict(_)) => tokio::time::sleep(SHORTEST_BREATH).await,
            Err(error) => return Err(error.into()),
        }
    }
    Err(Refusal::Conflict("the job keeps changing; try again".to_owned()))
}

pub(crate) async fn count_for(
    shared: &Shared,
    project_id: ProjectId,
    order: &JobOrder,
) -> Result<(u64, bool), Refusal> {
    let filter = match &order.target {
        JobTarget::Ids(ids) => return Ok((each_once(ids.clone()).len() as u64, true)),
        JobTarget::Filter(filter) => completed(filter.clone(), project_id, &order.act),
    };
    let began = shared.clock.monotonic();
    let (mut count, mut cursor) = (0, None);
    loop {
        let counted = shared.store.count_matching(&filter, None, cursor).await?;
        count += counted.count;
        cursor = counted.cursor;
        if cursor.is_none() {
            return Ok((count, true));
        }
        if shared.clock.monotonic().saturating_sub(began) >= COUNTING_MAX {
            return Ok((count, false));
        }
    }
}

/// The jobs' task: one step of each running job in turn, and a breath after each.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut walkers: BTreeMap<JobId, Walker> = BTreeMap::new();
    let mut look = FIRST_LOOK;
    while !shared.is_stopping() {
        shared.vitals.busy(Worker::Jobs);
        let jobs = match shared.store.running_jobs().await {
            Ok(jobs) => jobs,
            Err(error) => {
                tracing::warn!(event = log::JOBS_UNREADABLE, %error, "jobs cannot be read yet");
                tokio::time::sleep(STORE_PAUSE).await;
                continue;
            }
        };
        walkers.retain(|id, _| jobs.iter().any(|job| job.id == *id));
        if jobs.is_empty() {
            shared.vitals.idle(Worker::Jobs);
            wait_for_jobs(&shared).await;
            continue;
        }
        let mut any = false;
        for job in jobs {
            shared.vitals.busy(Worker::Jobs);
            let walker = walkers.entry(job.id).or_default();
            any |= one_step(&shared, walker, job).await;
        }
        look = if any { FIRST_LOOK } else { (look * 2).min(LONGEST_LOOK) };
        if !any {
            shared.vitals.idle(Worker::Jobs);
            tokio::select! {
                biased;
                () = shared.jobs.0.notified() => {}
                () = tokio::time::sleep(look) => {}
            }
        }
    }
}

async fn wait_for_jobs(shared: &Shared) {
    if shared.options.other_workers {
        let _ = tokio::time::timeout(LOOK_FOR_OTHERS, shared.jobs.0.notified()).await;
    } else {
        shared.jobs.0.notified().await;
    }
}

/// `true`: it got on.
async fn one_step(shared: &Arc<Shared>, walker: &mut Walker, job: Job) -> bool {
    let id = job.id;
    let began = shared.clock.monotonic();
    let advanced = walker.advance(shared, job).await;
    let took = shared.clock.monotonic().saturating_sub(began).as_duration();
    match advanced {
        Ok(Advanced::Waits) => false,
        Ok(Advanced::Stepped) => {
            tokio::time::sleep(took.clamp(SHORTEST_BREATH, LONGEST_BREATH)).await;
            true
        }
        Err(error) => {
            tracing::warn!(event = log::JOB_HELD_UP, %error, job = %id, "a job cannot go on yet");
            tokio::time::sleep(STORE_PAUSE).await;
            false
        }
    }
}
