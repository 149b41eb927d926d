//! What all parts of one engine share: the doors to the outside, the caches, and the way tasks are started.
//!
//! It must not know what any of the parts does.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use postrider_core::Timestamp;
use postrider_core::connection::Connection;
use postrider_core::id::{AuditId, BodyId, Cid, CommandId, DeliveryId};
use postrider_core::log;
use postrider_core::log_in::LogInThrottle;
use postrider_core::readiness::Worker;
use postrider_core::roll::Roll;
use postrider_store::Store;
use postrider_wire::Sender;
use tokio::sync::{Notify, watch};

use crate::admission::Admission;
use crate::announcer::Announcer;
use crate::call_log::CallLog;
use crate::clock::Clock;
use crate::connections::Connections;
use crate::dice::Dice;
use crate::dispatcher::Queues;
use crate::endpoints::Endpoints;
use crate::flows::Flows;
use crate::intake::Intake;
use crate::jobs::JobNotice;
use crate::keyed_calls::KeyedCalls;
use crate::keys::KeyBook;
use crate::listening::Ports;
use crate::maintenance::dlq_sweeper::SweepNotice;
use crate::maintenance::lease_keeper::Lease;
use crate::notifier::Notifier;
use crate::options::EngineOptions;
use crate::outbox::Outbox;
use crate::passwords::Passwords;
use crate::projects::Projects;
use crate::remotes::Remotes;
use crate::restoring::Holding;
use crate::running::LocalServices;
use crate::securities::Securities;
use crate::settler::Settler;
use crate::sources::Sources;
use crate::subscriptions::Subscriptions;
use crate::tally::Tally;
use crate::vault::Vault;
use crate::vitals::Vitals;

/// Before a worker that broke down begins anew.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

pub(crate) struct Shared {
    pub store: Arc<dyn Store>,
    pub sender: Arc<dyn Sender>,
    pub clock: Arc<dyn Clock>,
    pub dice: Arc<dyn Dice>,
    pub options: EngineOptions,
    pub connections: Connections,
    pub projects: Projects,
    pub securities: Securities,
    pub endpoints: Endpoints,
    pub admission: Admission,
    /// Servers and workers that deliver from this store, as far as is known.
    pub workers: AtomicU32,
    pub subscriptions: Subscriptions,
    pub sources: Sources,
    pub notifier: Notifier,
    pub queues: Queues,
    pub lease: Lease,
    pub intake: Intake,
    pub settler: Settler,
    pub call_log: CallLog,
    pub keyed_calls: KeyedCalls,
    pub sweeps: SweepNotice,
    /// An endpoint was switched off: its owner is to be told.
    pub untold: Notify,
    pub jobs: JobNotice,
    pub tally: Tally,
    pub flows: Flows,
    pub vitals: Vitals,
    pub remotes: Remotes,
    pub services: LocalServices,
    pub ports: Ports,
    pub outbox: Outbox,
    pub announcer: Announcer,
    pub vault: Arc<Vault>,
    pub holding: Holding,
    /// The time of the last delivery's id, and its number in that millisecond.
    pub last_id: Mutex<(Timestamp, u16)>,
    pub keys: KeyBook,
    pub passwords: Passwords,
    pub log_ins: Mutex<LogInThrottle>,
    pub last_audit_id: Mutex<AuditId>,
    pub stopping: AtomicBool,
    /// Turns true once: every task ends where it stands.
    pub ended: watch::Sender<bool>,
}

impl Shared {
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub fn roll(&self) -> Roll {
        self.dice.roll()
    }

    pub fn workers(&self) -> u32 {
        self.workers.load(Ordering::Relaxed).max(1)
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// In one process, ids of one millisecond sort in the order in which they were given, so that what is retried or listed by time and id
    /// keeps the order of a batch (D27).
    pub fn new_delivery_id(&self, now: Timestamp) -> DeliveryId {
        const RANDOM_BITS: u32 = 64;
        let number = {
            let mut last = self.last_id.lock().unwrap_or_else(PoisonError::into_inner);
            *last = if last.0 == now { (now, last.1.saturating_add(1)) } else { (now, 0) };
            last.1
        };
        let random = self.dice.bits() & ((1 << RANDOM_BITS) - 1);
        DeliveryId::new(now, (u128::from(number) << RANDOM_BITS) | random)
    }

    pub fn new_body_id(&self, now: Timestamp) -> BodyId {
        BodyId::new(now, self.dice.bits())
    }

    pub fn new_command_id(&self, now: Timestamp) -> CommandId {
        CommandId::new(now, self.dice.bits())
    }

    pub fn new_cid(&self, now: Timestamp) -> Cid {
        // The low bits of a random number are as random as all of it.
        Cid::new(now, self.dice.bits() as u64)
    }

    /// Starts a task that ends with the engine at the latest.
    pub fn spawn(self: &Arc<Self>, work: impl Future<Output = ()> + Send + 'static) {
        let mut ended = self.ended.subscribe();
        tokio::spawn(async move {
            tokio::select! {
                biased;
                _ = ended.wait_for(|ended| *ended) => {}
                () = work => {}
            }
        });
    }

    /// The same for a worker that holds what nobody else has: should it break down, health says so until the process is started anew.
    pub fn spawn_worker(self: &Arc<Self>, worker: Worker, work: impl Future<Output = ()> + Send + 'static) {
        let shared = Arc::clone(self);
        self.spawn(async move {
            if AssertUnwindSafe(work).catch_unwind().await.is_err() {
                shared.vitals.broke_down(worker);
                tracing::error!(
                    event = log::WORKER_LOST,
                    worker = worker.as_str(),
                    "a worker broke down for good; restart the server"
                );
            }
        });
    }

    /// The same for a worker that can begin anew: it does, after a pause.
    pub fn spawn_restarted<F: Future<Output = ()> + Send + 'static>(
        self: &Arc<Self>,
        worker: Worker,
        work: fn(Arc<Shared>) -> F,
    ) {
        let shared = Arc::clone(self);
        self.spawn(async move {
            let mut pause = FIRST_PAUSE;
            while AssertUnwindSafe(work(Arc::clone(&shared))).catch_unwind().await.is_err() {
                shared.vitals.broke_down(worker);
                tracing::error!(
                    event = log::WORKER_PANICKED,
                    worker = worker.as_str(),
                    "a worker broke down and is started again"
                );
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
                shared.vitals.idle(worker);
            }
        });
    }

    /// Sleeps until the wall clock shows this time, as far as can be told now; callers look again.
    pub async fn sleep_until(&self, time: Timestamp) {
        if time >= Timestamp::FAR_FUTURE {
            return std::future::pending().await;
        }
        tokio::time::sleep(time.since(self.now()).as_duration()).await;
    }
}

/// Attempts at a time that an unordered queue may have, and 1 for an ordered one.
pub(crate) fn slots_of(connection: &Connection) -> u32 {
    if connection.spec.policy.queue.ordered { 1 } else { connection.spec.policy.queue.concurrency.max(1) }
}
