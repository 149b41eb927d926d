//! The verbs of jobs: one act over many deliveries, in steps, each of which is one transaction with its progress (law 2, Z23, P08).
//!
//! A store must not know what an act means: decisions come in as settlements, and what waits with an owner is asked for by command (D06).

use std::collections::BTreeMap;

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::delivery::Delivery;
use postrider_core::id::{DeliveryId, JobId, ProjectId, QueueId};
use postrider_core::job::{JobAct, JobState, SkipReason};
use serde_json::{Value, json};

use crate::StoreError;
use crate::audit::AuditEntry;
use crate::filter::DeliveryFilter;
use crate::read::{Page, PageRequest};
use crate::records::{Command, Settlement};

#[async_trait]
pub trait Jobs: Send + Sync {
    /// Stores a job, RUNNING, with its ids if it has any. `Full` with `jobs_active_max` when its project has that many that have not ended.
    async fn create_job(&self, job: NewJob, active_max: u32) -> Result<(), StoreError>;

    async fn job(&self, id: JobId) -> Result<Option<Job>, StoreError>;

    /// Newest first.
    async fn jobs(&self, project_id: ProjectId, page: PageRequest) -> Result<Page<Job>, StoreError>;

    /// All that are RUNNING, of all projects, oldest first.
    async fn running_jobs(&self) -> Result<Vec<Job>, StoreError>;

    /// The next deliveries behind the job's cursor: those it names, in their order, or those that the filter lets through and that were
    /// there when it was created, queue by queue and in each the oldest first (Z23, D27). Looks at a bounded number of rows, so there
    /// may be none and more to come.
    async fn job_items(&self, job: &Job, items_max: u32) -> Result<JobItems, StoreError>;

    /// How many the filter lets through behind `cursor`, of those that were there at `as_of`; in bounded pieces.
    async fn count_matching(
        &self,
        filter: &DeliveryFilter,
        as_of: Option<Timestamp>,
        cursor: Option<String>,
    ) -> Result<Counted, StoreError>;

    /// Writes a step whole, or not at all: the settlements, the commands, the counts and the place where the walk goes on. The job becomes
    /// DONE with the step that ends its walk when no command of it is open.
    async fn step_job(&self, step: JobStep) -> Result<JobStepped, StoreError>;

    /// Sets the state, if `version` is still the stored one; `Conflict` if not.
    async fn set_job_state(&self, id: JobId, version: u32, state: JobState, now: Timestamp) -> Result<Job, StoreError>;

    /// The queues whose owners have not yet answered commands of this job.
    async fn job_queues(&self, id: JobId) -> Result<Vec<QueueId>, StoreError>;

    /// Removes at most `rows_max` jobs that ended before this; how many went.
    async fn prune_jobs(&self, ended_before: Timestamp, rows_max: u32) -> Result<u64, StoreError>;
}

/// What was left as it was, by reason.
pub type Skipped = BTreeMap<SkipReason, u64>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewJob {
    pub id: JobId,
    pub project_id: ProjectId,
    pub act: JobAct,
    pub scope: JobScope,
    /// In the order in which they are to be taken, each once; for `JobScope::Ids` only.
    pub ids: Vec<DeliveryId>,
    /// Who asked.
    pub who: String,
    /// What was there at this time is meant.
    pub created_at: Timestamp,
}

/// Which deliveries a job is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobScope {
    Ids { requested: u64 },
    Filter(Box<DeliveryFilter>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub id: JobId,
    pub project_id: ProjectId,
    pub act: JobAct,
    pub scope: JobScope,
    pub who: String,
    pub created_at: Timestamp,
    pub state: JobState,
    /// Rises with every step and every change of state, not with the answers to its commands.
    pub version: u32,
    /// How many it is about; `None` until they have been counted.
    pub matched: Option<u64>,
    pub done: u64,
    pub skipped: Skipped,
    /// Commands to owners of queues that are not answered yet.
    pub outstanding: u64,
    /// Where the walk goes on; a store's own words.
    pub cursor: Option<String>,
    /// Everything has been looked at.
    pub walked: bool,
    pub changed_at: Timestamp,
    pub ended_at: Option<Timestamp>,
}

impl Job {
    /// Of a job just created.
    pub fn begun(new: &NewJob) -> Self {
        let matched = match new.scope {
            JobScope::Ids { requested } => Some(requested),
            JobScope::Filter(_) => None,
        };
        Job {
            id: new.id,
            project_id: new.project_id,
            act: new.act.clone(),
            scope: new.scope.clone(),
            who: new.who.clone(),
            created_at: new.created_at,
            state: JobState::Running,
            version: 1,
            matched,
            done: 0,
            skipped: Skipped::new(),
            outstanding: 0,
            cursor: None,
            walked: false,
            changed_at: new.created_at,
            ended_at: None,
        }
    }

    pub fn skipped_in_all(&self) -> u64 {
        self.skipped.values().sum()
    }

    /// Those it has dealt with or handed to the owners of their queues.
    pub fn visited(&self) -> u64 {
        self.done + self.skipped_in_all() + self.outstanding
    }

    /// As the audit log keeps it: what is to be done to which deliveries, and how far it is.
    pub fn for_audit(&self) -> Value {
        let (filter, requested) = match &self.scope {
            JobScope::Ids { requested } => (Value::Null, json!(requested)),
            JobScope::Filter(filter) => (json!(filter), Value::Null),
        };
        json!({
            "act": self.act, "filter": filter, "requested": requested, "state": self.state, "matched": self.matched,
            "done": self.done, "skipped": self.skipped_in_all(), "outstanding": self.outstanding,
        })
    }

    /// What the step that ended it leaves in the audit log.
    pub(crate) fn end_entry(&self, step: &JobStep) -> Option<AuditEntry> {
        let has_ended = self.state.has_ended();
        has_ended.then(|| AuditEntry { after: Some(self.for_audit()), ..step.at_end.clone() })
    }

    /// Its own arithmetic, the same for every store: what the job is once this step is written.
    pub(crate) fn stepped(mut self, step: &JobStep) -> Self {
        self.version = self.version.saturating_add(1);
        self.done += step.settlements.len() as u64;
        self.outstanding += step.commands.len() as u64;
        for (reason, count) in &step.skipped {
            *self.skipped.entry(*reason).or_default() += count;
        }
        self.matched = step.matched.or(self.matched);
        self.cursor.clone_from(&step.cursor);
        self.walked |= step.walked;
        self.changed_at = step.now;
        if self.walked && self.outstanding == 0 && !self.state.has_ended() {
            self.state = JobState::Done;
            self.ended_at = Some(step.now);
            // What came and went meanwhile is not held against the count.
            self.matched = Some(self.visited());
        }
        self
    }

    /// An owner has answered one of its commands.
    pub(crate) fn answered(&mut self, skipped: Option<SkipReason>) {
        self.outstanding = self.outstanding.saturating_sub(1);
        match skipped {
            None => self.done += 1,
            Some(reason) => *self.skipped.entry(reason).or_default() += 1,
        }
    }
}

#[derive(Clone, Debug)]
pub struct JobItem {
    pub id: DeliveryId,
    /// `None`: there is none of this id.
    pub delivery: Option<Box<Delivery>>,
}

#[derive(Clone, Debug)]
pub struct JobItems {
    pub items: Vec<JobItem>,
    /// Behind the last of them.
    pub cursor: Option<String>,
    /// Nothing is left behind the cursor.
    pub ended: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    pub count: u64,
    /// Where to go on; `None`: all are counted.
    pub cursor: Option<String>,
}

#[derive(Clone, Debug)]
pub struct JobStep {
    pub job_id: JobId,
    /// Of the job as it was when the step was made.
    pub version: u32,
    pub settlements: Vec<Settlement>,
    /// Each with this job's id, for deliveries in queues with a living owner.
    pub commands: Vec<Command>,
    pub skipped: Skipped,
    pub cursor: Option<String>,
    pub walked: bool,
    pub matched: Option<u64>,
    pub now: Timestamp,
    /// Written, with the job as it ended, if it ends with this step.
    pub at_end: AuditEntry,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobStepped {
    /// The job as it is now.
    Written(Box<Job>),
    /// The job has changed; nothing was written.
    Superseded,
    /// These have changed since they were read, or their queues have got or lost an owner; nothing was written.
    Raced(Vec<DeliveryId>),
    /// The queues that these would be forwarded to have no room; nothing was written.
    NoRoom(Vec<DeliveryId>),
}
