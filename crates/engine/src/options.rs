//! The engine's own limits, each with its name (law 5). Limits of one connection are in its policy.

use postrider_core::Wait;
use postrider_core::readiness::Bounds;
use postrider_store::AUDIT_RETENTION;
use postrider_wire::mail::Mailer;
use postrider_wire::otlp::SpanSink;

use crate::plug::Plug;
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
    /// What secrets are sealed with at rest (D46).
    pub keyring: Keyring,
    /// Jobs of one project that have not ended, at most; a further one is refused (P08).
    pub jobs_active_max: u32,
    /// Deliveries of one step of a job at most; a step is one transaction.
    pub job_batch_max: u32,
    /// How long jobs are kept after their end.
    pub job_retention: Wait,
    /// Takes mails to people; without it none are sent.
    pub mailer: Plug<dyn Mailer>,
    /// After the first try of a mail; twice as long after each.
    pub mail_pause: Wait,
    /// Takes spans; without it none are made.
    pub spans: Plug<dyn SpanSink>,
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
            keyring: Keyring::default(),
            jobs_active_max: 8,
            job_batch_max: 256,
            job_retention: Wait::from_secs(30 * 24 * 3600),
            mailer: Plug::NONE,
            mail_pause: Wait::from_secs(30),
            spans: Plug::NONE,
            health: Bounds::default(),
            looks_at_itself: true,
        }
    }
}
