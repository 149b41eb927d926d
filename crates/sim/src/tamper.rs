//! Deliberate defects, each of which the oracle must report: an oracle that cannot fail proves nothing.
//!
//! Between the faults and the sound store, and in front of the network. Without a defect everything passes through unchanged.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use postrider_core::connection::Connection;
use postrider_core::delivery::Position;
use postrider_core::id::ConnectionId;
use postrider_core::{Reply, Timestamp, Wait};
use postrider_store::*;
use postrider_wire::{Outgoing, Sender};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// One request in five is acknowledged and not stored.
    LosesAnEnqueue,
    /// The second of the window comes first.
    SwapsTwo,
    /// A failed attempt is written twice.
    SettlesTwice,
    /// What comes under an old token is written under the new one.
    TakesOldTokens,
    /// Retries are claimed before they are due.
    ClaimsEarly,
    /// A success is written without its attempt.
    DropsAnAttempt,
    /// A success is answered as written, and is not.
    ForgetsASettlement,
    /// Idempotency keys are not kept.
    ForgetsKeys,
    /// Forwarded, but the topic gets nothing.
    ForwardsNothing,
    /// The body on the wire is not the one that was accepted.
    ChangesBodies,
    /// Every request goes out twice.
    SendsTwice,
    /// A job's step is written, and its progress is not.
    ForgetsProgress,
    /// A failure is written, and what it makes of its endpoint is not.
    ForgetsHealth,
}

/// The sound store, with or without a defect.
pub struct Tampered {
    pub inner: Arc<dyn Store>,
    pub defect: Option<Defect>,
    enqueued: AtomicU64,
}

impl Tampered {
    pub fn new(inner: Arc<dyn Store>, defect: Option<Defect>) -> Self {
        Tampered { inner, defect, enqueued: AtomicU64::new(0) }
    }

    pub async fn enqueue(&self, mut batch: Vec<NewDelivery>) -> Result<Vec<Enqueued>, StoreError> {
        match self.defect {
            Some(Defect::LosesAnEnqueue) if self.enqueued.fetch_add(1, Ordering::Relaxed) % 5 == 4 => {
                let lost = batch.iter().map(|_| Enqueued::Stored {
                    position: Position(1 << 40),
                    ahead: 1,
                    claimed: false,
                    held_under: None,
                });
                Ok(lost.collect())
            }
            Some(Defect::ForgetsKeys) => {
                batch.iter_mut().for_each(|new| new.idempotency = None);
                self.inner.enqueue(batch).await
            }
            _ => self.inner.enqueue(batch).await,
        }
    }

    pub async fn load(
        &self,
        lease: QueueLease,
        after: Option<Position>,
        limit: WindowLimit,
    ) -> Result<Vec<Loaded>, StoreError> {
        let mut rows = self.inner.load(lease, after, limit).await?;
        if self.defect == Some(Defect::SwapsTwo) && rows.len() > 1 {
            rows.swap(0, 1);
        }
        Ok(rows)
    }

    pub async fn claim(
        &self,
        lease: QueueLease,
        now: Timestamp,
        limit: WindowLimit,
    ) -> Result<Vec<Loaded>, StoreError> {
        let early = self.defect == Some(Defect::ClaimsEarly);
        self.inner.claim(lease, if early { now + Wait::from_secs(3600) } else { now }, limit).await
    }

    pub async fn step_job(&self, step: JobStep) -> Result<JobStepped, StoreError> {
        if self.defect != Some(Defect::ForgetsProgress) || step.settlements.is_empty() {
            return self.inner.step_job(step).await;
        }
        self.inner.settle(step.settlements.clone()).await?;
        self.inner.step_job(JobStep { settlements: Vec::new(), ..step }).await
    }

    /// `newest`: the lease under which the same queue was last taken.
    pub async fn settle(
        &self,
        mut batch: Vec<Settlement>,
        newest: impl Fn(QueueLease) -> QueueLease,
    ) -> Result<Vec<Settled>, StoreError> {
        let success = |settlement: &Settlement| settlement.attempt.as_ref().is_some_and(|a| a.failure.is_none());
        match self.defect {
            Some(Defect::TakesOldTokens) => {
                for settlement in &mut batch {
                    if let Guard::Lease(lease) = &mut settlement.guard {
                        *lease = newest(*lease);
                    }
                }
            }
            Some(Defect::DropsAnAttempt) => {
                batch.iter_mut().filter(|one| success(one)).for_each(|one| one.attempt = None);
            }
            Some(Defect::ForgetsASettlement) if batch.iter().any(success) => {
                return Ok(batch.iter().map(|_| Settled::Applied { version: 9, position: None }).collect());
            }
            Some(Defect::ForgetsHealth) => batch.iter_mut().for_each(|one| one.health = None),
            Some(Defect::ForwardsNothing) => batch.iter_mut().for_each(|one| one.forward = None),
            _ => {}
        }
        let again = if self.defect == Some(Defect::SettlesTwice) { second_writings(&batch) } else { Vec::new() };
        let settled = self.inner.settle(batch).await?;
        if !again.is_empty() {
            let _ = self.inner.settle(again).await;
        }
        Ok(settled)
    }
}

fn second_writings(batch: &[Settlement]) -> Vec<Settlement> {
    let failed = batch.iter().filter(|one| one.progress.status.is_waiting() && one.attempt.is_some());
    failed
        .cloned()
        .map(|mut one| {
            one.progress.attempts += 1;
            if let Some(attempt) = &mut one.attempt {
                attempt.number += 1;
            }
            one
        })
        .collect()
}

/// The network, with or without a defect in front of it.
pub struct TamperedSender<S> {
    pub inner: Arc<S>,
    pub defect: Option<Defect>,
}

#[async_trait]
impl<S: Sender> Sender for TamperedSender<S> {
    async fn send(&self, mut outgoing: Outgoing) -> Reply {
        match self.defect {
            Some(Defect::ChangesBodies) => outgoing.body = Bytes::from([&outgoing.body[..], b"\n"].concat()),
            Some(Defect::SendsTwice) => {
                let _ = self.inner.send(outgoing.clone()).await;
            }
            _ => {}
        }
        self.inner.send(outgoing).await
    }

    async fn may_reach(&self, connection: &Arc<Connection>) -> Result<(), String> {
        self.inner.may_reach(connection).await
    }

    fn forget(&self, connection: ConnectionId) {
        self.inner.forget(connection);
    }
}
