//! What keys are called on pages. A key that is not here is called by its own words. It must not know what a key means.

/// The delivery keys by the names that people know them by.
const LABELS: &[(&str, &str)] = &[
    ("max_retries", "Max. retries"),
    ("retry_sleep_time", "Wait before the first retry (s)"),
    ("retry_backoff_multiplier", "Wait multiplier"),
    ("retry_backoff_threshold", "Wait in total at most (s)"),
    ("use_queue", "Use queue"),
    ("use_dlq", "Use DLQ"),
    ("dlq_action", "Action"),
    ("dlq_retry_interval", "Every (s)"),
    ("dlq_retries", "Max. retries of the action"),
    ("dlq_forward_to", "Forward to topic"),
    ("dlq_keep_header", "Keep the DLQ header"),
    ("expires_after", "Expires after (s)"),
    ("ordered", "In order"),
    ("settle_ahead_max", "Settle ahead at most"),
    ("retry_preset", "Preset"),
    ("retry_delays", "Waits (s)"),
    ("max_attempts", "Attempts in all"),
    ("retryable_statuses", "Statuses worth a retry"),
    ("timeout_seconds", "Timeout (s)"),
    ("retry_after", "Honour Retry-After"),
    ("ack_match", "Match of acknowledgments"),
    ("is_active", "Active"),
    ("pool_size", "Sockets at most"),
    ("url", "URL"),
    ("url_path", "Path"),
    ("timeout", "Timeout (s)"),
    ("recv_timeout", "Wait for an acknowledgment (ms)"),
    ("event_type", "Event types"),
    ("retention_seconds", "Kept for (s)"),
    ("redeliver_after_seconds", "Given out again after (s)"),
    ("ownerEmail", "E-mail of the owner"),
    ("rateLimitPerSecond", "Webhook attempts a second"),
    ("concurrency", "Attempts at once"),
    ("alertHeadBlockedMinutes", "Alert: head blocked for (min)"),
    ("alertOldestWaitingMinutes", "Alert: oldest has waited (min)"),
    ("alertDeadLetters", "Alert: dead letters"),
    ("alertDeadLettersGrowth", "Alert: dead letters in ten minutes"),
];

/// Short words that are written in capitals.
const CAPITALS: [&str; 6] = ["tls", "ca", "url", "wsdl", "soap", "dlq"];

pub fn label_of(key: &str) -> String {
    if let Some((_, label)) = LABELS.iter().find(|(known, _)| *known == key) {
        return (*label).to_owned();
    }
    let words = key.split('_').map(|word| if CAPITALS.contains(&word) { word.to_uppercase() } else { word.to_owned() });
    let words = words.collect::<Vec<_>>().join(" ");
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::label_of;

    #[test]
    fn a_key_has_its_name_or_its_own_words() {
        for (key, label) in
            [("use_dlq", "Use DLQ"), ("tls_ca_path", "TLS CA path"), ("host", "Host"), ("a_new_key", "A new key")]
        {
            assert_eq!(label_of(key), label);
        }
    }
}
