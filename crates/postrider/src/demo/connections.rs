//! The demo's connections and its topic, made over the API like anybody's.

use postrider::Client;
use serde_json::{Map, Value, json};

use super::receiver::{BILLING, CLAIMS, FLAKY, ORDERS, PARTNER, Places, REGISTRY, SLOW};
use crate::exit::Failed;

/// Where the Warehouse's dead letters go.
pub const TOPIC: &str = "undeliverable";

pub async fn create(client: &Client, places: &Places) -> Result<(), Failed> {
    client.create_topic(TOPIC, "What the Warehouse API did not take", None).await?;
    for settings in all(places) {
        client.create_connection(&settings).await?;
    }
    Ok(())
}

/// Waits are short, so that a minute shows everything.
fn all(places: &Places) -> Vec<Map<String, Value>> {
    let host = &places.receiver;
    let connections = [
        json!({"name": "Billing API", "host": host, "url_path": BILLING, "use_queue": true, "max_retries": 3}),
        json!({"name": "Flaky API", "host": host, "url_path": FLAKY, "use_queue": true, "max_retries": 5,
            "retry_sleep_time": 1}),
        json!({"name": "Claims API", "host": host, "url_path": CLAIMS, "use_queue": true, "max_retries": 2,
            "retry_sleep_time": 0.5}),
        json!({"name": "Slow API", "host": host, "url_path": SLOW, "use_queue": true, "max_retries": 1,
            "retry_sleep_time": 1, "timeout": 1}),
        json!({"name": "Warehouse API", "host": places.nowhere, "url_path": "/stock", "use_queue": true, "max_retries": 1,
            "retry_sleep_time": 1, "dlq_action": "forward", "dlq_forward_to": TOPIC, "dlq_retry_interval": 5}),
        json!({"name": "Orders API", "host": host, "url_path": ORDERS, "use_queue": true, "max_retries": 1,
            "retry_sleep_time": 1, "dlq_action": "retry", "dlq_retries": 3, "dlq_retry_interval": 10}),
        // The DLQ off: what it refuses blocks the queue until somebody edits or discards it.
        json!({"name": "Patient Registry", "host": host, "url_path": REGISTRY, "use_queue": true, "use_dlq": false,
            "max_retries": 2, "retry_sleep_time": 1}),
        // The queue off: the caller waits, and a 429 is retried when it says.
        json!({"name": "Partner API", "host": host, "url_path": PARTNER, "max_retries": 3}),
    ];
    connections
        .into_iter()
        .filter_map(|mut settings| {
            settings["type"] = "rest".into();
            match settings {
                Value::Object(settings) => Some(settings),
                _ => None,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use postrider_core::connection::{ConnectionKind, ConnectionSpec};

    #[test]
    fn every_connection_of_the_demo_passes_the_checks() {
        let places = Places { receiver: "http://127.0.0.1:1".into(), nowhere: "http://127.0.0.1:2".into() };
        let all = all(&places);
        assert_eq!(all.len(), 8);
        for mut settings in all {
            settings.shift_remove("name");
            settings.shift_remove("type");
            assert_eq!(ConnectionSpec::parse(ConnectionKind::Rest, &settings).err(), None, "{settings:?}");
        }
    }
}
