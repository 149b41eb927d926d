//! The verbs of jobs, each handed to a lane or to a reader. It must not do anything else.

use async_trait::async_trait;
use futures_util::FutureExt as _;
use postrider_core::Timestamp;
use postrider_core::id::{JobId, ProjectId, QueueId};
use postrider_core::job::JobState;

use super::{PostgresStore, jobs, walk};
use crate::{Counted, DeliveryFilter, Job, JobItems, JobStep, JobStepped, Jobs, NewJob, Page, PageRequest, StoreError};

#[async_trait]
impl Jobs for PostgresStore {
    async fn create_job(&self, job: NewJob, active_max: u32) -> Result<(), StoreError> {
        self.write((job, active_max), |work, (job, active_max)| jobs::create(work, job, *active_max).boxed()).await
    }

    async fn job(&self, id: JobId) -> Result<Option<Job>, StoreError> {
        self.read(id, |work, id| jobs::one(work, *id).boxed()).await
    }

    async fn jobs(&self, project_id: ProjectId, page: PageRequest) -> Result<Page<Job>, StoreError> {
        self.read((project_id, page), |work, (id, page)| jobs::page(work, *id, page).boxed()).await
    }

    async fn running_jobs(&self) -> Result<Vec<Job>, StoreError> {
        self.read((), |work, ()| jobs::running(work).boxed()).await
    }

    async fn job_items(&self, job: &Job, items_max: u32) -> Result<JobItems, StoreError> {
        self.read_together((job.clone(), items_max), |work, (job, max)| walk::items(work, job, *max).boxed()).await
    }

    async fn count_matching(
        &self,
        filter: &DeliveryFilter,
        as_of: Option<Timestamp>,
        cursor: Option<String>,
    ) -> Result<Counted, StoreError> {
        let data = (filter.clone(), as_of, cursor);
        self.read_together(data, |work, (filter, as_of, cursor)| {
            walk::count(work, filter, *as_of, cursor.as_deref()).boxed()
        })
        .await
    }

    async fn step_job(&self, step: JobStep) -> Result<JobStepped, StoreError> {
        self.write(step, |work, step| jobs::step(work, step).boxed()).await
    }

    async fn set_job_state(&self, id: JobId, version: u32, state: JobState, now: Timestamp) -> Result<Job, StoreError> {
        let data = (id, version, state, now);
        self.write(data, |work, (id, version, state, now)| jobs::set_state(work, *id, *version, *state, *now).boxed())
            .await
    }

    async fn job_queues(&self, id: JobId) -> Result<Vec<QueueId>, StoreError> {
        self.read(id, |work, id| jobs::queues(work, *id).boxed()).await
    }

    async fn prune_jobs(&self, ended_before: Timestamp, rows_max: u32) -> Result<u64, StoreError> {
        self.write((ended_before, rows_max), |work, (before, max)| jobs::prune(work, *before, *max).boxed()).await
    }
}
