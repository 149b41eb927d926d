//! Endpoints, their subscriptions and their events: what a seed decides about them, and what publishers do.
//!
//! Decided with dice of their own, so that what a seed decides about all else stays as it was. It must not look into the store.

use bytes::Bytes;
use postrider_core::id::ProjectId;
use postrider_core::message::HeaderList;
use postrider_core::topic::TopicName;
use postrider_engine::{Engine, KeyWish, NewEndpoint, NewEvent, NewSubscription, SigningScheme};
use postrider_store::ProjectSettings;
use rand::Rng;
use rand::rngs::StdRng;
use serde_json::{Map, Value, json};

use crate::oracle::Oracle;

/// Keys of events: few, so that many share one.
const KEYS: u32 = 3;

#[derive(Clone, Debug, Default)]
pub struct HookPlan {
    pub endpoints: Vec<EndpointPlan>,
    /// Over all endpoints of the project.
    pub rate: Option<u32>,
    pub concurrency: Option<u32>,
}

#[derive(Clone, Debug)]
pub struct EndpointPlan {
    pub settings: Map<String, Value>,
    pub subscription: Map<String, Value>,
}

impl HookPlan {
    pub fn draw(rng: &mut StdRng) -> HookPlan {
        if rng.random_bool(0.5) {
            return HookPlan::default();
        }
        let count = rng.random_range(1..=3);
        HookPlan {
            endpoints: (0..count).map(|index| endpoint(index, rng)).collect(),
            rate: rng.random_bool(0.3).then(|| rng.random_range(2..20)),
            concurrency: rng.random_bool(0.3).then(|| rng.random_range(1..5)),
        }
    }

    pub async fn set_up(&self, engine: &Engine, project: ProjectId, oracle: &Oracle) {
        for (index, endpoint) in self.endpoints.iter().enumerate() {
            if let Err(refusal) = endpoint.set_up(index, engine, project).await {
                oracle.report(0, format!("the plan's endpoint was refused: {refusal}"));
            }
        }
        let Ok(Some(known)) = oracle.store().project("default").await else { return };
        let settings = ProjectSettings {
            rate_limit_per_second: self.rate,
            concurrency: self.concurrency,
            ..ProjectSettings::default()
        };
        if self.rate.or(self.concurrency).is_some()
            && let Err(refusal) = engine.configure_project(&known, settings).await
        {
            oracle.report(0, format!("the plan's limits were refused: {refusal}"));
        }
    }

    /// An event for one of the endpoints. `number`: makes its body its own.
    pub fn event(&self, number: u64, rng: &mut StdRng) -> Option<(usize, NewEvent)> {
        if self.endpoints.is_empty() || rng.random_bool(0.4) {
            return None;
        }
        let index = rng.random_range(0..self.endpoints.len());
        let body = Bytes::from(json!({"k": rng.random_range(0..KEYS), "n": number}).to_string());
        let event_type = TopicName::new(format!("hook{index}.happened")).ok()?;
        Some((index, NewEvent { event_type, headers: HeaderList::default(), body, id: None, cid: None }))
    }
}

impl EndpointPlan {
    async fn set_up(&self, index: usize, engine: &Engine, project: ProjectId) -> Result<(), postrider_engine::Refusal> {
        let new = NewEndpoint {
            name: Some(format!("hook{index}")),
            written: self.settings.clone(),
            key: KeyWish::Make(SigningScheme::Symmetric),
            verify: false,
        };
        let (connection, _) = engine.create_endpoint(project, new).await?;
        let subscription =
            NewSubscription { name: None, connection: connection.id, written: self.subscription.clone() };
        engine.subscribe_push(project, subscription).await.map(|_| ())
    }
}

fn endpoint(index: u32, rng: &mut StdRng) -> EndpointPlan {
    let mut settings = json!({
        "url": format!("https://hook{index}.test/in"),
        "payload": "data",
        "timeout_seconds": rng.random_range(1..=5),
        "retry_delays": [1, rng.random_range(1..10), 20],
        "max_attempts": rng.random_range(1..=6),
        "jitter": rng.random_bool(0.5),
        "breaker_failures": if rng.random_bool(0.7) { rng.random_range(1..5) } else { 0 },
        "breaker_seconds": rng.random_range(1..8),
    });
    let mut subscription = json!({"event_type": format!("hook{index}.*")});
    match rng.random_range(0..5) {
        0 => settings["ordered"] = true.into(),
        1 | 2 => {
            settings["ordered"] = true.into();
            settings["ordering_key"] = "/k".into();
            settings["concurrency"] = rng.random_range(1..4).into();
        }
        3 => {
            subscription["ordering_enabled"] = true.into();
            settings["ordering_key"] = "/k".into();
        }
        _ => settings["concurrency"] = rng.random_range(1..4).into(),
    }
    if rng.random_bool(0.5) {
        settings["rate_limit_per_second"] = rng.random_range(1..20).into();
    }
    let map = |value: Value| value.as_object().cloned().unwrap_or_default();
    EndpointPlan { settings: map(settings), subscription: map(subscription) }
}
