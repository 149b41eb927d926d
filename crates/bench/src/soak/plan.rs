//! The twenty connections of the soak: what each is set to, how its remote behaves, which share of the messages it gets.
//!
//! It must not know how they are served or what is measured.

use serde_json::{Value, json};

use super::remote::Manner;

/// Messages are dealt out in hands of so many.
pub const HAND: usize = 200;
/// Remotes that fail for ever get so little that their queues keep up at any rate allowed.
pub const RATE_MAX: u64 = 1500;

pub struct Plan {
    pub name: String,
    pub manner: Manner,
    /// Messages of each hand.
    pub share: usize,
    /// Its remote never takes anything, and the DLQ's action discards what it refused.
    pub gives_up: bool,
    pub settings: Value,
}

/// `Well` has outages beside.
pub fn connections() -> Vec<Plan> {
    let mut plans = Vec::new();
    let patient = json!({"timeout": 2, "max_retries": 1000, "retry_sleep_time": 0.5, "retry_backoff_threshold": 86400});
    let quick = json!({"timeout": 5, "max_retries": 1000, "retry_sleep_time": 0.05, "retry_backoff_threshold": 86400});
    let unordered = json!({"ordered": false, "concurrency": 16, "pool_size": 16});
    let discarding = json!({"dlq_action": "discard", "dlq_retry_interval": 1});
    let mut add = |name: String, manner, share, settings: &[&Value]| {
        let gives_up = matches!(manner, Manner::Closed | Manner::Hangs);
        plans.push(Plan { name, manner, share, gives_up, settings: joined(settings) });
    };
    for number in 0..6 {
        add(format!("healthy-fifo-{number}"), Manner::Well, 15, &[&patient]);
        add(format!("healthy-unordered-{number}"), Manner::Well, 15, &[&patient, &unordered]);
    }
    add("slow".to_owned(), Manner::Slow, 4, &[&quick, &unordered]);
    add("failing-fifo".to_owned(), Manner::FailsEveryThird, 2, &[&quick]);
    add("failing-unordered".to_owned(), Manner::FailsEveryThird, 6, &[&quick, &unordered]);
    add("resetting-fifo".to_owned(), Manner::ResetsEveryOther, 2, &[&quick]);
    add("resetting-unordered".to_owned(), Manner::ResetsEveryOther, 2, &[&quick, &unordered]);
    let retried = json!({"dlq_action": "retry", "dlq_retries": 1000, "dlq_retry_interval": 1, "max_retries": 0});
    add("retried".to_owned(), Manner::FailsEveryOther, 2, &[&retried]);
    let once = json!({"max_retries": 1, "retry_sleep_time": 0.1});
    add("refusing".to_owned(), Manner::Closed, 1, &[&once, &discarding]);
    // A ladder of one attempt.
    let ladder = json!({"retry_delays": [1], "max_attempts": 1, "timeout_seconds": 1});
    add("hanging".to_owned(), Manner::Hangs, 1, &[&ladder, &unordered, &discarding]);
    plans
}

fn joined(parts: &[&Value]) -> Value {
    let members = parts.iter().filter_map(|part| part.as_object()).flatten();
    Value::Object(members.map(|(key, value)| (key.clone(), value.clone())).collect())
}

/// Which connection each message of a hand goes to, every one's share spread evenly over it.
pub fn hand(plans: &[Plan]) -> Vec<usize> {
    let mut places: Vec<(usize, usize)> = Vec::with_capacity(HAND);
    for (index, plan) in plans.iter().enumerate() {
        // In the middle of its part of the hand.
        places.extend((0..plan.share).map(|turn| ((2 * turn + 1) * HAND * 1000 / (2 * plan.share), index)));
    }
    places.sort_unstable();
    places.into_iter().map(|(_, index)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_connections_share_a_hand() {
        let plans = connections();
        assert_eq!(plans.len(), 20);
        let hand = hand(&plans);
        assert_eq!(hand.len(), HAND);
        for (index, plan) in plans.iter().enumerate() {
            assert_eq!(hand.iter().filter(|given| **given == index).count(), plan.share, "{}", plan.name);
        }
        let names: std::collections::BTreeSet<&str> = plans.iter().map(|plan| plan.name.as_str()).collect();
        assert_eq!(names.len(), 20);
    }

    #[test]
    fn what_never_arrives_fits_its_queue_at_the_highest_rate() {
        let hanging = connections().into_iter().find(|plan| plan.manner == Manner::Hangs).unwrap();
        let per_second = hanging.share as u64 * RATE_MAX / HAND as u64;
        assert!(per_second < hanging.settings["concurrency"].as_u64().unwrap(), "each holds a slot for a second");
    }
}
