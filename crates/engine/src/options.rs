//! The engine's own limits, each with its name (law 5). Limits of one connection are in its policy.

use std::sync::Arc;

use postrider_core::Wait;
use postrider_core::connection::Connection;
use postrider_core::person::SessionLimits;
use postrider_core::readiness::Bounds;
use postrider_core::retry_after::RetryAfterRule;
use postrider_store::AUDIT_RETENTION;
use postrider_wire::mail::Mailer;
use postrider_wire::otlp::SpanSink;
use serde_json::Value;

use crate::plug::Plug;
use crate::transforming::Transform;
use crate::vault::Keyring;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineOptions {
    /// `POSTRIDER_LEASE_SECONDS`: a worker's lease; renewed every third of it (D05).
    pub lease: Wait,
    /// Deliveries of one queue in memory at most.
    pub window_deliveries_max: u32,
    /// Their bodies in memory at most, for one queue; one delivery is always let in.
    pub window_bytes_max: u64,
    /// Requests of one intake batch at most.
    pub intake_batch_max: usize,
    /// Decisions of one settling batch at most.
    pub settle_batch_max: usize,
    /// Requests that wait for storing at most; then intake refuses.
    pub intake_waiting_max: usize,
    /// Finished direct calls that wait to enter the log at most; then the call waits (D12).
    pub call_log_waiting_max: usize,
    /// `body_bytes_max` (D07).
    pub body_bytes_max: u64,
    /// Other workers share the store and may die: queues without an owner are looked for every few seconds.
    pub other_workers: bool,
    /// `POSTRIDER_LOG_RETENTION_SECONDS`: how long the log keeps what has ended (V07).
    pub log_retention: Wait,
    /// `audit_retention`: how long the audit log keeps its entries.
    pub audit_retention: Wait,
    /// When sessions of the dashboard end by themselves.
    pub sessions: SessionLimits,
    /// What secrets are sealed with at rest (D46).
    pub keyring: Keyring,
    /// Jobs of one project that have not ended, at most; a further one is refused (P08).
    pub jobs_active_max: u32,
    /// Deliveries of one step of a job at most; a step is one transaction.
    pub job_batch_max: u32,
    /// How long jobs are kept after their end.
    pub job_retention: Wait,
    pub ladders: LadderLimits,
    /// `WEBHOOK_CLAIM_TIMEOUT_SECONDS`: how long the claim of a worker that died is left to it, on a ladder; zero where the store proves
    /// that it is dead (R01, D05).
    pub claim_timeout: Wait,
    /// Takes mails to people; without it none are sent.
    pub mailer: Plug<dyn Mailer>,
    /// `POSTRIDER_ALERT_TO`: who is told of every alert, beside the owner of its project.
    pub alert_to: Vec<String>,
    /// `POSTRIDER_ALERT_SECONDS`: how often alerts are looked for.
    pub alert_every: Wait,
    /// `POSTRIDER_ALERT_DISK_MB`, in bytes: with less free, somebody is told; 0: never.
    pub alert_disk_free_bytes: u64,
    /// `POSTRIDER_ENDPOINT_SWEEP_SECONDS`: how often endpoints that have been failing for too long are looked for (V04).
    pub endpoint_sweep_every: Wait,
    /// After the first try of a mail; twice as long after each.
    pub mail_pause: Wait,
    /// Takes spans; without it none are made.
    pub spans: Plug<dyn SpanSink>,
    /// Runs the transformations of subscriptions; without it none can be saved, and what has one fails.
    pub transform: Plug<dyn Transform>,
    /// Whether this process starts a host of services, which a run waits for until it has said for the first time what it serves.
    pub hosts_services: bool,
    /// Whether this process opens the ports of MLLP channels.
    pub listens: bool,
    /// How long is too long for the health checks.
    pub health: Bounds,
    /// Whether the tasks behind the health checks run; off where time is simulated and a tick each second would cost more than it shows.
    pub looks_at_itself: bool,
}

impl Default for EngineOptions {
    fn default() -> Self {
        EngineOptions {
            lease: Wait::from_secs(15),
            window_deliveries_max: 64,
            window_bytes_max: 4 << 20,
            intake_batch_max: 256,
            settle_batch_max: 256,
            intake_waiting_max: 16_384,
            call_log_waiting_max: 16_384,
            body_bytes_max: 8 << 20,
            other_workers: false,
            log_retention: Wait::from_secs(30 * 24 * 3600),
            audit_retention: AUDIT_RETENTION,
            sessions: SessionLimits::default(),
            keyring: Keyring::default(),
            jobs_active_max: 8,
            job_batch_max: 256,
            job_retention: Wait::from_secs(30 * 24 * 3600),
            ladders: LadderLimits::default(),
            claim_timeout: Wait::ZERO,
            mailer: Plug::NONE,
            alert_to: Vec::new(),
            alert_every: Wait::from_secs(10),
            alert_disk_free_bytes: 1_000_000_000,
            endpoint_sweep_every: Wait::from_secs(60),
            mail_pause: Wait::from_secs(30),
            spans: Plug::NONE,
            transform: Plug::NONE,
            hosts_services: false,
            listens: false,
            health: Bounds::default(),
            looks_at_itself: true,
        }
    }
}

/// What binds every ladder of a preset (R08, R09). The preset `patient` has limits of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LadderLimits {
    /// `DELIVERY_ESCALATION_HARD_CAP_HOURS`: the age cap of `webhook`.
    pub delivery_cap: Wait,
    /// `FORWARD_ESCALATION_HARD_CAP_HOURS`: the age cap of `forward`.
    pub forward_cap: Wait,
    /// `WEBHOOK_RETRY_AFTER_MAX_SECONDS`: a longer wait that a remote system asks for is cut to this; zero ignores the header.
    pub retry_after_max: Wait,
}

impl Default for LadderLimits {
    fn default() -> Self {
        LadderLimits {
            delivery_cap: Wait::from_secs(96 * 3600),
            forward_cap: Wait::from_secs(24 * 3600),
            retry_after_max: Wait::from_secs(21_600),
        }
    }
}

impl LadderLimits {
    /// The connection with these limits in its policy; nothing of what was written changes.
    pub(crate) fn bind(&self, connection: Arc<Connection>) -> Arc<Connection> {
        let policy = &connection.spec.policy;
        let preset = connection.written.get("retry_preset").and_then(Value::as_str);
        let age_cap = match (policy.age_cap, preset) {
            (None, _) | (_, Some("patient")) => policy.age_cap,
            (Some(_), Some("forward")) => Some(self.forward_cap),
            (Some(_), _) => Some(self.delivery_cap),
        };
        let retry_after = match policy.retry_after {
            RetryAfterRule::LaterOnly { .. } => RetryAfterRule::LaterOnly { max: self.retry_after_max },
            other => other,
        };
        if age_cap == policy.age_cap && retry_after == policy.retry_after {
            return connection;
        }
        let mut bound = (*connection).clone();
        bound.spec.policy.age_cap = age_cap;
        bound.spec.policy.retry_after = retry_after;
        Arc::new(bound)
    }
}
