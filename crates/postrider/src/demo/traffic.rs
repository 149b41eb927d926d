//! A little steady traffic: about three requests a second, and none after half an hour, so that a demo left running fills no disk.

use std::time::Duration;

use postrider::{Call, Client};
use postrider_core::log;
use tokio::task::JoinSet;

use crate::output;

const TICK: Duration = Duration::from_millis(500);
const TICKS_MAX: u32 = 3600;
/// Requests under way at once; with more the tick sends nothing.
const UNDER_WAY_MAX: usize = 16;

const REGISTRY: &str = "Patient Registry";

/// Which connection gets a request every how many ticks. A FIFO queue takes one round after the other, so the failing ones get fewer.
const EVERY: [(&str, u32); 9] = [
    ("Billing API", 1),
    ("Web shop", 8),
    ("Partner API", 10),
    ("Claims API", 12),
    ("Slow API", 16),
    ("Flaky API", 20),
    ("Warehouse API", 24),
    ("Orders API", 24),
    (REGISTRY, 40),
];

pub async fn run(client: Client) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut under_way = JoinSet::new();
    for tick in 0..TICKS_MAX {
        ticks.tick().await;
        while under_way.try_join_next().is_some() {}
        for connection in due(tick) {
            if under_way.len() >= UNDER_WAY_MAX {
                break;
            }
            let client = client.clone();
            under_way.spawn(async move { request(&client, connection, tick).await });
        }
    }
    output::remark("the demo's traffic has ended; the server goes on");
}

fn due(tick: u32) -> impl Iterator<Item = &'static str> {
    EVERY.into_iter().filter(move |(_, every)| tick.is_multiple_of(*every)).map(|(connection, _)| connection)
}

/// Every other one is published, which waits for nothing but storing.
async fn request(client: &Client, connection: &str, number: u32) {
    let call = Call::post(body(connection, number));
    let result = match number % 2 {
        0 => client.send(connection, &call).await,
        _ => client.publish(connection, &call).await,
    };
    if let Err(error) = result {
        tracing::warn!(event = log::DEMO_REFUSED, connection, %error, "a request of the demo was refused");
    }
}

/// The very first patient has a date that the registry does not take.
fn body(connection: &str, number: u32) -> String {
    match (connection, number) {
        (REGISTRY, 0) => "{\n  \"name\": \"Jane Doe\",\n  \"birthDate\": \"25.12.1974\"\n}\n".to_owned(),
        (REGISTRY, number) => {
            format!("{{\n  \"name\": \"Patient {number}\",\n  \"birthDate\": \"1974-12-{:02}\"\n}}\n", 1 + number % 28)
        }
        _ => format!("{{\"invoice\": {number}, \"amount\": {}.50}}", 10 + number % 90),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_begins_with_one_of_each_and_stays_at_a_few_a_second() {
        assert_eq!(due(0).count(), EVERY.len());
        let in_a_minute: usize = (1..=120).map(|tick| due(tick).count()).sum();
        assert!((120..=200).contains(&in_a_minute), "{in_a_minute}");
    }
}
