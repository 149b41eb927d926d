//! The verbs of jobs, each handed to the writer or to a reader. It must not do anything else.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::id::{JobId, ProjectId, QueueId};
use postrider_core::job::JobState;

use super::{SqliteStore, jobs, walk};
use crate::{Counted, DeliveryFilter, Job, JobItems, JobStep, JobStepped, Jobs, NewJob, Page, PageRequest, StoreError};

#[async_trait]
impl Jobs for SqliteStore {
    async fn create_job(&self, job: NewJob, active_max: u32) -> Result<(), StoreError> {
        self.write(move |work| jobs::create(work, &job, active_max)).await
    }

    async fn job(&self, id: JobId) -> Result<Option<Job>, StoreError> {
        self.read(move |connection| jobs::one(connection, id)).await
    }

    async fn jobs(&self, project_id: ProjectId, page: PageRequest) -> Result<Page<Job>, StoreError> {
        self.read(move |connection| jobs::page(connection, project_id, &page)).await
    }

    async fn running_jobs(&self) -> Result<Vec<Job>, StoreError> {
        self.read(jobs::running).await
    }

    async fn job_items(&self, job: &Job, items_max: u32) -> Result<JobItems, StoreError> {
        let job = job.clone();
        self.read(move |connection| walk::items(connection, &job, items_max)).await
    }

    async fn count_matching(
        &self,
        filter: &DeliveryFilter,
        as_of: Option<Timestamp>,
        cursor: Option<String>,
    ) -> Result<Counted, StoreError> {
        let filter = filter.clone();
        self.read(move |connection| walk::count(connection, &filter, as_of, cursor.as_deref())).await
    }

    async fn step_job(&self, step: JobStep) -> Result<JobStepped, StoreError> {
        self.write(move |work| jobs::step(work, &step)).await
    }

    async fn set_job_state(&self, id: JobId, version: u32, state: JobState, now: Timestamp) -> Result<Job, StoreError> {
        self.write(move |work| jobs::set_state(work, id, version, state, now)).await
    }

    async fn job_queues(&self, id: JobId) -> Result<Vec<QueueId>, StoreError> {
        self.read(move |connection| jobs::queues(connection, id)).await
    }

    async fn prune_jobs(&self, ended_before: Timestamp, rows_max: u32) -> Result<u64, StoreError> {
        self.write(move |work| jobs::prune(work, ended_before, rows_max)).await
    }
}
