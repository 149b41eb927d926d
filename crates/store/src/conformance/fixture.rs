//! What the cases are written with: a project, connections, deliveries with ids of their own, decisions. It must not check anything.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use postrider_core::attempt::Attempt;
use postrider_core::connection::{Connection, ConnectionKind, ConnectionSpec};
use postrider_core::delivery::{Delivery, Origin, Progress, Status};
use postrider_core::id::{
    BodyId, Cid, CommandId, ConnectionId, DeliveryId, EventId, ProjectId, SubscriptionId, TopicId, WorkerId,
};
use postrider_core::message::{HeaderList, RequestHead};
use postrider_core::topic::TopicName;
use postrider_core::{Failure, Timestamp, Wait};
use serde_json::{Map, Value, json};

use crate::*;

/// How long workers' leases live in this suite.
pub(crate) const LIFE: Wait = Wait::from_secs(15);
pub(crate) const ALL: WindowLimit = WindowLimit { deliveries_max: 1000, bytes_max: u64::MAX };
pub(crate) const FIRST_PAGE: PageRequest = PageRequest { limit: PAGE_ROWS_MAX, cursor: None };

/// So many milliseconds after the suite's own beginning of time.
pub(crate) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(1_773_317_134_000 + millis)
}

pub(crate) struct World<'a> {
    pub store: &'a dyn Store,
    pub project_id: ProjectId,
    last_id: AtomicU64,
}

impl<'a> World<'a> {
    pub async fn new(store: &'a dyn Store) -> Self {
        World::named(store, 1, "conformance").await
    }

    /// One of several worlds in one store, told apart by their numbers.
    pub async fn named(store: &'a dyn Store, number: u64, project: &str) -> Self {
        let project_id = ProjectId::new(at(0), u128::from(number));
        let project = Project {
            id: project_id,
            name: project.to_owned(),
            settings: ProjectSettings::default(),
            created_at: at(0),
        };
        store.create_project(project).await.unwrap();
        World::resumed(store, project_id, number << 32)
    }

    pub fn resumed(store: &'a dyn Store, project_id: ProjectId, last_id: u64) -> Self {
        World { store, project_id, last_id: AtomicU64::new(last_id) }
    }

    pub fn last_id(&self) -> u64 {
        self.last_id.load(Ordering::Relaxed)
    }

    /// A world whose project is there already, and whose ids begin behind this one.
    pub fn starting_at(store: &'a dyn Store, project_id: ProjectId, last_id: u64) -> Self {
        World { store, project_id, last_id: AtomicU64::new(last_id) }
    }

    /// The same world over the store as it was opened again.
    pub fn over<'b>(&self, store: &'b dyn Store) -> World<'b> {
        World::resumed(store, self.project_id, self.last_id())
    }

    pub fn id(&self) -> u128 {
        u128::from(self.last_id.fetch_add(1, Ordering::Relaxed) + 1)
    }

    pub fn connection_value(&self, name: &str, ordered: bool) -> Connection {
        let mut written = Map::new();
        written.insert("host".to_owned(), json!("https://api.example.org"));
        written.insert("url_path".to_owned(), json!("/v2"));
        written.insert("use_queue".to_owned(), Value::Bool(true));
        written.insert("ordered".to_owned(), Value::Bool(ordered));
        Connection {
            id: ConnectionId::new(at(0), self.id()),
            project_id: self.project_id,
            name: name.to_owned(),
            spec: ConnectionSpec::parse(ConnectionKind::Rest, &written).unwrap(),
            written,
            paused: false,
            version: 1,
            created_at: at(0),
            updated_at: at(0),
        }
    }

    pub async fn connection(&self, name: &str, ordered: bool) -> Connection {
        let connection = self.connection_value(name, ordered);
        self.store.create_connection(&connection).await.unwrap();
        connection
    }

    pub fn body(&self, bytes: &[u8]) -> NewBody {
        NewBody { id: BodyId::new(at(0), self.id()), bytes: Bytes::copy_from_slice(bytes) }
    }

    /// A request accepted and due at `at(millis)`, with a body of its own.
    pub fn fresh(&self, connection: &Connection, millis: i64) -> NewDelivery {
        let id = DeliveryId::new(at(millis), self.id());
        NewDelivery {
            id,
            project_id: connection.project_id,
            connection_id: connection.id,
            cid: Cid::new(at(millis), 7),
            origin: Origin::Publish,
            created_at: at(millis),
            head: RequestHead::default(),
            body: self.body(id.to_string().as_bytes()),
            event: None,
            ladder: None,
            progress: Progress::accepted(at(millis)),
            ordered: connection.spec.policy.queue.ordered,
            claimed_under: None,
            idempotency: None,
            awaited_until: None,
        }
    }

    /// Stores `count` requests in one batch, accepted at `at(0)`, `at(1)`, …
    pub async fn stored(&self, connection: &Connection, count: i64) -> Vec<DeliveryId> {
        let batch: Vec<NewDelivery> = (0..count).map(|millis| self.fresh(connection, millis)).collect();
        let ids = batch.iter().map(|new| new.id).collect();
        for answer in self.store.enqueue(batch).await.unwrap() {
            assert!(matches!(answer, Enqueued::Stored { .. }), "{answer:?}");
        }
        ids
    }

    pub async fn worker(&self, millis: i64) -> WorkerId {
        let worker_id = WorkerId::new(at(millis), self.id());
        self.store.open_worker(worker_id, LIFE, at(millis)).await.unwrap();
        worker_id
    }

    /// A new worker that has taken this queue.
    pub async fn owner(&self, connection: &Connection, millis: i64) -> QueueLease {
        let worker_id = self.worker(millis).await;
        let taken = self.store.take_named_queues(worker_id, at(millis), vec![connection.id]).await.unwrap();
        assert_eq!(taken.len(), 1, "the queue was free to be taken");
        taken[0].lease
    }

    pub async fn delivery(&self, id: DeliveryId) -> Delivery {
        self.store.delivery(id).await.unwrap().expect("the delivery is there")
    }

    /// A decision about a delivery as it stands now; nothing but `progress` is changed.
    pub async fn decision(&self, id: DeliveryId, guard: Guard, progress: Progress) -> Settlement {
        Settlement {
            delivery_id: id,
            queue_id: self.delivery(id).await.connection_id,
            guard,
            progress,
            placement: Placement::Keep,
            attempt: None,
            forward: None,
            edited_body: None,
            answers: None,
            health: None,
            reply: None,
        }
    }

    pub async fn settle(&self, settlement: Settlement) -> Settled {
        let mut settled = self.store.settle(vec![settlement]).await.unwrap();
        assert_eq!(settled.len(), 1);
        settled.remove(0)
    }

    /// Ends an attempt that is begun here and now: the delivery gets this status.
    pub async fn attempted(&self, id: DeliveryId, lease: QueueLease, status: Status) -> Settled {
        let settlement = self.attempt_decision(id, lease, status).await;
        self.settle(settlement).await
    }

    pub async fn attempt_decision(&self, id: DeliveryId, lease: QueueLease, status: Status) -> Settlement {
        let progress = self.delivery(id).await.progress;
        let begun = if progress.status == Status::Processing { progress } else { progress.begun(at(50)) };
        let number = begun.attempts;
        let decision = self.decision(id, Guard::Lease(lease), ended(begun, status, at(60))).await;
        Settlement { attempt: Some(attempt(number, status == Status::Success)), ..decision }
    }

    /// Changes a delivery in no owned queue, by the version that it has now.
    pub async fn by_version(&self, id: DeliveryId, progress: Progress, placement: Placement) -> Settled {
        let guard = Guard::Version(self.delivery(id).await.version);
        let settlement = Settlement { placement, ..self.decision(id, guard, progress).await };
        self.settle(settlement).await
    }

    pub fn topic_value(&self, name: &str, retention: Wait) -> Topic {
        Topic {
            id: TopicId::new(at(0), self.id()),
            project_id: self.project_id,
            name: TopicName::new(name).unwrap(),
            description: "What happens".to_owned(),
            retention,
            created_at: at(0),
        }
    }

    pub async fn topic(&self, name: &str) -> Topic {
        let topic = self.topic_value(name, Wait::from_secs(3600));
        self.store.create_topic(topic.clone()).await.unwrap();
        topic
    }

    pub async fn subscription(&self, topic: &Topic, name: &str) -> PullSubscription {
        let subscription = PullSubscription {
            id: SubscriptionId::new(at(0), self.id()),
            project_id: self.project_id,
            topic_id: topic.id,
            name: name.to_owned(),
            redeliver_after: Wait::from_secs(30),
            created_at: at(0),
        };
        self.store.create_subscription(subscription.clone()).await.unwrap();
        subscription
    }

    pub fn draft(&self, topic: &Topic, millis: i64) -> TopicMessageDraft {
        let mut headers = HeaderList::default();
        headers.push("X-Note".to_owned(), "why".to_owned()).unwrap();
        TopicMessageDraft {
            topic: topic.name.clone(),
            id: EventId::new(at(millis), self.id()),
            cid: Cid::new(at(millis), 9),
            headers,
            published_at: at(millis),
        }
    }

    pub async fn published(&self, topic: &Topic, millis: i64) -> EventId {
        let draft = self.draft(topic, millis);
        let id = draft.id;
        self.store.publish(self.project_id, draft, self.body(b"news")).await.unwrap();
        id
    }

    pub fn command(&self, connection: &Connection, delivery_id: DeliveryId, millis: i64) -> Command {
        Command {
            id: CommandId::new(at(millis), self.id()),
            queue_id: connection.id,
            delivery_id,
            act: CommandAct::Discard,
            issued_at: at(millis),
            job_id: None,
        }
    }

    pub async fn summary(&self, connection: &Connection) -> QueueSummary {
        self.store.queue_summary(connection.id).await.unwrap()
    }

    /// The ids in the queue, head first.
    pub async fn line(&self, connection: &Connection) -> Vec<DeliveryId> {
        let page = self.store.queue(connection.id, FIRST_PAGE).await.unwrap();
        page.items.iter().map(|delivery| delivery.id).collect()
    }
}

/// This progress with another status, and with the times that go with it.
pub(crate) fn ended(progress: Progress, status: Status, now: Timestamp) -> Progress {
    Progress {
        status,
        dead_at: (status == Status::Dlq).then_some(now),
        ended_at: status.is_terminal().then_some(now),
        ..progress
    }
}

pub(crate) fn attempt(number: u32, delivered: bool) -> Attempt {
    let mut response_headers = HeaderList::default();
    response_headers.push("Content-Type".to_owned(), "text/plain".to_owned()).unwrap();
    Attempt {
        number,
        started_at: at(50),
        took: Wait::from_millis(10),
        failure: (!delivered).then_some(Failure::Status),
        status: Some(if delivered { 200 } else { 503 }),
        error: (!delivered).then(|| "the remote answered 503".to_owned()),
        response_headers,
        response_body: Bytes::from_static(b"an answer"),
        response_bytes: 9,
        incomplete: false,
    }
}

pub(crate) fn ids(loaded: &[Loaded]) -> Vec<DeliveryId> {
    loaded.iter().map(|loaded| loaded.delivery.id).collect()
}
