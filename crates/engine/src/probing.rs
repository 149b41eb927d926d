//! One request to an endpoint that is no delivery: a test, or the challenge by which it is verified (V03, V09, R14).
//!
//! It is sent as an attempt is: through the guard, signed, with the endpoint's own timeout. It is never tried again, leaves no delivery and
//! counts for nothing but what the endpoint shows of it. It must not know how an endpoint is switched off.

use std::sync::Arc;

use bytes::Bytes;
use postrider_core::attempt::Attempt;
use postrider_core::challenge::Challenge;
use postrider_core::connection::Connection;
use postrider_core::delivery::EventRef;
use postrider_core::endpoint::{LastTest, Verification};
use postrider_core::envelope;
use postrider_core::id::{DeliveryId, EndpointId, EventId, ProjectId, SubscriptionId};
use postrider_core::message::{Method, RequestHead};
use postrider_core::topic::TopicName;
use postrider_core::{Failure, Timestamp};
use postrider_store::AuditEntry;
use postrider_wire::{Outgoing, WebhookAttempt};
use serde_json::json;
use tokio::sync::oneshot;

use crate::attempt::{self, Ended};
use crate::audit::Describe as _;
use crate::engine::Engine;
use crate::refusal::Refusal;
use crate::shared::Shared;
use crate::{endpointing, quotas};

/// The type of a test where none is named.
pub const TEST_TYPE: &str = "postrider.test";

/// What a test sends.
#[derive(Clone, Debug)]
pub struct TestEvent {
    pub event_type: TopicName,
    pub data: Bytes,
}

/// What came of a test or a challenge.
#[derive(Clone, Debug)]
pub struct Probe {
    /// What the receiver saw as the delivery; there is none.
    pub delivery_id: DeliveryId,
    /// Of a test.
    pub event_id: Option<EventId>,
    pub attempt: Attempt,
    /// Of a challenge: what the endpoint has shown.
    pub verification: Option<Verification>,
}

impl Default for TestEvent {
    fn default() -> Self {
        let data = json!({"test": true, "message": "A test from Postrider: nothing has happened."});
        TestEvent {
            event_type: TopicName::new(TEST_TYPE).expect("a name like any other"),
            data: Bytes::from(data.to_string()),
        }
    }
}

impl Engine {
    /// Sends one signed event, also to an endpoint that is off, and says what came of it. Goes on when its caller leaves.
    ///
    /// # Errors
    /// `TooMany` when the project has asked too often (V09).
    pub async fn test_endpoint(&self, project: ProjectId, id: EndpointId, event: TestEvent) -> Result<Probe, Refusal> {
        let connection = self.probed(project, id).await?;
        let entry = self.probe_entry("endpoint.test", &connection);
        let shared = Arc::clone(&self.shared);
        self.to_the_end(async move {
            shared.store.note(vec![entry]).await?;
            test(&shared, &connection, event).await
        })
        .await
    }

    /// Asks the endpoint to give back a challenge, unless it has done so at this address before: then nothing is sent, and `None` comes back.
    ///
    /// # Errors
    /// `TooMany` when the project has asked too often (V09).
    pub async fn verify_endpoint(&self, project: ProjectId, id: EndpointId) -> Result<Option<Probe>, Refusal> {
        let known = endpointing::find(&self.shared, project, id)?;
        if self.endpoint_state(&known).await?.verification == Verification::Verified {
            return Ok(None);
        }
        let connection = self.probed(project, id).await?;
        let entry = self.probe_entry("endpoint.verify", &connection);
        let shared = Arc::clone(&self.shared);
        self.to_the_end(async move {
            shared.store.note(vec![entry]).await?;
            verify(&shared, &connection).await
        })
        .await
        .map(Some)
    }

    async fn probed(&self, project: ProjectId, id: EndpointId) -> Result<Arc<Connection>, Refusal> {
        if self.shared.is_stopping() {
            return Err(Refusal::Stopping);
        }
        let connection = endpointing::find(&self.shared, project, id)?;
        quotas::take(&self.shared, project).await?;
        Ok(connection)
    }

    fn probe_entry(&self, action: &str, connection: &Connection) -> AuditEntry {
        let entry = self.shared.audit_entry(&self.actor, Some(connection.project_id), action);
        entry.about(EndpointId::of(connection.id), &connection.name)
    }

    /// Also when the caller leaves, so that what was sent shows on the endpoint.
    async fn to_the_end(
        &self,
        work: impl Future<Output = Result<Probe, Refusal>> + Send + 'static,
    ) -> Result<Probe, Refusal> {
        let (done, answer) = oneshot::channel();
        self.shared.spawn(async move {
            // The caller may have left.
            let _ = done.send(work.await);
        });
        answer.await.unwrap_or(Err(Refusal::Stopping))
    }
}

async fn test(shared: &Arc<Shared>, connection: &Arc<Connection>, event: TestEvent) -> Result<Probe, Refusal> {
    let now = shared.now();
    let event_id = EventId::new(now, shared.dice.bits());
    let payload = connection.spec.target.webhook().map(|target| target.payload).unwrap_or_default();
    let sent = EventRef {
        id: event_id,
        event_type: event.event_type.to_string(),
        happened_at: now,
        // It is no delivery of any.
        subscription_id: SubscriptionId::from_u128(0),
        payload,
        line: None,
    };
    let body = envelope::body(&sent, &event.data);
    let (delivery_id, ended) = send(shared, connection, Some(sent), body, now).await;
    let last = LastTest { at: now, succeeded: ended.record.failure.is_none() };
    shared.store.note_endpoint_test(connection.id, last).await?;
    shared.endpoints.foresee(connection.id, |row| {
        row.state.last_test = Some(last);
        Some(())
    });
    Ok(Probe { delivery_id, event_id: Some(event_id), attempt: ended.record, verification: None })
}

async fn verify(shared: &Arc<Shared>, connection: &Arc<Connection>) -> Result<Probe, Refusal> {
    let now = shared.now();
    let challenge = Challenge::new([shared.dice.bits(), shared.dice.bits()]);
    let body = Bytes::from(challenge.question(now));
    let (delivery_id, ended) = send(shared, connection, None, body, now).await;
    let Ended { reply, mut record, .. } = ended;
    if record.failure.is_none() && !reply.answer().is_some_and(|answer| challenge.is_answered_by(&answer.body)) {
        record.failure = Some(Failure::NotVerified);
        record.error = Some("its answer does not give back the challenge".to_owned());
    }
    let shown = if record.failure.is_none() { Verification::Verified } else { Verification::Failed };
    // What it has shown, it has shown at the address that was asked.
    let url = connection.spec.target.webhook().map(|target| target.url.to_string()).unwrap_or_default();
    shared.store.note_verification(connection.id, shown, &url).await?;
    shared.endpoints.foresee(connection.id, |row| {
        (row.state.verification, row.verified_url) = (shown, Some(url));
        Some(())
    });
    Ok(Probe { delivery_id, event_id: None, attempt: record, verification: Some(shown) })
}

async fn send(
    shared: &Arc<Shared>,
    connection: &Arc<Connection>,
    event: Option<EventRef>,
    body: Bytes,
    now: Timestamp,
) -> (DeliveryId, Ended) {
    let delivery_id = shared.new_delivery_id(now);
    let outgoing = Outgoing {
        connection: Arc::clone(connection),
        delivery_id,
        cid: shared.new_cid(now),
        attempt: 1,
        head: Arc::new(RequestHead { method: Method::POST, ..RequestHead::default() }),
        body,
        credentials: None,
        webhook: Some(Box::new(WebhookAttempt::probe(event))),
        service: None,
        trace: None,
        stamp: None,
        timeout: connection.spec.policy.timeout,
    };
    (delivery_id, attempt::make_alone(shared, outgoing).await)
}
