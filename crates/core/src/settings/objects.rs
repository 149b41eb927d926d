//! The keys of projects, topics and pull subscriptions. This module must not know where they are kept.

use serde_json::{Map, Value};

use super::keys::{KeyDoc, Shape, key};
use super::reader::Reader;
use super::{SettingError, Wait};
use crate::alert::AlertThresholds;
use crate::connection::check_name;
use crate::id::ProjectId;
use crate::topic::TopicName;

/// A topic keeps its messages for so long where nothing else is said, in seconds: 7 days.
pub const RETENTION_S: u32 = 7 * 86_400;
pub const RETENTION_S_MIN: u32 = 60;
/// Ten years.
pub const RETENTION_S_MAX: u32 = 3650 * 86_400;
pub const DESCRIPTION_CHARS_MAX: usize = 1000;
/// An unacknowledged message is given out again after so long where nothing else is said, in seconds.
pub const REDELIVER_S: u32 = 30;
pub const REDELIVER_S_MAX: u32 = 86_400;
/// Topics of one subscription in a file, at most.
const TOPICS_MAX: usize = 1000;

/// What a topic may be called, for refusals.
pub const TOPIC_NAMES: &str = "segments of letters, digits, `_` and `-` with dots between, at most 200 characters";

/// Of an address, as SMTP carries it (RFC 5321, section 4.5.3.1.3).
pub const EMAIL_BYTES_MAX: usize = 254;
/// Of a project, over all its webhook endpoints.
pub const PROJECT_RATE_MAX: u32 = 100_000;
pub const PROJECT_CONCURRENCY_MAX: u32 = 10_000;

/// Of every threshold of alerts.
pub const ALERT_MAX: u32 = 1_000_000;
const ALERT_RANGE: &str = "a whole number from 0 to 1000000";

/// The keys of `projects` beside `name` (D45), by the names that they have everywhere else.
pub const PROJECT_KEYS: &[KeyDoc] = &[
    key(
        "ownerEmail",
        "",
        "an e-mail address such as `ada@example.org`, of at most 254 bytes",
        "Who is written to about it.",
    ),
    key("entitled", "true", "true or false", "Whether its webhooks are paid for; false holds them as `not_entitled`.")
        .of(Shape::Flag),
    key(
        "rateLimitPerSecond",
        "none",
        "a whole number from 1 to 100000",
        "Webhook attempts a second over all endpoints; without it there is no limit.",
    )
    .of(Shape::Whole { min: 1, max: PROJECT_RATE_MAX }),
    key(
        "concurrency",
        "none",
        "a whole number from 1 to 10000",
        "Webhook attempts at a time over all endpoints; without it there is no limit.",
    )
    .of(Shape::Whole { min: 1, max: PROJECT_CONCURRENCY_MAX }),
    key(
        "alertHeadBlockedMinutes",
        "15",
        ALERT_RANGE,
        "Told when the head of an ordered queue has failed for so long; 0: never.",
    )
    .of(Shape::Whole { min: 0, max: ALERT_MAX }),
    key(
        "alertOldestWaitingMinutes",
        "60",
        ALERT_RANGE,
        "Told when the oldest request of a queue has waited so long; 0: never.",
    )
    .of(Shape::Whole { min: 0, max: ALERT_MAX }),
    key("alertDeadLetters", "1", ALERT_RANGE, "Told when a connection has so many dead letters; 0: never.")
        .of(Shape::Whole { min: 0, max: ALERT_MAX }),
    key(
        "alertDeadLettersGrowth",
        "100",
        ALERT_RANGE,
        "Told when they have grown by so many within ten minutes; 0: never.",
    )
    .of(Shape::Whole { min: 0, max: ALERT_MAX }),
    key(
        "alertEndpointFailingMinutes",
        "60",
        ALERT_RANGE,
        "Told when a webhook endpoint has been failing for so long; 0: never.",
    )
    .of(Shape::Whole { min: 0, max: ALERT_MAX }),
];

/// The keys of `pubsub_topic` beside `name`.
pub const TOPIC_KEYS: &[KeyDoc] = &[
    key("description", "", "a text of at most 1000 characters", "For people."),
    key(
        "retention_seconds",
        "604800",
        "a whole number of seconds from 60 to 315360000 (ten years)",
        "How long messages are kept; what a subscription has not acknowledged is kept longer.",
    )
    .of(Shape::Whole { min: RETENTION_S_MIN, max: RETENTION_S_MAX }),
];

/// The keys of `pubsub_subscription` beside `name`.
pub const SUBSCRIPTION_KEYS: &[KeyDoc] = &[
    key("topic_list", "none", "the names of 1 to 1000 topics", "Whose messages it is given.").of(Shape::Texts),
    key(
        "delivery_type",
        "pull",
        "pull: this version has no subscriptions that push",
        "Whether the subscriber asks for messages.",
    )
    .of(Shape::OneOf(&["pull"])),
    key(
        "redeliver_after_seconds",
        "30",
        "a whole number of seconds from 1 to 86400",
        "After how long an unacknowledged message is given out again.",
    )
    .of(Shape::Whole { min: 1, max: REDELIVER_S_MAX }),
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectSpec {
    pub name: String,
    pub owner_email: Option<String>,
    pub entitled: bool,
    pub rate_limit_per_second: Option<u32>,
    pub concurrency: Option<u32>,
    pub alerts: AlertThresholds,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSpec {
    pub name: TopicName,
    pub description: String,
    pub retention: Wait,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionSpec {
    pub name: String,
    pub topics: Vec<TopicName>,
    pub redeliver_after: Wait,
}

impl ProjectSpec {
    /// # Errors
    /// All that is refused, each with its field.
    pub fn parse(name: &str, written: &Map<String, Value>) -> Result<Self, Vec<SettingError>> {
        let mut reader = Reader::new(written, PROJECT_KEYS.iter());
        if let Err(error) = check_name(name) {
            reader.refuse_as(error);
        }
        // A name that looked like an id could stand for another project.
        if name.starts_with(ProjectId::PREFIX) {
            let allowed = format!("a name that does not begin with `{}`", ProjectId::PREFIX);
            reader.refuse_as(SettingError::new("name", name, allowed));
        }
        let spec = ProjectSpec {
            name: name.to_owned(),
            owner_email: owner_email(&mut reader),
            entitled: reader.flag("entitled").unwrap_or(true),
            rate_limit_per_second: reader.whole("rateLimitPerSecond", 1..=PROJECT_RATE_MAX),
            concurrency: reader.whole("concurrency", 1..=PROJECT_CONCURRENCY_MAX),
            alerts: alerts(&mut reader),
        };
        reader.refuse_unknown_keys(|_| false);
        reader.finish(Some(spec))
    }
}

fn alerts(reader: &mut Reader<'_>) -> AlertThresholds {
    let standard = AlertThresholds::default();
    let mut threshold = |key, standard| reader.whole(key, 0..=ALERT_MAX).unwrap_or(standard);
    AlertThresholds {
        head_blocked_minutes: threshold("alertHeadBlockedMinutes", standard.head_blocked_minutes),
        oldest_waiting_minutes: threshold("alertOldestWaitingMinutes", standard.oldest_waiting_minutes),
        dead_letters: threshold("alertDeadLetters", standard.dead_letters),
        dead_letters_growth: threshold("alertDeadLettersGrowth", standard.dead_letters_growth),
        endpoint_failing_minutes: threshold("alertEndpointFailingMinutes", standard.endpoint_failing_minutes),
    }
}

/// The same keys again, for exports and answers.
pub fn written_alerts(alerts: AlertThresholds) -> [(&'static str, u32); 5] {
    [
        ("alertHeadBlockedMinutes", alerts.head_blocked_minutes),
        ("alertOldestWaitingMinutes", alerts.oldest_waiting_minutes),
        ("alertDeadLetters", alerts.dead_letters),
        ("alertDeadLettersGrowth", alerts.dead_letters_growth),
        ("alertEndpointFailingMinutes", alerts.endpoint_failing_minutes),
    ]
}

/// An empty text is none.
fn owner_email(reader: &mut Reader<'_>) -> Option<String> {
    const KEY: &str = "ownerEmail";
    let text = reader.text(KEY).filter(|text| !text.is_empty())?;
    let parts = text.split_once('@');
    let is_address = text.len() <= EMAIL_BYTES_MAX
        && !text.chars().any(|c| c.is_control() || c.is_whitespace())
        && parts.is_some_and(|(local, domain)| !local.is_empty() && !domain.is_empty() && !domain.contains('@'));
    if !is_address {
        let allowed = reader.allowed(KEY);
        reader.refuse(KEY, text.escape_debug(), allowed);
    }
    is_address.then(|| text.to_owned())
}

impl TopicSpec {
    /// # Errors
    /// All that is refused, each with its field.
    pub fn parse(name: &str, written: &Map<String, Value>) -> Result<Self, Vec<SettingError>> {
        let mut reader = Reader::new(written, TOPIC_KEYS.iter());
        let name = topic_name(&mut reader, "name", name);
        let description = reader.text("description").unwrap_or_default();
        if description.chars().count() > DESCRIPTION_CHARS_MAX {
            let allowed = reader.allowed("description");
            reader.refuse("description", description, allowed);
        }
        let retention_s = reader.whole("retention_seconds", RETENTION_S_MIN..=RETENTION_S_MAX).unwrap_or(RETENTION_S);
        reader.refuse_unknown_keys(|_| false);
        let description = description.to_owned();
        reader.finish(name.map(|name| TopicSpec { name, description, retention: Wait::from_secs(retention_s.into()) }))
    }
}

impl SubscriptionSpec {
    /// # Errors
    /// All that is refused, each with its field.
    pub fn parse(name: &str, written: &Map<String, Value>) -> Result<Self, Vec<SettingError>> {
        let mut reader = Reader::new(written, SUBSCRIPTION_KEYS.iter());
        if let Err(error) = check_name(name) {
            reader.refuse_as(error);
        }
        let topics = topics(&mut reader);
        reader.choice("delivery_type", |text| (text == "pull").then_some(()));
        let redeliver_s = reader.whole("redeliver_after_seconds", 1..=REDELIVER_S_MAX).unwrap_or(REDELIVER_S);
        reader.refuse_unknown_keys(|_| false);
        let (name, redeliver_after) = (name.to_owned(), Wait::from_secs(redeliver_s.into()));
        reader.finish(Some(SubscriptionSpec { name, topics, redeliver_after }))
    }
}

fn topics(reader: &mut Reader<'_>) -> Vec<TopicName> {
    const KEY: &str = "topic_list";
    let names: Option<Vec<&str>> = match reader.value(KEY) {
        None => {
            let allowed = reader.allowed(KEY);
            reader.refuse(KEY, "missing", allowed);
            return Vec::new();
        }
        Some(Value::String(name)) => Some(vec![name]),
        Some(Value::Array(names)) => names.iter().map(Value::as_str).collect(),
        Some(_) => None,
    };
    let Some(names) = names.filter(|names| (1..=TOPICS_MAX).contains(&names.len())) else {
        if let Some(value) = reader.value(KEY) {
            reader.refuse_value(KEY, value);
        }
        return Vec::new();
    };
    let mut topics: Vec<TopicName> = Vec::new();
    for name in names {
        let Some(topic) = topic_name(reader, KEY, name) else { continue };
        if topics.contains(&topic) {
            reader.refuse(KEY, name, "each topic once");
        } else {
            topics.push(topic);
        }
    }
    topics
}

fn topic_name(reader: &mut Reader<'_>, key: &'static str, text: &str) -> Option<TopicName> {
    TopicName::new(text).map_err(|error| reader.refuse(key, text, format!("{TOPIC_NAMES}: {error}"))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fields<T: std::fmt::Debug>(read: Result<T, Vec<SettingError>>) -> Vec<String> {
        read.unwrap_err().iter().map(|error| error.field.to_string()).collect()
    }

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn p02_topics_and_subscriptions_are_read_with_their_defaults() {
        let topic = TopicSpec::parse("lab.failed", &Map::new()).unwrap();
        assert_eq!((topic.description.as_str(), topic.retention), ("", Wait::from_secs(604_800)));
        let read = SubscriptionSpec::parse("audit", &map(json!({"topic_list": ["a", "b.c"]}))).unwrap();
        assert_eq!((read.topics.len(), read.redeliver_after), (2, Wait::from_secs(30)));
        assert_eq!(SubscriptionSpec::parse("audit", &map(json!({"topic_list": "a"}))).unwrap().topics.len(), 1);
        let project = ProjectSpec::parse("billing", &Map::new()).unwrap();
        assert!(project.name == "billing" && project.entitled && project.concurrency.is_none());
        let keys =
            json!({"ownerEmail": "ada@example.org", "entitled": false, "rateLimitPerSecond": 9, "concurrency": null});
        let project = ProjectSpec::parse("billing", &map(keys)).unwrap();
        assert_eq!((project.owner_email.as_deref(), project.entitled), (Some("ada@example.org"), false));
        assert_eq!((project.rate_limit_per_second, project.concurrency), (Some(9), None));
    }

    #[test]
    fn z03_what_is_out_of_range_is_refused_by_name_all_at_once() {
        let topic = map(json!({"description": "x".repeat(1001), "retention_seconds": 59, "retention": 1}));
        assert_eq!(fields(TopicSpec::parse("a..b", &topic)), ["name", "description", "retention_seconds", "retention"]);
        let read = |keys: Value| fields(SubscriptionSpec::parse("a/b", &map(keys)));
        let all = json!({"topic_list": ["a", "a", "b c"], "delivery_type": "push", "redeliver_after_seconds": 0});
        assert_eq!(read(all), ["name", "topic_list", "topic_list", "delivery_type", "redeliver_after_seconds"]);
        assert_eq!(read(json!({})), ["name", "topic_list"]);
        assert_eq!(read(json!({"topic_list": []})), ["name", "topic_list"]);
        assert_eq!(read(json!({"topic_list": [1]})), ["name", "topic_list"]);
        let project = json!({"owner": 1, "ownerEmail": "a b@c", "entitled": "yes", "rateLimitPerSecond": 0, "concurrency": 10_001});
        let refused = ["name", "ownerEmail", "entitled", "rateLimitPerSecond", "concurrency", "owner"];
        assert_eq!(fields(ProjectSpec::parse("", &map(project))), refused);
    }
}
