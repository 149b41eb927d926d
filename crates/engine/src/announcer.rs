//! Publishes what the server tells of itself, to topics like any event (R04, V03), once somebody may be listening.
//!
//! It is told after the fact: what it tells of is stored already, so a crash between the two loses the telling and nothing else. It must
//! not know why anything happened.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use postrider_core::connection::Connection;
use postrider_core::delivery::Delivery;
use postrider_core::id::{DeliveryId, ProjectId, QueueId};
use postrider_core::log;
use postrider_core::message::HeaderList;
use postrider_core::operational::{DeadLettered, OperationalEvent, Subject, is_operational};
use postrider_core::topic::TopicName;
use postrider_core::{Timestamp, Wait};
use postrider_store::StoreError;
use tokio::sync::{Notify, mpsc};

use crate::events::{self, NewEvent, TopicPolicy};
use crate::refusal::Refusal;
use crate::shared::Shared;

/// `announcements_waiting_max`: with more, decisions wait to be written until some are told.
const WAITING_MAX: usize = 16_384;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How long it is remembered that a topic is not there.
const LOOK_AGAIN_AFTER: Wait = Wait::from_secs(10);

/// The door to the announcing task.
pub(crate) struct Announcer {
    told: mpsc::UnboundedSender<Announcement>,
    waiting: AtomicUsize,
    fewer: Notify,
}

/// What is to be told.
pub(crate) enum Announcement {
    /// What is told of it is read when somebody wants to hear it.
    DeadLetter {
        queue_id: QueueId,
        delivery_id: DeliveryId,
    },
    Event {
        project_id: ProjectId,
        event: OperationalEvent,
    },
}

impl Announcer {
    pub fn new() -> (Self, mpsc::UnboundedReceiver<Announcement>) {
        let (told, announcements) = mpsc::unbounded_channel();
        (Announcer { told, waiting: AtomicUsize::new(0), fewer: Notify::new() }, announcements)
    }

    fn put(&self, announcement: Announcement) {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        // The receiver lives as long as the engine.
        let _ = self.told.send(announcement);
    }

    /// Waits until there is room for more.
    pub async fn room(&self) {
        self.below(WAITING_MAX).await;
    }

    /// Waits until all is told.
    pub async fn drained(&self) {
        self.below(1).await;
    }

    async fn below(&self, count: usize) {
        loop {
            let fewer = self.fewer.notified();
            if self.waiting.load(Ordering::Acquire) < count {
                return;
            }
            fewer.await;
        }
    }
}

impl Shared {
    /// One more is in the queue's DLQ: its action may be due, and somebody may want to know.
    pub fn dead_lettered(&self, queue_id: QueueId, delivery_id: DeliveryId) {
        self.sweeps.dead_letter(queue_id);
        if let Some(connection) = self.connections.get(queue_id) {
            self.flows.dead_lettered(connection.project_id, self.now());
        }
        self.announcer.put(Announcement::DeadLetter { queue_id, delivery_id });
    }

    /// Tells of something that has happened and is stored. It is published soon after, if anybody subscribes to its type.
    pub fn announce(&self, project_id: ProjectId, event: OperationalEvent) {
        self.announcer.put(Announcement::Event { project_id, event });
    }
}

/// The connection as events of this kind name it.
pub(crate) fn subject(connection: &Connection) -> Subject {
    Subject {
        id: connection.id,
        name: connection.name.clone(),
        address: connection.spec.target.address(),
        is_endpoint: connection.spec.target.webhook().is_some(),
    }
}

/// The announcing task.
pub(crate) async fn run(shared: Arc<Shared>, mut announcements: mpsc::UnboundedReceiver<Announcement>) {
    let mut audience = Audience::default();
    while let Some(announcement) = announcements.recv().await {
        let mut pause = FIRST_PAUSE;
        while let Err(error) = tell(&shared, &mut audience, &announcement).await {
            tracing::warn!(event = log::ANNOUNCEMENT_HELD_UP, %error, "what happened cannot be told yet");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        shared.announcer.waiting.fetch_sub(1, Ordering::AcqRel);
        shared.announcer.fewer.notify_waiters();
    }
}

/// Topics that somebody made, as far as it was looked: who pulls makes the topic first.
#[derive(Default)]
struct Audience(BTreeMap<(ProjectId, &'static str), (bool, Timestamp)>);

impl Audience {
    async fn is_there(
        &mut self,
        shared: &Shared,
        project_id: ProjectId,
        event_type: &'static str,
        name: &TopicName,
    ) -> Result<bool, StoreError> {
        if !shared.subscriptions.selecting(project_id, name).is_empty() {
            return Ok(true);
        }
        let now = shared.now();
        let known = self.0.get(&(project_id, event_type));
        if let Some((has_topic, _)) = known.filter(|(_, at)| now >= *at && now.since(*at) < LOOK_AGAIN_AFTER) {
            return Ok(*has_topic);
        }
        let has_topic = shared.store.topic(project_id, name).await?.is_some();
        self.0.insert((project_id, event_type), (has_topic, now));
        Ok(has_topic)
    }
}

async fn tell(shared: &Arc<Shared>, audience: &mut Audience, announcement: &Announcement) -> Result<(), StoreError> {
    let (project_id, event) = match announcement {
        Announcement::Event { project_id, event } => (*project_id, event.clone()),
        Announcement::DeadLetter { queue_id, delivery_id } => {
            let Some(connection) = shared.connections.get(*queue_id) else { return Ok(()) };
            match dead_letter(shared, audience, &connection, *delivery_id).await? {
                Some(event) => (connection.project_id, event),
                None => return Ok(()),
            }
        }
    };
    let Ok(name) = TopicName::new(event.event_type()) else { return Ok(()) };
    if !audience.is_there(shared, project_id, event.event_type(), &name).await? {
        return Ok(());
    }
    let body = Bytes::from(event.data().to_string());
    let new = NewEvent { event_type: name, headers: HeaderList::default(), body, id: None, cid: None };
    match events::publish_own(shared, project_id, new, TopicPolicy::Make).await {
        Ok(_) => Ok(()),
        Err(Refusal::Unavailable(why)) => Err(StoreError::Unavailable(why)),
        Err(refusal) => {
            let event_type = event.event_type();
            tracing::warn!(event = log::ANNOUNCEMENT_REFUSED, %refusal, event_type, "what happened could not be told");
            Ok(())
        }
    }
}

/// `None`: nobody listens, it has gone since, or it carries such an event itself, of which no further one is made.
async fn dead_letter(
    shared: &Shared,
    audience: &mut Audience,
    connection: &Connection,
    id: DeliveryId,
) -> Result<Option<OperationalEvent>, StoreError> {
    // Asked before it is read: mostly nobody listens.
    let told = |delivery: Option<&Delivery>| OperationalEvent::DeliveryDeadLettered(as_told(connection, id, delivery));
    let event_type = told(None).event_type();
    let Ok(name) = TopicName::new(event_type) else { return Ok(None) };
    if !audience.is_there(shared, connection.project_id, event_type, &name).await? {
        return Ok(None);
    }
    let Some(delivery) = shared.store.delivery(id).await? else { return Ok(None) };
    if delivery.event.as_ref().is_some_and(|event| is_operational(&event.event_type)) {
        return Ok(None);
    }
    Ok(Some(told(Some(&delivery))))
}

fn as_told(connection: &Connection, delivery_id: DeliveryId, delivery: Option<&Delivery>) -> DeadLettered {
    let progress = delivery.map(|delivery| &delivery.progress);
    DeadLettered {
        delivery_id,
        connection: subject(connection),
        event: delivery.and_then(|delivery| delivery.event.as_ref()).map(|event| (event.id, event.event_type.clone())),
        attempts: progress.map_or(0, |progress| progress.attempts),
        failure: progress.and_then(|progress| progress.failure),
        error: progress.and_then(|progress| progress.error.clone()),
        at: progress.and_then(|progress| progress.dead_at).unwrap_or_default(),
    }
}
