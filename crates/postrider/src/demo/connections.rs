//! The demo's connections, its topic, and a channel with its service, made over the API like anybody's.

use postrider::Client;
use serde_json::{Map, Value, json};

use super::receiver::{BILLING, CLAIMS, FLAKY, INTAKE, ORDERS, PARTNER, Places, REGISTRY, SLOW};
use crate::exit::Failed;

/// Where the Warehouse's dead letters go.
pub const TOPIC: &str = "undeliverable";
/// Where the channel is, below the demo's own server.
const CHANNEL_PATH: &str = "/demo/orders";

pub async fn create(client: &Client, places: &Places) -> Result<(), Failed> {
    client.create_topic(TOPIC, "What the Warehouse API did not take", None).await?;
    client.create_service(&service(places)).await?;
    client.create_channel(&channel()).await?;
    for settings in all(places) {
        client.create_connection(&settings).await?;
    }
    Ok(())
}

fn service(places: &Places) -> Map<String, Value> {
    object(json!({"name": "order-intake", "address": format!("{}{INTAKE}", places.receiver)}))
}

/// What it accepts is on disk before its caller is told; each run fails once.
fn channel() -> Map<String, Value> {
    object(
        json!({"name": "Order intake", "type": "rest", "service": "order-intake", "url_path": CHANNEL_PATH, "method": "POST",
        "use_queue": true, "max_retries": 3, "retry_sleep_time": 1}),
    )
}

fn object(settings: Value) -> Map<String, Value> {
    match settings {
        Value::Object(settings) => settings,
        _ => Map::new(),
    }
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
        // It plays a caller of the channel.
        json!({"name": "Web shop", "host": places.server, "url_path": CHANNEL_PATH}),
    ];
    let typed = connections.into_iter().map(|mut settings| {
        settings["type"] = "rest".into();
        object(settings)
    });
    typed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use postrider_core::connection::{ConnectionKind, ConnectionSpec};

    #[test]
    fn every_connection_of_the_demo_passes_the_checks() {
        let places = Places {
            receiver: "http://127.0.0.1:1".into(),
            nowhere: "http://127.0.0.1:2".into(),
            server: "http://127.0.0.1:3".into(),
        };
        let all = all(&places);
        assert_eq!(all.len(), 9);
        let rest = all.into_iter().map(|settings| (ConnectionKind::Rest, settings));
        let others = [(ConnectionKind::Service, service(&places)), (ConnectionKind::ChannelRest, channel())];
        for (kind, mut settings) in rest.chain(others) {
            settings.shift_remove("name");
            settings.shift_remove("type");
            assert_eq!(ConnectionSpec::parse(kind, &settings).err(), None, "{settings:?}");
        }
    }
}
