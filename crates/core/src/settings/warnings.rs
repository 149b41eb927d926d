//! What is accepted and yet worth a word when a connection is saved (D18, D23).
//!
//! This module must not refuse anything.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::KindSettings;
use super::delivery::backoff_of;
use crate::Wait;
use crate::connection::{ConnectionKind, ConnectionSpec, Target};
use crate::policy::{DeliveryPolicy, DlqAction};
use crate::schedule::{Backoff, Schedule};

/// One sentence worth a word, and the key that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingWarning {
    pub field: Cow<'static, str>,
    pub message: String,
}

impl SettingWarning {
    fn new(field: &'static str, message: impl Into<String>) -> Self {
        SettingWarning { field: field.into(), message: message.into() }
    }

    /// About a key of the platform that means nothing here.
    pub fn without_effect(key: &str) -> Self {
        let message = format!("`{key}` has no effect here: it was accepted so that the file imports");
        SettingWarning { field: key.to_owned().into(), message }
    }
}

/// The sentences of [`all_warnings`].
pub fn warnings(kind: ConnectionKind, written: &Map<String, Value>) -> Vec<String> {
    all_warnings(kind, written).into_iter().map(|warning| warning.message).collect()
}

/// One for each thing worth a word, in the order of the keys; settings that are refused have only those about keys.
pub fn all_warnings(kind: ConnectionKind, written: &Map<String, Value>) -> Vec<SettingWarning> {
    let mut warnings: Vec<SettingWarning> = written
        .keys()
        .filter(|key| KindSettings::of(kind).passes_over(key))
        .map(|key| SettingWarning::without_effect(key))
        .collect();
    if let Ok(spec) = ConnectionSpec::parse(kind, written) {
        about_target(&spec.target, &mut warnings);
        about_policy(&spec.policy, &mut warnings);
        about_who_is_let_in(&spec, &mut warnings);
    }
    warnings
}

fn about_target(target: &Target, warnings: &mut Vec<SettingWarning>) {
    match target {
        Target::Rest(_) | Target::Soap(_) | Target::Fhir(_) if target.http().is_some_and(|http| !http.tls.verify) => {
            let message = "`tls_verify` is false: anybody between here and the server can read and change requests";
            warnings.push(SettingWarning::new("tls_verify", message));
        }
        Target::Rest(_) | Target::Soap(_) | Target::Fhir(_) => {}
        // Written in milliseconds, and files of the platform have 250, its default: a receiver that needs longer has the message already
        // when it is sent again (D17).
        Target::Mllp(mllp) if mllp.ack_timeout < Wait::from_secs(1) => {
            let message = format!(
                "`recv_timeout` is {}: a receiver that takes longer to answer gets every message several times",
                mllp.ack_timeout
            );
            warnings.push(SettingWarning::new("recv_timeout", message));
        }
        Target::Service(service) if !service.tls.verify => {
            let message = "`tls_verify` is false: anybody between here and the service can read and change requests";
            warnings.push(SettingWarning::new("tls_verify", message));
        }
        Target::Mllp(_) | Target::Webhook(_) | Target::Channel(_) | Target::Service(_) => {}
    }
}

fn about_who_is_let_in(spec: &ConnectionSpec, warnings: &mut Vec<SettingWarning>) {
    let is_http = spec.target.channel().is_some_and(|channel| channel.door.http().is_some());
    if is_http && spec.security.is_none() {
        let message = "`security` is not set: anybody who reaches this server can send to the channel";
        warnings.push(SettingWarning::new("security", message));
    }
}

fn about_policy(policy: &DeliveryPolicy, warnings: &mut Vec<SettingWarning>) {
    if let Some(backoff) = backoff_of(policy) {
        if backoff.first_wait() > Backoff::LONGEST_WAIT {
            let longest = Backoff::LONGEST_WAIT;
            let message = format!("`retry_sleep_time` is {}: no wait is longer than {longest}", backoff.first_wait());
            warnings.push(SettingWarning::new("retry_sleep_time", message));
        }
        let made = backoff.waits().len();
        if (made as u64) < u64::from(backoff.max_retries()) {
            let (wanted, total) = (backoff.max_retries(), backoff.total());
            let message = format!(
                "of `max_retries` {wanted} only {made} can take place: the waits may take {total} in total (`retry_backoff_threshold`)"
            );
            warnings.push(SettingWarning::new("max_retries", message));
        }
    }
    if let (Schedule::Ladder(ladder), Some(cap)) = (&policy.schedule, policy.age_cap)
        && ladder.longest_total() > cap
    {
        let longest = ladder.longest_total();
        let message = format!("the ladder can take {longest}, and a delivery is given up {cap} after it was created");
        warnings.push(SettingWarning::new("retry_delays", message));
    }
    if matches!(policy.dlq.action, DlqAction::Forward { topic: None, .. }) {
        let message =
            "`dlq_action` is forward and `dlq_forward_to` names no topic: requests stay in the dead-letter queue";
        warnings.push(SettingWarning::new("dlq_action", message));
    }
}
