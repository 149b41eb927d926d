//! What the server tells of itself as events: on topics like any other, for those who subscribe to them by name.
//!
//! It must not know who listens, nor how an event is published.

use serde_json::{Value, json};

use crate::health::SwitchOffReason;
use crate::id::{ConnectionId, DeliveryId, EndpointId, EventId};
use crate::topic::{TopicName, TopicPattern};
use crate::{Failure, Timestamp};

/// One thing that happened here and that somebody may want to hear of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperationalEvent {
    /// A delivery arrived in the DLQ, however it came there.
    DeliveryDeadLettered(DeadLettered),
    /// The server switched an endpoint off by itself (V03, V04).
    EndpointSwitchedOff {
        endpoint: Subject,
        reason: SwitchOffReason,
        failing_since: Option<Timestamp>,
        /// Different deliveries that had failed with no success between.
        failed_in_a_row: u32,
        at: Timestamp,
    },
    /// An endpoint takes requests again: the first success after its circuit was open, or a person switched it on.
    EndpointRecovered { endpoint: Subject, at: Timestamp },
    /// An endpoint fails so much that its requests are held back for a while (R04).
    EndpointCircuitOpened { endpoint: Subject, failed_in_a_row: u32, until: Timestamp, at: Timestamp },
    /// The head of an ordered queue has kept failing, and everything behind it waits.
    ConnectionBlocked { connection: Subject, minutes: u64, at: Timestamp },
    /// That is over.
    ConnectionUnblocked { connection: Subject, at: Timestamp },
}

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    pub id: ConnectionId,
    pub name: String,
    /// Where its requests go, as people are shown it.
    pub address: String,
    pub is_endpoint: bool,
}

/// A dead letter as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLettered {
    pub delivery_id: DeliveryId,
    pub connection: Subject,
    /// The event that it carries, and of which type.
    pub event: Option<(EventId, String)>,
    pub attempts: u32,
    pub failure: Option<Failure>,
    pub error: Option<String>,
    pub at: Timestamp,
}

/// The types of these events; their topics have the same names. Nobody else publishes under them.
pub const EVENT_TYPES: [&str; 6] = [
    DELIVERY_DEAD_LETTERED,
    ENDPOINT_SWITCHED_OFF,
    ENDPOINT_RECOVERED,
    ENDPOINT_CIRCUIT_OPENED,
    CONNECTION_BLOCKED,
    CONNECTION_UNBLOCKED,
];
const DELIVERY_DEAD_LETTERED: &str = "delivery.dead_lettered";
const ENDPOINT_SWITCHED_OFF: &str = "endpoint.switched_off";
const ENDPOINT_RECOVERED: &str = "endpoint.recovered";
const ENDPOINT_CIRCUIT_OPENED: &str = "endpoint.circuit_opened";
const CONNECTION_BLOCKED: &str = "connection.blocked";
const CONNECTION_UNBLOCKED: &str = "connection.unblocked";

/// Whether an event of this type is one that the server tells of itself.
pub fn is_operational(event_type: &str) -> bool {
    EVENT_TYPES.contains(&event_type)
}

/// Whether a subscription with this pattern gets events of this type at all: what the server tells of itself goes only to who names the
/// first segment, so that an endpoint of somebody else's that takes `**` never hears of our troubles.
pub fn may_select(pattern: &TopicPattern, event_type: &TopicName) -> bool {
    !is_operational(event_type.as_str()) || !pattern.as_str().starts_with('*')
}

impl OperationalEvent {
    pub const fn event_type(&self) -> &'static str {
        match self {
            OperationalEvent::DeliveryDeadLettered(_) => DELIVERY_DEAD_LETTERED,
            OperationalEvent::EndpointSwitchedOff { .. } => ENDPOINT_SWITCHED_OFF,
            OperationalEvent::EndpointRecovered { .. } => ENDPOINT_RECOVERED,
            OperationalEvent::EndpointCircuitOpened { .. } => ENDPOINT_CIRCUIT_OPENED,
            OperationalEvent::ConnectionBlocked { .. } => CONNECTION_BLOCKED,
            OperationalEvent::ConnectionUnblocked { .. } => CONNECTION_UNBLOCKED,
        }
    }

    /// The event's data. Names never change; members may be added.
    pub fn data(&self) -> Value {
        match self {
            OperationalEvent::DeliveryDeadLettered(dead) => json!({
                "deliveryId": dead.delivery_id,
                "connectionId": dead.connection.id,
                "connection": dead.connection.name,
                "endpointId": dead.connection.endpoint_id(),
                "address": dead.connection.address,
                "eventId": dead.event.as_ref().map(|(id, _)| id),
                "eventType": dead.event.as_ref().map(|(_, event_type)| event_type),
                "attempts": dead.attempts,
                "failure": dead.failure,
                "error": dead.error,
                "deadAt": dead.at,
            }),
            OperationalEvent::EndpointSwitchedOff { endpoint, reason, failing_since, failed_in_a_row, at } => json!({
                "endpointId": endpoint.endpoint_id(),
                "name": endpoint.name,
                "url": endpoint.address,
                "reason": reason,
                "failingSince": failing_since,
                "failedInARow": failed_in_a_row,
                "at": at,
            }),
            OperationalEvent::EndpointRecovered { endpoint, at } => json!({
                "endpointId": endpoint.endpoint_id(),
                "name": endpoint.name,
                "url": endpoint.address,
                "at": at,
            }),
            OperationalEvent::EndpointCircuitOpened { endpoint, failed_in_a_row, until, at } => json!({
                "endpointId": endpoint.endpoint_id(),
                "name": endpoint.name,
                "url": endpoint.address,
                "failedInARow": failed_in_a_row,
                "until": until,
                "at": at,
            }),
            OperationalEvent::ConnectionBlocked { connection, minutes, at } => json!({
                "connectionId": connection.id,
                "connection": connection.name,
                "address": connection.address,
                "minutes": minutes,
                "at": at,
            }),
            OperationalEvent::ConnectionUnblocked { connection, at } => json!({
                "connectionId": connection.id,
                "connection": connection.name,
                "address": connection.address,
                "at": at,
            }),
        }
    }
}

impl Subject {
    fn endpoint_id(&self) -> Option<EndpointId> {
        self.is_endpoint.then(|| EndpointId::of(self.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject() -> Subject {
        let address = "https://hooks.example.org/in".to_owned();
        Subject { id: ConnectionId::from_u128(5), name: "shop".to_owned(), address, is_endpoint: true }
    }

    #[test]
    fn every_event_has_its_type_and_is_known_by_it() {
        let at = Timestamp::from_millis(1_000);
        let dead = DeadLettered {
            delivery_id: DeliveryId::from_u128(1),
            connection: subject(),
            event: Some((EventId::from_u128(2), "order.created".to_owned())),
            attempts: 7,
            failure: Some(Failure::Timeout),
            error: Some("no answer".to_owned()),
            at,
        };
        let all = [
            OperationalEvent::DeliveryDeadLettered(dead),
            OperationalEvent::EndpointSwitchedOff {
                endpoint: subject(),
                reason: SwitchOffReason::Gone,
                failing_since: None,
                failed_in_a_row: 1,
                at,
            },
            OperationalEvent::EndpointRecovered { endpoint: subject(), at },
            OperationalEvent::EndpointCircuitOpened { endpoint: subject(), failed_in_a_row: 10, until: at, at },
            OperationalEvent::ConnectionBlocked { connection: subject(), minutes: 15, at },
            OperationalEvent::ConnectionUnblocked { connection: subject(), at },
        ];
        assert_eq!(all.each_ref().map(OperationalEvent::event_type), EVENT_TYPES);
        for event in &all {
            assert!(TopicName::new(event.event_type()).is_ok() && is_operational(event.event_type()));
            assert!(event.data().is_object());
        }
        let dead = all[0].data();
        assert_eq!((&dead["failure"], &dead["eventType"]), (&json!("timeout"), &json!("order.created")));
        assert!(dead["endpointId"].as_str().is_some_and(|id| id.starts_with("ep_")));
    }

    #[test]
    fn only_who_names_the_first_segment_hears_of_us() {
        let pattern = |text: &str| TopicPattern::new(text).unwrap();
        let ours = TopicName::new(ENDPOINT_RECOVERED).unwrap();
        let theirs = TopicName::new("order.created").unwrap();
        for all in ["**", "*.*", "**.recovered"] {
            assert!(!may_select(&pattern(all), &ours) && may_select(&pattern(all), &theirs), "{all}");
        }
        assert!(may_select(&pattern("endpoint.*"), &ours) && may_select(&pattern("endpoint.**"), &ours));
    }
}
