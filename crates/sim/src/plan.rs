//! What a seed decides before anything runs: which connections there are, what goes wrong, and when.

use postrider_core::Wait;
use postrider_core::connection::ConnectionKind;
use postrider_engine::{EngineOptions, Keyring, MasterKey};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Map, Value, json};

use crate::hooks::HookPlan;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    Memory,
    Sqlite,
    /// On the server of the tests.
    Postgres,
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub store: StoreKind,
    pub connections: Vec<ConnectionPlan>,
    pub hooks: HookPlan,
    pub operations: u32,
    /// How each life of the server ends but the last one, which ends in health.
    pub lives: Vec<LifeEnd>,
    pub faults: StoreFaults,
    pub troubles: Vec<Trouble>,
    /// When somebody whose clock is ahead takes every queue and then dies, in virtual milliseconds since the beginning of a life.
    pub thefts_ms: Vec<u64>,
    pub clock_jumps: bool,
    /// Engines over one store: 1, or 2 of which one may lose its leases to the other.
    pub workers: u32,
    pub options: EngineOptions,
}

#[derive(Clone, Debug)]
pub struct ConnectionPlan {
    pub name: String,
    pub kind: ConnectionKind,
    pub settings: Map<String, Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifeEnd {
    /// The process dies at this call of the store, before or after it is carried out.
    CrashAtCall(u32),
    /// A graceful stop with this many milliseconds of grace.
    Stop { grace_ms: u64 },
}

/// Chances in a thousand, for each call of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreFaults {
    pub delay: u32,
    pub error_before: u32,
    /// Written, but the answer is lost. The contract forbids it, since an error means that nothing was written; for trials only.
    pub error_after: u32,
}

/// A store that is no use for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Virtual milliseconds since the beginning of the run.
    pub from_ms: u64,
    pub until_ms: u64,
    pub kind: TroubleKind,
    /// Only this worker sees it.
    pub worker: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TroubleKind {
    /// The disk is full: intake is refused, settlements go on (D07).
    Full,
    /// The database is away, or this worker is cut off from it.
    Away,
}

impl Plan {
    pub fn of_seed(seed: u64, store: StoreKind) -> Plan {
        let mut rng = StdRng::seed_from_u64(seed);
        let count = rng.random_range(1..=4);
        let connections = (0..count).map(|index| connection(index, &mut rng)).collect();
        let faults = if rng.random_bool(0.6) {
            StoreFaults { delay: rng.random_range(0..200), error_before: rng.random_range(0..40), error_after: 0 }
        } else {
            StoreFaults::default()
        };
        // An embedded store has one worker.
        let workers = if store != StoreKind::Sqlite && rng.random_bool(0.15) { 2 } else { 1 };
        let crashes = if workers == 1 && rng.random_bool(0.6) { rng.random_range(1..5) } else { 0 };
        Plan {
            seed,
            store,
            connections,
            hooks: HookPlan::draw(&mut StdRng::seed_from_u64(seed ^ 0x484F_4F4B)),
            operations: rng.random_range(5..70),
            lives: (0..crashes).map(|_| life_end(&mut rng)).collect(),
            faults,
            troubles: troubles(workers, &mut rng),
            thefts_ms: if rng.random_bool(0.15) { vec![rng.random_range(0..60_000), 60_000] } else { Vec::new() },
            clock_jumps: workers == 1 && rng.random_bool(0.15),
            workers,
            options: options(workers, &mut rng),
        }
    }

    /// The store does what it is asked at once: only then can waits be held to the second.
    pub fn has_quick_store(&self) -> bool {
        let calm = self.faults == StoreFaults::default() && self.troubles.is_empty() && self.thefts_ms.is_empty();
        calm && self.workers == 1 && !self.clock_jumps
    }
}

fn life_end(rng: &mut StdRng) -> LifeEnd {
    if rng.random_bool(0.25) {
        LifeEnd::Stop { grace_ms: [0, 500, 10_000][rng.random_range(0..3)] }
    } else {
        LifeEnd::CrashAtCall(rng.random_range(1..200))
    }
}

fn troubles(workers: u32, rng: &mut StdRng) -> Vec<Trouble> {
    let count = if workers > 1 { rng.random_range(1..5) } else { rng.random_range(0..3_u32).saturating_sub(1) };
    let mut troubles = Vec::new();
    for _ in 0..count {
        let from_ms = rng.random_range(0..90_000);
        let until_ms = from_ms + rng.random_range(100..60_000);
        let kind = if workers == 1 && rng.random_bool(0.5) { TroubleKind::Full } else { TroubleKind::Away };
        troubles.push(Trouble { from_ms, until_ms, kind, worker: rng.random_range(0..workers) });
    }
    troubles
}

/// Small windows and batches, so that their edges are met with few requests.
fn options(workers: u32, rng: &mut StdRng) -> EngineOptions {
    EngineOptions {
        window_deliveries_max: [1, 2, 5, 64][rng.random_range(0..4)],
        window_bytes_max: [1, 20, 4 << 20][rng.random_range(0..3)],
        intake_batch_max: [1, 3, 256][rng.random_range(0..3)],
        settle_batch_max: [1, 3, 256][rng.random_range(0..3)],
        call_log_waiting_max: [1, 16_384][rng.random_range(0..2)],
        lease: Wait::from_secs(15),
        other_workers: workers > 1,
        job_batch_max: [1, 2, 256][rng.random_range(0..3)],
        looks_at_itself: false,
        keyring: Keyring::parse("the simulator's own", &MasterKey::from_bytes([7; 32]).written()).unwrap_or_default(),
        ..EngineOptions::default()
    }
}

fn connection(index: u32, rng: &mut StdRng) -> ConnectionPlan {
    let (number, timeout_s) = (rng.random_range(0..14), rng.random_range(1..=5));
    let mut settings = match number {
        0..12 => json!({ "host": "http://remote.test", "url_path": format!("/{index}") }),
        _ => endpoint(index, rng),
    };
    extend(&mut settings, if number < 10 { rounds(number, timeout_s, rng) } else { ladder(timeout_s, rng) });
    extend(&mut settings, dlq_action(rng));
    if rng.random_bool(0.2) {
        extend(&mut settings, json!({ "expires_after": rng.random_range(5..60) }));
    }
    let settings = match settings {
        Value::Object(settings) => settings,
        _ => Map::new(),
    };
    let kind = if number < 12 { ConnectionKind::Rest } else { ConnectionKind::Webhook };
    ConnectionPlan { name: format!("c{index}"), kind, settings }
}

/// Of an endpoint that is switched off soon, or never.
fn endpoint(index: u32, rng: &mut StdRng) -> Value {
    let (after_failures, failing_for) = ([0, 2, 5][rng.random_range(0..3)], [0, 30][rng.random_range(0..2)]);
    json!({
        "url": format!("https://remote.test/{index}"),
        "switch_off_on_gone": rng.random_bool(0.5),
        "switch_off_after_failures": after_failures,
        "switch_off_failing_for": failing_for,
    })
}

fn rounds(kind: u32, timeout_s: u32, rng: &mut StdRng) -> Value {
    let mut settings = json!({
        "timeout": timeout_s,
        "max_retries": rng.random_range(0..=4),
        "retry_sleep_time": rng.random_range(0..=4),
        "retry_backoff_multiplier": rng.random_range(0..=2),
    });
    let settle_ahead_max = [0, 1, 16][rng.random_range(0..3)];
    let more = match kind {
        0 => json!({}),
        1..=6 => json!({
            "use_queue": true,
            "use_dlq": rng.random_bool(0.6),
            "settle_ahead_max": settle_ahead_max,
        }),
        _ => json!({
            "use_queue": true,
            "ordered": false,
            "concurrency": rng.random_range(1..=4),
            "use_dlq": rng.random_bool(0.7),
        }),
    };
    extend(&mut settings, more);
    settings
}

fn ladder(timeout_s: u32, rng: &mut StdRng) -> Value {
    json!({
        "use_queue": true,
        "timeout_seconds": timeout_s,
        "retry_delays": [1, rng.random_range(1..10), 20],
        "max_attempts": rng.random_range(1..=6),
        "jitter": rng.random_bool(0.5),
        "retry_after": rng.random_bool(0.5),
        "ordered": rng.random_bool(0.4),
    })
}

fn dlq_action(rng: &mut StdRng) -> Value {
    let every = rng.random_range(1..30);
    match rng.random_range(0..6) {
        0 => json!({ "dlq_action": "retry", "dlq_retries": rng.random_range(0..3), "dlq_retry_interval": every }),
        1 => json!({ "dlq_action": "forward", "dlq_forward_to": "undeliverable", "dlq_retry_interval": every }),
        2 => json!({ "dlq_action": "forward", "dlq_forward_to": "missing", "dlq_retry_interval": 5 }),
        3 => json!({ "dlq_action": "discard", "dlq_retry_interval": every }),
        _ => json!({}),
    }
}

fn extend(settings: &mut Value, more: Value) {
    if let (Value::Object(settings), Value::Object(more)) = (settings, more) {
        settings.extend(more);
    }
}
