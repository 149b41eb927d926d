//! The rows of the reference store and the indexes over them. A row is the truth; every index follows from it.
//!
//! Hot rows and the log share one map here: which of the two a delivery is in follows from its status (D01). This module must not know
//! which verb moves a row.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use postrider_core::alert::Alert;
use postrider_core::attempt::Attempt;
use postrider_core::connection::Connection;
use postrider_core::deferral::Deferral;
use postrider_core::delivery::{Delivery, Position, Status};
use postrider_core::id::{
    AlertId, AuditId, BodyId, CommandId, ConnectionId, DeliveryId, EventId, JobId, KeyId, ProjectId, QueueId,
    SecurityId, SourceId, SubscriptionId, TopicId, UserId, WorkerId,
};
use postrider_core::ordering::Line;
use postrider_core::security::SecurityDefinition;
use postrider_core::subscription::PushSubscription;
use postrider_core::{Timestamp, Wait};

use super::replies::ReplyRow;
use crate::audit::AuditEntry;
use crate::credentials::ApiKey;
use crate::endpoints::EndpointRow;
use crate::people::{Session, TokenHash, User};
use crate::records::*;
use crate::sources::SourceRow;
use crate::{Job, KeptAnswer, StoreError, StoreLimits};

#[derive(Default)]
pub(super) struct Data {
    pub limits: StoreLimits,
    pub is_closed: bool,
    pub projects: BTreeMap<ProjectId, Project>,
    pub connections: BTreeMap<ConnectionId, Connection>,
    pub security: BTreeMap<SecurityId, SecurityDefinition>,
    pub values: BTreeMap<String, String>,
    pub queues: BTreeMap<QueueId, Queue>,
    pub workers: BTreeMap<WorkerId, Worker>,
    pub rows: BTreeMap<DeliveryId, Row>,
    /// Terminal rows by their end, for retention.
    pub log_by_end: BTreeSet<(Timestamp, DeliveryId)>,
    pub attempts: BTreeMap<(DeliveryId, u32), Attempt>,
    pub bodies: BTreeMap<BodyId, Body>,
    pub keys: BTreeMap<[u8; 32], Key>,
    pub answer_keys: BTreeMap<[u8; 32], AnswerKey>,
    pub replies: BTreeMap<DeliveryId, ReplyRow>,
    pub commands: BTreeMap<CommandId, (Command, Option<CommandAnswer>)>,
    /// With the ids that they name.
    pub jobs: BTreeMap<JobId, (Job, Vec<DeliveryId>)>,
    /// By connection; stays when the connection goes, since its log rows stay.
    pub ledger: BTreeMap<ConnectionId, Ledger>,
    pub topics: BTreeMap<TopicId, Topic>,
    pub messages: BTreeMap<(TopicId, i64), Message>,
    pub next_sequence: i64,
    pub subscriptions: BTreeMap<SubscriptionId, PullSubscription>,
    /// What each subscription has not acknowledged yet.
    pub owed: BTreeMap<(SubscriptionId, i64), Owed>,
    pub endpoints: BTreeMap<ConnectionId, EndpointRow>,
    /// What owners have said, each under its token.
    pub deferrals: BTreeMap<QueueId, (FencingToken, Deferral)>,
    pub sources: BTreeMap<SourceId, SourceRow>,
    /// What came in, by its hash, and until when that is remembered.
    pub receipts: BTreeMap<[u8; 32], (EventId, Timestamp)>,
    pub push_subscriptions: BTreeMap<SubscriptionId, PushSubscription>,
    pub api_keys: BTreeMap<KeyId, ApiKey>,
    pub users: BTreeMap<UserId, User>,
    pub sessions: BTreeMap<TokenHash, Session>,
    pub alerts: BTreeMap<AlertId, Alert>,
    pub audit: BTreeMap<(Timestamp, AuditId), AuditEntry>,
    /// Entries of commands that have no answer yet.
    pub command_audit: BTreeMap<CommandId, AuditEntry>,
}

#[derive(Clone)]
pub(super) struct Row {
    pub delivery: Delivery,
    /// Under which token it became PROCESSING.
    pub claimed_under: Option<FencingToken>,
    /// How many attempts are on record; `progress.attempts` also counts one that is under way.
    pub recorded: u32,
}

#[derive(Default)]
pub(super) struct Queue {
    pub next_position: i64,
    /// Everything that waits, head first.
    pub line: BTreeMap<Position, DeliveryId>,
    /// PENDING rows in the order of claiming: fresh before retried, then by due time.
    pub ready: BTreeSet<(bool, Timestamp, DeliveryId)>,
    pub processing: BTreeSet<(Position, DeliveryId)>,
    /// Those among which order is kept; only the foremost of each is claimed.
    pub lines: BTreeMap<Line, BTreeSet<Position>>,
    pub waiting_bytes: u64,
    pub dead: BTreeSet<(Timestamp, DeliveryId)>,
    pub owner: Option<WorkerId>,
    /// The last owner neither released the queue nor closed.
    pub is_unreleased: bool,
    pub token: i64,
}

pub(super) struct Worker {
    pub life: Wait,
    pub renewed_at: Timestamp,
}

pub(super) struct Body {
    pub bytes: Bytes,
    /// How many deliveries and topic messages name it.
    pub uses: u64,
}

pub(super) struct Key {
    pub request_hash: [u8; 32],
    pub ends_at: Timestamp,
    pub delivery_id: DeliveryId,
}

pub(super) struct AnswerKey {
    pub request_hash: [u8; 32],
    pub ends_at: Timestamp,
    pub answer: Option<KeptAnswer>,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Ledger {
    pub accepted: u64,
    pub pruned: u64,
}

pub(super) struct Message {
    pub id: postrider_core::id::EventId,
    pub cid: postrider_core::id::Cid,
    pub headers: postrider_core::message::HeaderList,
    pub published_at: Timestamp,
    pub body_id: BodyId,
    /// How many subscriptions still owe an acknowledgement.
    pub owed_by: u64,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Owed {
    pub given_at: Option<Timestamp>,
    pub times_given: u32,
}

impl Queue {
    pub fn take_position(&mut self) -> Position {
        self.next_position += 1;
        Position(self.next_position)
    }

    pub fn waiting(&self) -> u64 {
        self.line.len() as u64
    }

    fn leave_line(&mut self, line: Option<Line>, position: Position) {
        let Some(line) = line else { return };
        if let Some(waiting) = self.lines.get_mut(&line) {
            waiting.remove(&position);
            if waiting.is_empty() {
                self.lines.remove(&line);
            }
        }
    }

    /// Nothing ahead holds it back.
    pub fn may_go(&self, delivery: &Delivery) -> bool {
        let line = line_of(delivery).and_then(|line| self.lines.get(&line));
        line.is_none_or(|waiting| waiting.first().copied() == delivery.position)
    }
}

/// The line of its queue in which it waits.
fn line_of(delivery: &Delivery) -> Option<Line> {
    delivery.event.as_ref()?.line
}

impl Data {
    pub fn queue(&self, id: QueueId) -> Result<&Queue, StoreError> {
        self.queues.get(&id).ok_or(StoreError::NotFound { what: "queue" })
    }

    /// Puts a row in and enters it in the indexes that its status calls for.
    pub fn enter(&mut self, row: Row) {
        let delivery = &row.delivery;
        let progress = &delivery.progress;
        let queue = self.queues.get_mut(&delivery.connection_id);
        match (progress.status, queue, delivery.position) {
            (status, Some(queue), Some(position)) if status.is_waiting() => {
                queue.line.insert(position, delivery.id);
                queue.waiting_bytes += delivery.body_bytes;
                if let Some(line) = line_of(delivery) {
                    queue.lines.entry(line).or_default().insert(position);
                }
                if status == Status::Pending {
                    queue.ready.insert((progress.attempts > 0, progress.due_at, delivery.id));
                } else {
                    queue.processing.insert((position, delivery.id));
                }
            }
            (Status::Dlq, Some(queue), _) => {
                queue.dead.insert((progress.dead_at.unwrap_or_default(), delivery.id));
            }
            _ => {
                self.log_by_end.insert((progress.ended_at.unwrap_or_default(), delivery.id));
            }
        }
        self.rows.insert(delivery.id, row);
    }

    /// Takes a row out of the map and of every index.
    pub fn leave(&mut self, id: DeliveryId) -> Option<Row> {
        let row = self.rows.remove(&id)?;
        let delivery = &row.delivery;
        let progress = &delivery.progress;
        let queue = self.queues.get_mut(&delivery.connection_id);
        match (progress.status, queue, delivery.position) {
            (status, Some(queue), Some(position)) if status.is_waiting() => {
                queue.line.remove(&position);
                queue.waiting_bytes -= delivery.body_bytes;
                queue.leave_line(line_of(delivery), position);
                queue.ready.remove(&(progress.attempts > 0, progress.due_at, id));
                queue.processing.remove(&(position, id));
            }
            (Status::Dlq, Some(queue), _) => {
                queue.dead.remove(&(progress.dead_at.unwrap_or_default(), id));
            }
            _ => {
                self.log_by_end.remove(&(progress.ended_at.unwrap_or_default(), id));
            }
        }
        Some(row)
    }

    /// One more use of a body; its bytes are stored at the first one.
    pub fn use_body(&mut self, body: NewBody) {
        self.bodies.entry(body.id).or_insert(Body { bytes: body.bytes, uses: 0 }).uses += 1;
    }

    /// One use less: the body goes with the last one. Says whether it went.
    pub fn drop_body(&mut self, id: BodyId) -> bool {
        let Some(body) = self.bodies.get_mut(&id) else { return false };
        body.uses -= 1;
        let is_unused = body.uses == 0;
        if is_unused {
            self.bodies.remove(&id);
        }
        is_unused
    }

    pub fn body_bytes(&self, id: BodyId) -> Result<Bytes, StoreError> {
        let body = self.bodies.get(&id).ok_or_else(|| StoreError::Corrupt(format!("the body {id} is missing")))?;
        Ok(body.bytes.clone())
    }
}
