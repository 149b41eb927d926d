//! Invariant 10: what jobs do, as it is written, and what they say they did.

use std::collections::{BTreeMap, BTreeSet};

use postrider_core::id::{CommandId, DeliveryId, JobId};
use postrider_core::job::JobState;
use postrider_store::{CommandAnswer, JobStep, JobStepped, PageRequest, Placement, Settlement, StoreError};

use super::Oracle;

#[derive(Default)]
pub(super) struct JobsSeen {
    /// What each job has dealt with.
    acted_on: BTreeSet<(JobId, DeliveryId)>,
    commands: BTreeMap<CommandId, JobId>,
    done: BTreeMap<JobId, u64>,
}

impl Oracle {
    /// Before it is written: a crash may come in between.
    pub(crate) fn sees_job_step(&self, step: &JobStep) {
        let mut ledger = self.ledger();
        for settlement in &step.settlements {
            ledger.touched.insert(settlement.delivery_id);
            if settlement.progress.status.is_waiting() {
                ledger.reopened.insert(settlement.delivery_id);
            }
        }
        ledger.touched.extend(step.commands.iter().map(|command| command.delivery_id));
    }

    pub(crate) fn saw_job_step(&self, step: &JobStep, stepped: &JobStepped) {
        let job = step.job_id;
        let (settlements, commands) = (step.settlements.len(), step.commands.len());
        self.note(format!("{job} steps with {settlements} settlements, {commands} commands: {stepped:?}"));
        if let JobStepped::Raced(raced) = stepped {
            // An owner that the store holds for dead loses its queue, and may still send what it has (law 6); so after a jump of the clock.
            let dead = step.commands.iter().filter(|command| raced.contains(&command.delivery_id));
            self.state().stolen.extend(dead.map(|command| command.queue_id));
        }
        let JobStepped::Written(_) = stepped else { return };
        let mut twice = Vec::new();
        let mut state = self.state();
        for settlement in &step.settlements {
            if settlement.placement == Placement::Tail {
                state.moved.insert(settlement.delivery_id);
            }
        }
        let seen = &mut state.jobs;
        let settled = step.settlements.iter().map(|settlement| settlement.delivery_id);
        for id in settled.chain(step.commands.iter().map(|command| command.delivery_id)) {
            if !seen.acted_on.insert((job, id)) {
                twice.push(format!("{job} acts on {id} once more"));
            }
        }
        *seen.done.entry(job).or_default() += settlements as u64;
        seen.commands.extend(step.commands.iter().map(|command| (command.id, job)));
        drop(state);
        twice.into_iter().for_each(|what| self.report(10, what));
    }

    /// A settlement that was applied: it may be what a job asked an owner for.
    pub(super) fn saw_job_answer(&self, settlement: &Settlement) {
        let Some((id, CommandAnswer::Applied)) = settlement.answers else { return };
        let mut state = self.state();
        let seen = &mut state.jobs;
        if let Some(job) = seen.commands.remove(&id) {
            *seen.done.entry(job).or_default() += 1;
        }
    }

    /// At the end of a run, when nothing is paused any more.
    pub(super) async fn check_jobs(&self) -> Result<(), StoreError> {
        let store = self.store();
        for project in store.projects().await? {
            let mut cursor = None;
            loop {
                let page = store.jobs(project.id, PageRequest { limit: 500, cursor }).await?;
                for job in page.items {
                    let seen = self.state().jobs.done.get(&job.id).copied().unwrap_or_default();
                    if job.done != seen {
                        self.report(10, format!("{} says that it did {}, and did {seen}", job.id, job.done));
                    }
                    let counted = job.done + job.skipped_in_all();
                    if job.state == JobState::Done && (job.matched != Some(counted) || job.outstanding > 0) {
                        self.report(10, format!("{} is done and its counts are not: {job:?}", job.id));
                    }
                    if !job.state.has_ended() {
                        self.report(10, format!("{} has not come to its end: {job:?}", job.id));
                    }
                }
                cursor = page.next_cursor;
                if cursor.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }
}
