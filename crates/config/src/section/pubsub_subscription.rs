//! `pubsub_subscription`: who is given a topic's messages. Each topic of an item's `topic_list` has its own subscription in the store.

use std::collections::BTreeMap;

use postrider_core::SettingError;
use postrider_core::id::{ProjectId, SubscriptionId};
use postrider_core::settings::objects::{SUBSCRIPTION_KEYS, SubscriptionSpec};
use postrider_core::settings::{KeyDoc, differing};
use postrider_store::{ConfigChange, PullSubscription};
use serde_json::{Map, Value};

use super::{Need, Object, Section};
use crate::plan::Making;
use crate::state::State;

pub struct Subscriptions;

const TOPICS: &str = "topic_list";
/// The platform names the reader of a subscription, and not the subscription.
const SECURITY: &str = "security";
/// Keys that would make it push. An empty text is unset.
const OF_PUSH: [&str; 2] = ["push_rest_endpoint", "push_service"];

/// A subscription of one topic.
fn object(name: &str, topic: &str, written: &Map<String, Value>) -> Object {
    let mut written = written.clone();
    written.insert(TOPICS.to_owned(), Value::Array(vec![topic.into()]));
    let keys = differing(SUBSCRIPTION_KEYS.iter(), &written);
    Object { id: format!("{name} on {topic}"), name: name.to_owned(), written, keys }
}

fn topic_of(object: &Object) -> &str {
    object.keys.get(TOPICS).and_then(|list| list.get(0)).and_then(Value::as_str).unwrap_or_default()
}

impl Section for Subscriptions {
    fn name(&self) -> &'static str {
        "pubsub_subscription"
    }

    fn meaning(&self) -> &'static str {
        "Who is given the messages of topics, one subscription for each topic of the list."
    }

    fn keys(&self) -> Vec<&'static KeyDoc> {
        SUBSCRIPTION_KEYS.iter().collect()
    }

    fn required(&self) -> &'static [&'static str] {
        &[TOPICS]
    }

    fn reads(&self, key: &str) -> bool {
        OF_PUSH.contains(&key) || SUBSCRIPTION_KEYS.iter().any(|doc| doc.name == key)
    }

    fn passed_over(&self) -> (&'static [&'static str], &'static [&'static str]) {
        (&[SECURITY, "max_retry_time", "is_active", "is_audit_log_active"], &[])
    }

    fn name_from(&self) -> Option<&'static str> {
        Some(SECURITY)
    }

    fn read(&self, name: &str, written: &Map<String, Value>) -> Result<Vec<Object>, Vec<SettingError>> {
        let mut ours = written.clone();
        let mut errors = Vec::new();
        for key in OF_PUSH {
            let given = ours.shift_remove(key).filter(|value| !value.is_null() && value.as_str() != Some(""));
            if let Some(value) = given {
                errors.push(SettingError::new(key, value, "nothing: this version has no subscriptions that push"));
            }
        }
        let spec = SubscriptionSpec::parse(name, &ours).map_err(|mut more| {
            more.append(&mut errors);
            more
        })?;
        if !errors.is_empty() {
            return Err(errors);
        }
        Ok(spec.topics.iter().map(|topic| object(name, topic.as_str(), &ours)).collect())
    }

    fn needs(&self, object: &Object) -> Vec<Need> {
        vec![Need { key: TOPICS, section: "pubsub_topic", id: topic_of(object).to_owned(), warning: None }]
    }

    fn current(&self, state: &State, project: ProjectId) -> Vec<Object> {
        let found =
            state.topics_of(project).flat_map(|topic| state.subscriptions_of(topic.id).map(move |s| (topic, s)));
        found
            .map(|(topic, subscription)| {
                let mut written = Map::new();
                let seconds = subscription.redeliver_after.as_millis() / 1000;
                written.insert("redeliver_after_seconds".to_owned(), seconds.into());
                object(&subscription.name, topic.name.as_str(), &written)
            })
            .collect()
    }

    fn change(&self, wanted: &Object, project: ProjectId, making: &Making<'_>) -> Result<ConfigChange, String> {
        let spec = SubscriptionSpec::parse(&wanted.name, &wanted.written).map_err(|_| "it reads differently now")?;
        let topic = topic_of(wanted);
        let topic = making.state.topic(project, topic).ok_or_else(|| format!("the topic `{topic}` does not exist"))?;
        let known = making.state.subscription(topic.id, &spec.name);
        let redeliver_after = spec.redeliver_after;
        Ok(match known {
            Some(was) => ConfigChange::ReplaceSubscription {
                was: was.clone(),
                now: PullSubscription { redeliver_after, ..was.clone() },
            },
            None => ConfigChange::CreateSubscription(PullSubscription {
                id: SubscriptionId::new(making.now, (making.bits)()),
                project_id: project,
                topic_id: topic.id,
                name: spec.name,
                redeliver_after,
                created_at: making.now,
            }),
        })
    }

    /// Those of one name that differ in nothing but the topic become one item.
    fn items(&self, objects: Vec<Object>) -> Vec<Object> {
        let mut together: BTreeMap<(String, String), Object> = BTreeMap::new();
        for mut object in objects {
            let Some(Value::Array(mut topics)) = object.keys.shift_remove(TOPICS) else { continue };
            let rest = Value::Object(object.keys.clone()).to_string();
            let item = together.entry((object.name.clone(), rest)).or_insert_with(|| {
                let mut keys = Map::new();
                keys.insert(TOPICS.to_owned(), Value::Array(Vec::new()));
                keys.extend(object.keys);
                Object { keys, ..object }
            });
            if let Some(Value::Array(all)) = item.keys.get_mut(TOPICS) {
                all.append(&mut topics);
            }
        }
        together.into_values().collect()
    }
}
