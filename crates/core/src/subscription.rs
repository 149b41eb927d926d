//! A subscription that pushes: which topics it selects, where their messages go, and what differs there from the connection's policy (D40).
//!
//! It must not know which topics exist, nor how a message is stored or sent.

use serde_json::{Map, Value};

use crate::connection::ConnectionSpec;
use crate::id::{ConnectionId, ProjectId, SubscriptionId};
use crate::message::HeaderList;
use crate::operational;
use crate::ordering::Line;
use crate::policy::DeliveryPolicy;
use crate::schedule::{Jitter, Ladder, LadderTerms};
use crate::settings;
use crate::status_set::StatusSet;
use crate::topic::{TopicName, TopicPattern};
use crate::{SettingError, Timestamp, Wait};

/// Deliveries that one message may come to; with more subscriptions that match it is refused (D40).
pub const FAN_OUT_MAX: usize = 50;

#[derive(Clone, Debug, PartialEq)]
pub struct PushSubscription {
    pub id: SubscriptionId,
    pub project_id: ProjectId,
    /// Unique per project.
    pub name: String,
    pub connection_id: ConnectionId,
    /// The keys as written, without `name` and the connection.
    pub written: Map<String, Value>,
    pub spec: PushSpec,
    /// Rises with every change.
    pub version: u32,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// The validated meaning of a subscription's keys. What is `None` is the connection's.
#[derive(Clone, Debug, PartialEq)]
pub struct PushSpec {
    pub pattern: TopicPattern,
    pub enabled: bool,
    pub max_attempts: Option<u32>,
    pub retry_delays: Option<Vec<Wait>>,
    pub retryable_statuses: Option<StatusSet>,
    pub timeout: Option<Wait>,
    /// Order is kept among its deliveries, also where the connection keeps none (R15).
    pub ordering_enabled: bool,
    /// Sent with its deliveries; copied to each when it is created (D21).
    pub custom_headers: HeaderList,
    /// A jq program that makes what is sent of the body. Always live, never copied (R13, D21); whether it compiles is not known here.
    pub transformation: Option<String>,
}

impl PushSubscription {
    pub fn selects(&self, topic: &TopicName) -> bool {
        self.spec.enabled && operational::may_select(&self.spec.pattern, topic) && self.spec.pattern.matches(topic)
    }
}

impl PushSpec {
    /// # Errors
    /// All that is refused, each with its field.
    pub fn parse(written: &Map<String, Value>) -> Result<Self, Vec<SettingError>> {
        settings::subscription::parse(written)
    }

    /// What a delivery keeps of its ladder: the connection's with what differs here. `None`: it goes in the connection's rounds.
    pub fn terms(&self, policy: &DeliveryPolicy) -> Option<LadderTerms> {
        let own = LadderTerms::of(policy);
        if self.is_plain() {
            return own;
        }
        // A connection in rounds has no ladder to differ from (P01).
        let base = own.or_else(|| LadderTerms::of(&DeliveryPolicy::webhook()))?;
        let delays = self.retry_delays.clone().unwrap_or_else(|| base.ladder.delays().to_vec());
        let max_attempts = self.max_attempts.unwrap_or(base.ladder.max_attempts());
        // Both were checked when they were read.
        let ladder = Ladder::new(max_attempts, delays, base.ladder.jitter()).unwrap_or(base.ladder);
        Some(LadderTerms {
            ladder,
            retryable_statuses: self.retryable_statuses.clone().unwrap_or(base.retryable_statuses),
            timeout: self.timeout.unwrap_or(base.timeout),
        })
    }

    /// Whether its deliveries go one after another, by its own wish or by that of where it sends to.
    pub fn keeps_order(&self, connection: &ConnectionSpec) -> bool {
        let by_key = connection.target.webhook().is_some_and(|endpoint| endpoint.ordered_by_key);
        self.ordering_enabled || by_key || connection.policy.queue.ordered
    }

    /// The line in which a delivery of this body waits for those before it (R15). `None`: nothing is before it, or the whole queue is in order.
    pub fn line(&self, connection: &ConnectionSpec, body: &[u8]) -> Option<Line> {
        let endpoint = connection.target.webhook();
        let in_line = self.ordering_enabled || endpoint.is_some_and(|endpoint| endpoint.ordered_by_key);
        let key = endpoint.and_then(|endpoint| endpoint.ordering_key.as_ref());
        (in_line && !connection.policy.queue.ordered).then(|| Line::of(key, body))
    }

    /// Says nothing about attempts.
    fn is_plain(&self) -> bool {
        self.max_attempts.is_none()
            && self.retry_delays.is_none()
            && self.retryable_statuses.is_none()
            && self.timeout.is_none()
    }

    /// A ladder that cannot end within the connection's age cap: accepted with these words (D23).
    pub fn warning(&self, policy: &DeliveryPolicy) -> Option<String> {
        let (terms, cap) = (self.terms(policy)?, policy.age_cap?);
        let longest = terms.ladder.longest_total();
        let is_jittered = terms.ladder.jitter() == Jitter::HalfToOneAndAHalf;
        let top = if is_jittered { " at the top of its jitter" } else { "" };
        (longest > cap).then(|| {
            format!("the ladder can take {longest}{top}, and a delivery is given up {cap} after it was created")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Backoff;
    use serde_json::json;

    fn spec(keys: Value) -> PushSpec {
        let mut written = json!({"event_type": "order.*"});
        written.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
        PushSpec::parse(written.as_object().unwrap()).unwrap()
    }

    // proves: R03, D21
    #[test]
    fn r03_a_subscription_overrides_only_what_it_names() {
        let webhook = DeliveryPolicy::webhook();
        assert_eq!(spec(json!({})).terms(&webhook), LadderTerms::of(&webhook));
        let terms = spec(json!({"max_attempts": 3})).terms(&webhook).unwrap();
        assert_eq!((terms.ladder.max_attempts(), terms.ladder.delays()), (3, Ladder::webhook().delays()));
        assert_eq!((terms.timeout, terms.retryable_statuses), (webhook.timeout, webhook.retryable_statuses.clone()));
        let keys = json!({"retry_delays": [1, 2], "retryable_statuses": "5xx,!501", "timeout_seconds": 5});
        let terms = spec(keys).terms(&webhook).unwrap();
        assert_eq!(terms.ladder.delays(), [Wait::from_secs(1), Wait::from_secs(2)]);
        assert_eq!((terms.timeout, terms.ladder.max_attempts()), (Wait::from_secs(5), 7));
        assert!(!terms.retryable_statuses.contains(501) && terms.retryable_statuses.contains(500));
    }

    #[test]
    fn p01_on_a_connection_in_rounds_its_keys_make_a_ladder() {
        let rounds = DeliveryPolicy::rounds(Backoff::default());
        assert_eq!(spec(json!({})).terms(&rounds), None);
        let terms = spec(json!({"max_attempts": 2})).terms(&rounds).unwrap();
        assert_eq!((terms.ladder.max_attempts(), terms.ladder.delays()), (2, Ladder::webhook().delays()));
    }

    #[test]
    fn d23_a_ladder_that_does_not_fit_its_cap_is_warned_of() {
        let webhook = DeliveryPolicy::webhook();
        assert_eq!(spec(json!({})).warning(&webhook), None);
        assert!(spec(json!({"max_attempts": 20})).warning(&webhook).is_some());
    }

    #[test]
    fn p02_a_disabled_subscription_selects_nothing() {
        let now = Timestamp::from_millis(0);
        let of = |enabled: bool| PushSubscription {
            id: SubscriptionId::from_u128(1),
            project_id: ProjectId::from_u128(1),
            name: "s".to_owned(),
            connection_id: ConnectionId::from_u128(1),
            written: Map::new(),
            spec: spec(json!({"enabled": enabled})),
            version: 1,
            created_at: now,
            updated_at: now,
        };
        let name = |text: &str| TopicName::new(text).unwrap();
        assert!(of(true).selects(&name("order.created")) && !of(true).selects(&name("order.line.added")));
        assert!(!of(false).selects(&name("order.created")));
    }
}
