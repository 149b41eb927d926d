//! Jobs and their steps. It must not know what an act means.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::delivery::{Delivery, Status};
use postrider_core::id::{JobId, ProjectId, QueueId};
use postrider_core::job::{JobState, SkipReason};

use super::MemoryStore;
use super::listing::paged;
use super::rows::Data;
use crate::records::*;
use crate::{
    Counted, DeliveryFilter, Job, JobItem, JobItems, JobScope, JobStep, JobStepped, Jobs, NewJob, Page, PageRequest,
    StoreError,
};

#[async_trait]
impl Jobs for MemoryStore {
    async fn create_job(&self, job: NewJob, active_max: u32) -> Result<(), StoreError> {
        self.open()?.create_job(job, active_max)
    }

    async fn job(&self, id: JobId) -> Result<Option<Job>, StoreError> {
        Ok(self.open()?.jobs.get(&id).map(|(job, _)| job.clone()))
    }

    async fn jobs(&self, project_id: ProjectId, page: PageRequest) -> Result<Page<Job>, StoreError> {
        let data = self.open()?;
        let of_project = data.jobs.values().map(|(job, _)| job).filter(|job| job.project_id == project_id).cloned();
        let key = |job: &Job| std::cmp::Reverse((job.created_at.as_millis(), job.id.as_u128()));
        paged(of_project.collect(), key, &page)
    }

    async fn running_jobs(&self) -> Result<Vec<Job>, StoreError> {
        let data = self.open()?;
        let mut running: Vec<Job> =
            data.jobs.values().map(|(job, _)| job).filter(|job| job.state == JobState::Running).cloned().collect();
        running.sort_by_key(|job| (job.created_at, job.id));
        Ok(running)
    }

    async fn job_items(&self, job: &Job, items_max: u32) -> Result<JobItems, StoreError> {
        self.open()?.job_items(job, items_max as usize)
    }

    async fn count_matching(
        &self,
        filter: &DeliveryFilter,
        as_of: Option<Timestamp>,
        cursor: Option<String>,
    ) -> Result<Counted, StoreError> {
        let found = self.open()?.walk(filter, as_of, cursor.as_deref())?.len();
        Ok(Counted { count: found as u64, cursor: None })
    }

    async fn step_job(&self, step: JobStep) -> Result<JobStepped, StoreError> {
        self.open()?.step_job(step)
    }

    async fn set_job_state(&self, id: JobId, version: u32, state: JobState, now: Timestamp) -> Result<Job, StoreError> {
        self.open()?.set_job_state(id, version, state, now)
    }

    async fn job_queues(&self, id: JobId) -> Result<Vec<QueueId>, StoreError> {
        let data = self.open()?;
        let mine = data.commands.values().map(|(command, _)| command).filter(|command| command.job_id == Some(id));
        let mut queues: Vec<QueueId> = mine.map(|command| command.queue_id).collect();
        queues.sort();
        queues.dedup();
        Ok(queues)
    }

    async fn prune_jobs(&self, ended_before: Timestamp, rows_max: u32) -> Result<u64, StoreError> {
        let mut data = self.open()?;
        let ended = data.jobs.values().filter_map(|(job, _)| Some((job.ended_at?, job.id)));
        let mut gone: Vec<(Timestamp, JobId)> = ended.filter(|(ended_at, _)| *ended_at < ended_before).collect();
        gone.sort();
        gone.truncate(rows_max as usize);
        for (_, id) in &gone {
            data.jobs.remove(id);
            data.commands.retain(|_, (command, _)| command.job_id != Some(*id));
        }
        Ok(gone.len() as u64)
    }
}

impl Data {
    pub(super) fn create_job(&mut self, new: NewJob, active_max: u32) -> Result<(), StoreError> {
        if !self.projects.contains_key(&new.project_id) {
            return Err(StoreError::NotFound { what: "project" });
        }
        let of_project = self.jobs.values().map(|(job, _)| job).filter(|job| job.project_id == new.project_id);
        if of_project.filter(|job| job.ended_at.is_none()).count() >= active_max as usize {
            return Err(StoreError::Full { limit: "jobs_active_max" });
        }
        if self.jobs.contains_key(&new.id) {
            return Err(StoreError::Conflict(format!("there is a job {} already", new.id)));
        }
        self.jobs.insert(new.id, (Job::begun(&new), new.ids));
        Ok(())
    }

    pub(super) fn set_job_state(
        &mut self,
        id: JobId,
        version: u32,
        state: JobState,
        now: Timestamp,
    ) -> Result<Job, StoreError> {
        let (job, _) = self.jobs.get_mut(&id).ok_or(StoreError::NotFound { what: "job" })?;
        if job.version != version {
            return Err(StoreError::Conflict("the job has changed".to_owned()));
        }
        job.version += 1;
        job.state = state;
        job.changed_at = now;
        job.ended_at = state.has_ended().then_some(now);
        Ok(job.clone())
    }

    fn job_items(&self, job: &Job, items_max: usize) -> Result<JobItems, StoreError> {
        match &job.scope {
            JobScope::Ids { requested } => {
                let bad = |_| StoreError::NotFound { what: "page" };
                let from: usize = job.cursor.as_deref().map_or(Ok(0), str::parse).map_err(bad)?;
                let ids = self.jobs.get(&job.id).map(|(_, ids)| ids.as_slice()).unwrap_or_default();
                let of_project = |delivery: &&Delivery| delivery.project_id == job.project_id;
                let item = |id| {
                    let found = self.rows.get(id).map(|row| &row.delivery).filter(of_project);
                    JobItem { id: *id, delivery: found.cloned().map(Box::new) }
                };
                let items: Vec<JobItem> = ids.iter().skip(from).take(items_max).map(item).collect();
                let next = from + items.len();
                Ok(JobItems { items, cursor: Some(next.to_string()), ended: next as u64 >= *requested })
            }
            JobScope::Filter(filter) => {
                let mut left = self.walk(filter, Some(job.created_at), job.cursor.as_deref())?;
                let ended = left.len() <= items_max;
                left.truncate(items_max);
                let cursor = left.last().map(|last| {
                    let (queue, created_at, id) = place(last);
                    format!("{queue:032x}.{created_at}.{id:032x}")
                });
                let item =
                    |delivery: &Delivery| JobItem { id: delivery.id, delivery: Some(Box::new(delivery.clone())) };
                let items = left.into_iter().map(item).collect();
                Ok(JobItems { items, cursor: cursor.or_else(|| job.cursor.clone()), ended })
            }
        }
    }

    /// Queue by queue, and in each the oldest first.
    fn walk(
        &self,
        filter: &DeliveryFilter,
        as_of: Option<Timestamp>,
        cursor: Option<&str>,
    ) -> Result<Vec<&Delivery>, StoreError> {
        let behind = cursor.map(read_place).transpose()?;
        let mut found: Vec<&Delivery> = self
            .rows
            .values()
            .map(|row| &row.delivery)
            .filter(|delivery| filter.lets_through(delivery))
            .filter(|delivery| as_of.is_none_or(|time| was_there(delivery, time)))
            .filter(|delivery| behind.is_none_or(|behind| place(delivery) > behind))
            .collect();
        found.sort_by_key(|delivery| place(delivery));
        Ok(found)
    }

    fn step_job(&mut self, step: JobStep) -> Result<JobStepped, StoreError> {
        let (job, _) = self.jobs.get(&step.job_id).ok_or(StoreError::NotFound { what: "job" })?;
        if job.version != step.version || job.state != JobState::Running {
            return Ok(JobStepped::Superseded);
        }
        let job = job.clone();
        let (mut raced, full) = self.not_holding(&step.settlements)?;
        for command in &step.commands {
            if !self.has_taker(command, step.now) {
                raced.push(command.delivery_id);
            }
        }
        if !raced.is_empty() {
            return Ok(JobStepped::Raced(raced));
        }
        if !full.is_empty() {
            return Ok(JobStepped::NoRoom(full));
        }
        self.settle(step.settlements.clone())?;
        for command in &step.commands {
            self.commands.insert(command.id, (command.clone(), None));
        }
        let job = job.stepped(&step);
        if let Some((kept, _)) = self.jobs.get_mut(&step.job_id) {
            *kept = job.clone();
        }
        if let Some(entry) = job.end_entry(&step) {
            self.add_audit(entry);
        }
        Ok(JobStepped::Written(Box::new(job)))
    }

    /// An owner has answered a command of this job.
    pub(super) fn note_job_answer(&mut self, id: JobId, answer: CommandAnswer) {
        if let Some((job, _)) = self.jobs.get_mut(&id) {
            job.answered(match answer {
                CommandAnswer::Applied => None,
                CommandAnswer::AlreadyDelivered => Some(SkipReason::AlreadyDelivered),
                CommandAnswer::NotWaiting => Some(SkipReason::WrongStatus),
            });
        }
    }
}

/// It has been where it is since this time or longer (Z23).
fn was_there(delivery: &Delivery, time: Timestamp) -> bool {
    let progress = &delivery.progress;
    let since = match progress.status {
        Status::Pending | Status::Processing => Some(progress.age_from),
        Status::Dlq => progress.dead_at,
        _ => progress.ended_at,
    };
    delivery.created_at <= time && since.is_some_and(|since| since <= time)
}

type Place = (u128, i64, u128);

fn place(delivery: &Delivery) -> Place {
    (delivery.connection_id.as_u128(), delivery.created_at.as_millis(), delivery.id.as_u128())
}

fn read_place(text: &str) -> Result<Place, StoreError> {
    let parts: Vec<&str> = text.split('.').collect();
    let [queue, time, id] = parts[..] else { return Err(StoreError::NotFound { what: "page" }) };
    let hex = |part| u128::from_str_radix(part, 16).ok();
    match (hex(queue), time.parse().ok(), hex(id)) {
        (Some(queue), Some(time), Some(id)) => Ok((queue, time, id)),
        _ => Err(StoreError::NotFound { what: "page" }),
    }
}
