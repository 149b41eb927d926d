//! Forwards of incoming webhooks, as people act on them: one that failed is made anew, and what came in is forwarded again (R12).
//!
//! A new forward goes to the same destination from attempt 1 and takes the place of the old one in one transaction. It must not know how a forward is
//! attempted.

use std::sync::Arc;

use postrider_core::Timestamp;
use postrider_core::connection::Connection;
use postrider_core::delivery::{Delivery, Origin, Progress, Status};
use postrider_core::id::{DeliveryId, DestinationId, EventId, ForwardId, ProjectId, SourceId};
use postrider_core::schedule::LadderTerms;
use postrider_core::subscription::PushSubscription;
use postrider_store::{
    Change, EventFilter, Guard, NewBody, NewDelivery, PageRequest, Placement, Renewed, Settled, Settlement,
    StoredEvent, TopicMessageDraft,
};
use serde_json::{Map, Value, json};

use crate::audit::Describe as _;
use crate::endpointing::{self, NewEndpoint};
use crate::engine::Engine;
use crate::refusal::Refusal;
use crate::shared::Shared;
use crate::subscribing::{self, NewSubscription};
use crate::{events, intake, switching};

/// Before the id of the new forward, in the note of the one whose place it took.
const RETRIED_AS: &str = "retried as ";
/// How often a change by version is tried when somebody else was faster.
const TRIES: u32 = 8;

/// Which of what came in is forwarded again, and to where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayOrder {
    pub source: SourceId,
    pub events: ReplayEvents,
    /// `None`: to every destination that is on.
    pub destination: Option<DestinationId>,
    /// Nothing is stored; what would be is counted.
    pub dry_run: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayEvents {
    Ids(Vec<EventId>),
    /// The newest first; a page of it.
    Range {
        from: Option<Timestamp>,
        before: Option<Timestamp>,
        page: PageRequest,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    pub events: usize,
    pub forwards: usize,
    /// Where to go on.
    pub next_cursor: Option<String>,
}

/// A destination with an endpoint of its own.
#[derive(Clone, Debug)]
pub struct NewDestination {
    pub endpoint: NewEndpoint,
    /// The keys of the subscription, without the topic.
    pub written: Map<String, Value>,
}

impl Engine {
    /// Subscriptions to the topics of sources, by id.
    pub fn destinations(&self, project: ProjectId) -> Vec<(Arc<PushSubscription>, SourceId)> {
        let sources = self.shared.sources.of(project);
        let source_of = |subscription: &PushSubscription| {
            let is_its = |topic: &str| subscription.spec.pattern.as_str() == topic;
            let found = sources.iter().find(|known| is_its(known.row.source.spec.topic.as_str()));
            found.map(|known| known.row.source.id)
        };
        let all = self.shared.subscriptions.of(project).into_iter();
        all.filter_map(|subscription| source_of(&subscription).map(|source| (subscription, source))).collect()
    }

    /// An endpoint of its own and the subscription to the source's topic, both or neither.
    pub async fn create_destination(
        &self,
        project: ProjectId,
        new: NewDestination,
    ) -> Result<Arc<PushSubscription>, Refusal> {
        let shared = &self.shared;
        let (connection, row) = endpointing::drafted(shared, project, new.endpoint).await?;
        let name = Some(connection.name.clone());
        let wanted = NewSubscription { name, connection: connection.id, written: new.written };
        let subscription = subscribing::drafted(shared, project, wanted, Some(&connection)).await?;
        let entry = shared.audit_entry(&self.actor, Some(project), "destination.create");
        let entry = entry.about(DestinationId::of(subscription.id), &subscription.name);
        let entry = entry.with_after(subscribing::shown(&subscription));
        let change = Change::CreateDestination {
            connection: Box::new((*connection).clone()),
            row: Box::new(row.clone()),
            subscription: Box::new((*subscription).clone()),
        };
        shared.store.change(change, entry).await?;
        shared.endpoints.put(Arc::new(endpointing::opened(shared, row)));
        shared.connections.put(connection);
        shared.subscriptions.put(Arc::clone(&subscription));
        Ok(subscription)
    }

    /// R12: a new forward to the same destination, from attempt 1. The one that failed ends as FAILED and says which took its place.
    ///
    /// # Errors
    /// `NotFound` when there is no such forward; `Conflict` when it has not failed, was retried before, or its destination is gone or off.
    pub async fn retry_forward(&self, project: ProjectId, id: ForwardId) -> Result<Delivery, Refusal> {
        for _ in 0..TRIES {
            let old = forward(&self.shared, project, id).await?;
            if let Some(new) = self.renew(&old).await? {
                let found = self.shared.store.delivery(new).await?;
                return found
                    .ok_or_else(|| Refusal::NotFound { what: "forward", name: ForwardId::of(new).to_string() });
            }
        }
        Err(Refusal::Conflict("the forward keeps changing; try again".to_owned()))
    }

    /// `None`: somebody else was faster.
    async fn renew(&self, old: &Delivery) -> Result<Option<DeliveryId>, Refusal> {
        let shared = &self.shared;
        let connection = retryable(shared, old)?;
        let bytes = shared.store.body(old.body_id).await?;
        let bytes = bytes.ok_or_else(|| Refusal::Conflict("its body is gone".to_owned()))?;
        let now = shared.now();
        let id = shared.new_delivery_id(now);
        let new = NewDelivery {
            id,
            project_id: old.project_id,
            connection_id: old.connection_id,
            cid: old.cid.clone(),
            origin: Origin::Incoming,
            created_at: now,
            head: old.head.clone(),
            body: NewBody { id: old.body_id, bytes },
            event: old.event.clone(),
            ladder: ladder(shared, old, &connection),
            progress: Progress::accepted(now),
            ordered: connection.spec.policy.queue.ordered,
            claimed_under: None,
            idempotency: None,
        };
        let settlement = replaced(old, ForwardId::of(id), now);
        let entry = shared.audit_entry(&self.actor, Some(old.project_id), "forward.retry");
        let entry = entry.about(ForwardId::of(old.id), &connection.name);
        let entry = entry.with_after(json!({"forward": ForwardId::of(id)}));
        let mut batch = intake::Fan::new(shared, vec![new]);
        let Some(new) = batch.take_deliveries().pop() else { return Ok(None) };
        match shared.store.renew_forward(settlement, new, entry).await {
            Ok(Renewed::Stored(stored)) => {
                batch.hand_out(shared, &[stored]);
                shared.sweeps.dead_letter(old.connection_id);
                Ok(Some(id))
            }
            other => {
                batch.came_to_nothing();
                match other {
                    Ok(Renewed::Not(Settled::Gone)) => Err(gone()),
                    Err(error) => Err(error.into()),
                    Ok(_) => Ok(None),
                }
            }
        }
    }

    /// What came in is forwarded again, each webhook as new forwards. Those that are under way are not asked.
    pub async fn replay_incoming(&self, project: ProjectId, order: ReplayOrder) -> Result<Replayed, Refusal> {
        let shared = &self.shared;
        let source = self.source(project, order.source)?;
        if let Some(destination) = order.destination {
            let mut known = self.destinations(project).into_iter();
            if !known.any(|(known, of)| known.id == destination.subscription() && of == order.source) {
                return Err(Refusal::NotFound { what: "destination", name: destination.to_string() });
            }
        }
        let topic = source.row.source.spec.topic.clone();
        let (events, next_cursor) = match order.events {
            ReplayEvents::Range { from, before, page } => {
                let filter = EventFilter { topic: Some(topic), from, before };
                let page = shared.store.events(project, &filter, page).await?;
                (page.items, page.next_cursor)
            }
            ReplayEvents::Ids(ids) => {
                let mut events = Vec::with_capacity(ids.len());
                for id in ids {
                    let found = shared.store.event(project, id).await?.filter(|event| event.topic == topic);
                    events.push(found.ok_or_else(|| Refusal::NotFound { what: "event", name: id.to_string() })?);
                }
                (events, None)
            }
        };
        let mut replayed = Replayed { events: events.len(), forwards: 0, next_cursor };
        // The oldest first, so that an ordered destination is given them in their order.
        for event in events.into_iter().rev() {
            let news = forwards_of(shared, project, event, order.destination)?;
            if order.dry_run {
                replayed.forwards += news.len();
                continue;
            }
            for stored in shared.intake.store_all(news).await {
                match stored?? {
                    postrider_store::Enqueued::Stored { .. } => replayed.forwards += 1,
                    postrider_store::Enqueued::Full { limit } => return Err(Refusal::Full { limit }),
                    _ => {}
                }
            }
        }
        if !order.dry_run {
            let entry = shared.audit_entry(&self.actor, Some(project), "incoming.replay");
            let entry = entry.about(order.source, &source.row.source.name);
            let entry = entry.with_after(json!({"events": replayed.events, "forwards": replayed.forwards}));
            shared.store.note(vec![entry]).await?;
        }
        Ok(replayed)
    }
}

fn gone() -> Refusal {
    Refusal::Conflict("its destination is gone".to_owned())
}

async fn forward(shared: &Shared, project: ProjectId, id: ForwardId) -> Result<Delivery, Refusal> {
    let found = shared.store.delivery(id.delivery()).await?;
    let found = found.filter(|known| known.project_id == project && known.origin == Origin::Incoming);
    found.ok_or_else(|| Refusal::NotFound { what: "forward", name: id.to_string() })
}

fn retryable(shared: &Shared, old: &Delivery) -> Result<Arc<Connection>, Refusal> {
    if !matches!(old.progress.status, Status::Dlq | Status::Failed) {
        let status = old.progress.status.as_str();
        return Err(Refusal::Conflict(format!("only a forward that failed is retried, and this one is {status}")));
    }
    if let Some(new) = old.progress.dlq_note.as_deref().and_then(|note| note.strip_prefix(RETRIED_AS)) {
        return Err(Refusal::Conflict(format!("it was retried as {new} already")));
    }
    let connection = shared.connections.get(old.connection_id).ok_or_else(gone)?;
    switching::check_by_hand(shared, &connection)?;
    Ok(connection)
}

/// The terms of today (D21): those of the destination where it is still there.
fn ladder(shared: &Shared, old: &Delivery, connection: &Connection) -> Option<LadderTerms> {
    let of = old.event.as_ref().map(|event| event.subscription_id);
    let subscription = of.and_then(|of| shared.subscriptions.get(old.project_id, of));
    match subscription {
        Some(subscription) => subscription.spec.terms(&connection.spec.policy),
        None => LadderTerms::of(&connection.spec.policy),
    }
}

/// The end of the one whose place is taken.
fn replaced(old: &Delivery, new: ForwardId, now: Timestamp) -> Settlement {
    let progress = Progress {
        status: Status::Failed,
        dead_at: None,
        ended_at: old.progress.ended_at.or(Some(now)),
        dlq_note: Some(format!("{RETRIED_AS}{new}")),
        ..old.progress.clone()
    };
    Settlement {
        delivery_id: old.id,
        queue_id: old.connection_id,
        guard: Guard::Version(old.version),
        progress,
        placement: Placement::Keep,
        attempt: None,
        forward: None,
        edited_body: None,
        answers: None,
        health: None,
    }
}

fn forwards_of(
    shared: &Arc<Shared>,
    project: ProjectId,
    event: StoredEvent,
    to: Option<DestinationId>,
) -> Result<Vec<NewDelivery>, Refusal> {
    let now = shared.now();
    let message = TopicMessageDraft {
        topic: event.topic,
        id: event.id,
        cid: event.cid,
        headers: event.headers,
        published_at: event.published_at,
    };
    let body = NewBody { id: shared.new_body_id(now), bytes: event.body };
    let is_meant = |subscription: &PushSubscription| to.is_none_or(|to| to.subscription() == subscription.id);
    events::fan_out(shared, project, &message, &body, (Origin::Incoming, now), is_meant)
}
