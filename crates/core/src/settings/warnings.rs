//! What is accepted and yet worth a word when a connection is saved (D18, D23).
//!
//! This module must not refuse anything.

use serde_json::{Map, Value};

use super::delivery::backoff_of;
use crate::connection::{ConnectionKind, ConnectionSpec, Target};
use crate::policy::{DeliveryPolicy, DlqAction};
use crate::schedule::{Backoff, Schedule};

/// Keys of the integration platform that mean nothing here, so that its files import (D18).
const PASSED_OVER: [&str; 3] = ["is_audit_log_active", "ping_method", "response_map"];
/// The same for whole families of keys.
const PASSED_OVER_FAMILIES: [&str; 5] = ["request_", "response_map_", "callback_", "scheduler_", "health_check_"];

/// Whether a key of the platform is accepted and has no effect.
pub(super) fn is_passed_over(kind: ConnectionKind, key: &str) -> bool {
    match kind {
        ConnectionKind::Rest => {
            PASSED_OVER.contains(&key) || PASSED_OVER_FAMILIES.iter().any(|family| key.starts_with(family))
        }
    }
}

/// One sentence for each thing worth a word, in the order of the keys; settings that are refused have only those about keys.
pub fn warnings(kind: ConnectionKind, written: &Map<String, Value>) -> Vec<String> {
    let mut warnings: Vec<String> = written
        .keys()
        .filter(|key| is_passed_over(kind, key))
        .map(|key| format!("`{key}` has no effect here: it was accepted so that the file imports"))
        .collect();
    if let Ok(spec) = ConnectionSpec::parse(kind, written) {
        about_target(&spec.target, &mut warnings);
        about_policy(&spec.policy, &mut warnings);
    }
    warnings
}

fn about_target(target: &Target, warnings: &mut Vec<String>) {
    match target {
        Target::Rest(rest) if !rest.tls.verify => {
            warnings.push(
                "`tls_verify` is false: anybody between here and the server can read and change requests".to_owned(),
            );
        }
        Target::Rest(_) => {}
    }
}

fn about_policy(policy: &DeliveryPolicy, warnings: &mut Vec<String>) {
    if let Some(backoff) = backoff_of(policy) {
        if backoff.first_wait() > Backoff::LONGEST_WAIT {
            let longest = Backoff::LONGEST_WAIT;
            warnings.push(format!("`retry_sleep_time` is {}: no wait is longer than {longest}", backoff.first_wait()));
        }
        let made = backoff.waits().len();
        if (made as u64) < u64::from(backoff.max_retries()) {
            let (wanted, total) = (backoff.max_retries(), backoff.total());
            warnings.push(format!(
                "of `max_retries` {wanted} only {made} can take place: the waits may take {total} in total (`retry_backoff_threshold`)"
            ));
        }
    }
    if let (Schedule::Ladder(ladder), Some(cap)) = (&policy.schedule, policy.age_cap)
        && ladder.longest_total() > cap
    {
        let longest = ladder.longest_total();
        warnings.push(format!("the ladder can take {longest}, and a delivery is given up {cap} after it was created"));
    }
    if matches!(policy.dlq.action, DlqAction::Forward { topic: None, .. }) {
        warnings.push(
            "`dlq_action` is forward and `dlq_forward_to` names no topic: requests stay in the dead-letter queue"
                .to_owned(),
        );
    }
}
