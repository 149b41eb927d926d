//! The keys of a ladder: a preset, and what differs from it. Any of them makes a ladder of a connection's retries (P01).
//!
//! This module must not know of rounds, queues or the DLQ.

use serde_json::Value;

use super::reader::Reader;
use crate::Wait;
use crate::policy::DeliveryPolicy;
use crate::retry_after::RetryAfterRule;
use crate::schedule::{Jitter, Ladder, Schedule};
use crate::status_set::StatusSet;

/// Any of these makes a ladder.
pub(super) const LADDER_KEYS: [&str; 7] =
    ["retry_preset", "retry_delays", "max_attempts", "retryable_statuses", "timeout_seconds", "jitter", "retry_after"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preset {
    Webhook,
    Forward,
    Patient,
}

impl Preset {
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            "webhook" => Some(Preset::Webhook),
            "forward" => Some(Preset::Forward),
            "patient" => Some(Preset::Patient),
            _ => None,
        }
    }

    pub(super) fn policy(self) -> DeliveryPolicy {
        match self {
            Preset::Webhook => DeliveryPolicy::webhook(),
            Preset::Forward => DeliveryPolicy::forward(),
            Preset::Patient => DeliveryPolicy::patient(),
        }
    }

    fn ladder(self) -> Ladder {
        match self {
            Preset::Webhook => Ladder::webhook(),
            Preset::Forward => Ladder::forward(),
            Preset::Patient => Ladder::patient(),
        }
    }
}

/// The first ladder key that is written, if any.
pub(super) fn first_ladder_key(reader: &Reader<'_>) -> Option<&'static str> {
    LADDER_KEYS.into_iter().find(|key| reader.has(key))
}

/// The preset's policy with what is written in place of its own; without `retry_preset` it is `webhook`.
pub(super) fn read(reader: &mut Reader<'_>) -> DeliveryPolicy {
    let preset = reader.choice("retry_preset", Preset::parse).unwrap_or(Preset::Webhook);
    let mut policy = preset.policy();
    let ladder = preset.ladder();
    let max_attempts = reader.whole("max_attempts", 1..=Ladder::MAX_ATTEMPTS_MAX).unwrap_or(ladder.max_attempts());
    let delays = delays(reader).unwrap_or_else(|| ladder.delays().to_vec());
    let jitter = match reader.flag("jitter") {
        Some(true) => Jitter::HalfToOneAndAHalf,
        Some(false) => Jitter::None,
        None => ladder.jitter(),
    };
    match Ladder::new(max_attempts, delays, jitter) {
        Ok(ladder) => policy.schedule = Schedule::Ladder(ladder),
        Err(error) => reader.refuse_as(error),
    }
    if let Some(set) = statuses(reader) {
        policy.retryable_statuses = set;
    }
    if let Some(seconds) = reader.whole("timeout_seconds", 1..=60) {
        policy.timeout = Wait::from_secs(seconds.into());
    }
    match reader.flag("retry_after") {
        Some(false) => policy.retry_after = RetryAfterRule::Ignored,
        Some(true) => policy.retry_after = RetryAfterRule::LaterOnly { max: RetryAfterRule::DEFAULT_MAX },
        None => {}
    }
    policy
}

/// R06: a list that cannot be read is refused with its bad term.
pub(super) fn statuses(reader: &mut Reader<'_>) -> Option<StatusSet> {
    const KEY: &str = "retryable_statuses";
    let text = reader.text(KEY)?;
    text.parse()
        .map_err(|error| {
            let allowed = format!("{}: {error}", reader.allowed(KEY));
            reader.refuse(KEY, text, allowed);
        })
        .ok()
}

/// The waits as a list of numbers or as text with commas.
pub(super) fn delays(reader: &mut Reader<'_>) -> Option<Vec<Wait>> {
    const KEY: &str = "retry_delays";
    let value = reader.value(KEY)?;
    let delays: Option<Vec<Wait>> = match value {
        Value::Array(entries) if entries.len() <= Ladder::DELAYS_MAX => {
            entries.iter().map(|entry| entry.as_f64().and_then(delay)).collect()
        }
        Value::String(text) if text.len() <= 1024 => {
            text.split(',').map(|entry| entry.trim().parse().ok().and_then(delay)).collect()
        }
        _ => None,
    };
    let delays = delays.filter(|delays| (1..=Ladder::DELAYS_MAX).contains(&delays.len()));
    if delays.is_none() {
        reader.refuse_value(KEY, value);
    }
    delays
}

fn delay(seconds: f64) -> Option<Wait> {
    let range = Ladder::DELAY_MIN.as_secs_f64()..=Ladder::DELAY_MAX.as_secs_f64();
    range.contains(&seconds).then(|| Wait::from_millis((seconds * 1000.0).round() as u64))
}
