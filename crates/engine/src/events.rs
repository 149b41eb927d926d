//! Messages that come in for topics, an event being one on the topic of its type: held against the subscriptions that push, and stored with
//! their deliveries in one transaction (D40).
//!
//! It must not know how a delivery is attempted.

use std::sync::Arc;

use bytes::Bytes;
use postrider_core::Timestamp;
use postrider_core::connection::Connection;
use postrider_core::delivery::{EventRef, Origin, Progress};
use postrider_core::envelope::Payload;
use postrider_core::id::{Cid, DestinationId, EventId, ProjectId, TopicId};
use postrider_core::message::{HeaderList, Method, RequestHead};
use postrider_core::operational::is_operational;
use postrider_core::schedule::LadderTerms;
use postrider_core::settings::objects::RETENTION_S;
use postrider_core::subscription::{FAN_OUT_MAX, PushSubscription};
use postrider_core::topic::TopicName;
use postrider_core::{SettingError, Wait};
use postrider_store::{
    Enqueued, EventFilter, NewBody, NewDelivery, NewEvent as Stored, Page, PageRequest, PublishedEvent, StoreError,
    StoredEvent, Topic, TopicMessageDraft,
};

use crate::endpoints;
use crate::engine::Engine;
use crate::intake;
use crate::refusal::Refusal;
use crate::shared::Shared;

/// Says to a receiver that it has seen something before.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// What somebody publishes.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// The topic's name too.
    pub event_type: TopicName,
    pub headers: HeaderList,
    pub body: Bytes,
    /// The publisher's own id for it: published again, it is the same event.
    pub id: Option<EventId>,
    pub cid: Option<Cid>,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishedTo {
    pub id: EventId,
    /// Deliveries that were made; none of an event that had been published before.
    pub deliveries: usize,
    /// It had been published before under this id, and nothing was stored.
    pub is_repeat: bool,
    pub at: Timestamp,
}

impl Engine {
    /// An event, whose topic is made when there is none of its type yet. Stored with its deliveries when this returns.
    ///
    /// # Errors
    /// `Full` with `fan_out_max` when more subscriptions select it than that, or with the limit of a queue that has no room: then nothing
    /// of it is stored.
    pub async fn publish_event(&self, project: ProjectId, event: NewEvent) -> Result<PublishedTo, Refusal> {
        publish(&self.shared, project, event, TopicPolicy::Make).await
    }

    pub async fn events(
        &self,
        project: ProjectId,
        filter: &EventFilter,
        page: PageRequest,
    ) -> Result<Page<StoredEvent>, Refusal> {
        Ok(self.shared.store.events(project, filter, page).await?)
    }

    pub async fn event(&self, project: ProjectId, id: EventId) -> Result<StoredEvent, Refusal> {
        let found = self.shared.store.event(project, id).await?;
        found.ok_or_else(|| Refusal::NotFound { what: "event", name: id.to_string() })
    }
}

/// What happens when there is no topic of the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TopicPolicy {
    Make,
    MustExist,
}

pub(crate) async fn publish(
    shared: &Arc<Shared>,
    project_id: ProjectId,
    event: NewEvent,
    topics: TopicPolicy,
) -> Result<PublishedTo, Refusal> {
    if shared.is_stopping() {
        return Err(Refusal::Stopping);
    }
    if is_operational(event.event_type.as_str()) {
        let ours = "a type that Postrider does not tell of itself";
        return Err(Refusal::Invalid(vec![SettingError::new("type", event.event_type.as_str(), ours)]));
    }
    publish_own(shared, project_id, event, topics).await
}

/// The same for what the server tells of itself, to the last moment.
pub(crate) async fn publish_own(
    shared: &Arc<Shared>,
    project_id: ProjectId,
    event: NewEvent,
    topics: TopicPolicy,
) -> Result<PublishedTo, Refusal> {
    let (given, allowed) = (event.body.len() as u64, shared.options.body_bytes_max);
    if given > allowed {
        return Err(Refusal::TooLarge { given, allowed });
    }
    let at = shared.now();
    let id = event.id.unwrap_or_else(|| EventId::new(at, shared.dice.bits()));
    let message = TopicMessageDraft {
        topic: event.event_type.clone(),
        id,
        cid: event.cid.clone().unwrap_or_else(|| shared.new_cid(at)),
        headers: event.headers,
        published_at: at,
    };
    let body = NewBody { id: shared.new_body_id(at), bytes: event.body };
    let deliveries = fan_out(shared, project_id, &message, &body, (Origin::Event, at), |_| true)?;
    let new_topic = (topics == TopicPolicy::Make).then(|| topic_of(shared, project_id, &event.event_type, at));
    let mut batch = intake::Fan::new(shared, deliveries);
    let stored = Stored {
        project_id,
        message,
        new_topic,
        body,
        id_is_given: event.id.is_some(),
        deliveries: batch.take_deliveries(),
    };
    let published = shared.store.publish_event(stored).await;
    let answers = match published {
        Ok(PublishedEvent::Stored(answers)) => answers,
        other => {
            batch.came_to_nothing();
            return match other {
                Ok(_) => Ok(PublishedTo { id, deliveries: 0, is_repeat: true, at }),
                Err(StoreError::NotFound { what: "topic" }) => {
                    Err(Refusal::NotFound { what: "topic", name: event.event_type.to_string() })
                }
                Err(error) => Err(error.into()),
            };
        }
    };
    let deliveries = answers.iter().filter(|answer| matches!(answer, Enqueued::Stored { .. })).count();
    batch.hand_out(shared, &answers);
    Ok(PublishedTo { id, deliveries, is_repeat: false, at })
}

pub(crate) fn topic_of(shared: &Shared, project_id: ProjectId, name: &TopicName, now: Timestamp) -> Topic {
    Topic {
        id: TopicId::new(now, shared.dice.bits()),
        project_id,
        name: name.clone(),
        description: String::new(),
        retention: Wait::from_secs(RETENTION_S.into()),
        created_at: now,
    }
}

/// One for each subscription that selects it, that is meant, and whose connection takes it; two subscriptions of one endpoint make two (D40).
/// The time is that of the deliveries, which for a replay is not the message's.
pub(crate) fn fan_out(
    shared: &Shared,
    project_id: ProjectId,
    message: &TopicMessageDraft,
    body: &NewBody,
    come: (Origin, Timestamp),
    is_meant: impl Fn(&PushSubscription) -> bool,
) -> Result<Vec<NewDelivery>, Refusal> {
    let mut deliveries = Vec::new();
    for subscription in shared.subscriptions.selecting(project_id, &message.topic) {
        if !is_meant(&subscription) {
            continue;
        }
        let Some(connection) = shared.connections.get(subscription.connection_id) else { continue };
        if !endpoints::takes(shared, &connection) {
            continue;
        }
        if deliveries.len() == FAN_OUT_MAX {
            return Err(Refusal::Full { limit: "fan_out_max" });
        }
        let mut head = head(&subscription, message)?;
        if come.0 == Origin::Incoming && head.headers.get(IDEMPOTENCY_KEY).is_none() {
            // The same for every forward of this webhook to this destination, retried by hand or not.
            let key = format!("{}-{}", message.id, DestinationId::of(subscription.id));
            let _ = head.headers.push(IDEMPOTENCY_KEY.to_owned(), key);
        }
        deliveries.push(delivery(shared, (&subscription, &connection), message, head, body, come));
    }
    Ok(deliveries)
}

/// The message's headers, and over them the subscription's.
fn head(subscription: &PushSubscription, message: &TopicMessageDraft) -> Result<RequestHead, Refusal> {
    let ours = &subscription.spec.custom_headers;
    let kept = message.headers.iter().filter(|(name, _)| ours.get(name).is_none());
    let pairs = kept.chain(ours.iter()).map(|(name, value)| (name.to_owned(), value.to_owned())).collect::<Vec<_>>();
    let headers = HeaderList::try_from(pairs)
        .map_err(|error| Refusal::Invalid(vec![SettingError::new("headers", "these", error.to_string())]))?;
    Ok(RequestHead { method: Method::POST, headers, ..RequestHead::default() })
}

fn delivery(
    shared: &Shared,
    (subscription, connection): (&PushSubscription, &Connection),
    message: &TopicMessageDraft,
    head: RequestHead,
    body: &NewBody,
    (origin, now): (Origin, Timestamp),
) -> NewDelivery {
    let policy = &connection.spec.policy;
    let ladder: Option<LadderTerms> = subscription.spec.terms(policy);
    NewDelivery {
        id: shared.new_delivery_id(now),
        project_id: connection.project_id,
        connection_id: connection.id,
        cid: message.cid.clone(),
        origin,
        created_at: now,
        head,
        body: body.clone(),
        event: Some(EventRef {
            id: message.id,
            event_type: message.topic.to_string(),
            happened_at: message.published_at,
            subscription_id: subscription.id,
            payload: payload(connection, origin),
            line: subscription.spec.line(&connection.spec, &body.bytes),
        }),
        ladder,
        progress: Progress::accepted(now),
        ordered: policy.queue.ordered,
        claimed_under: None,
        idempotency: None,
        awaited_until: None,
    }
}

/// Only what came in can go as it arrived: anything else would go unsigned.
fn payload(connection: &Connection, origin: Origin) -> Payload {
    let wanted = connection.spec.target.webhook().map_or(Payload::Data, |endpoint| endpoint.payload);
    if wanted == Payload::AsArrived && origin != Origin::Incoming { Payload::Data } else { wanted }
}
