//! Starting and stopping: what comes up in which order, and how everything is put down without losing a decision.
//!
//! It must not know how any part works.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use postrider_core::Wait;
use postrider_core::id::{AuditId, ProjectId, WorkerId};
use postrider_core::log;
use postrider_core::readiness::Worker;
use postrider_store::{Project, ProjectSettings, Store, StoreError};
use postrider_wire::Sender;
use tokio::sync::{Notify, watch};

use crate::admission::Admission;
use crate::alerts;
use crate::announcer::{self, Announcer};
use crate::call_log::{self, CallLog};
use crate::clock::Clock;
use crate::connections::Connections;
use crate::dice::Dice;
use crate::dispatcher::{self, Queues};
use crate::endpointing;
use crate::endpoints::Endpoints;
use crate::flows::Flows;
use crate::intake::{self, Intake};
use crate::jobs::{self, JobNotice};
use crate::keyed_calls::KeyedCalls;
use crate::keys::KeyBook;
use crate::listening;
use crate::listening::Ports;
use crate::maintenance::dlq_sweeper::{self, SweepNotice};
use crate::maintenance::health_sweeper;
use crate::maintenance::key_keeper;
use crate::maintenance::lease_keeper::{self, Lease};
use crate::maintenance::pruner;
use crate::neighbours;
use crate::notifier::Notifier;
use crate::options::EngineOptions;
use crate::outbox::{self, Outbox};
use crate::passwords::Passwords;
use crate::projects::Projects;
use crate::remotes::Remotes;
use crate::restoring::{self, Holding};
use crate::runner::ToRunner;
use crate::running::LocalServices;
use crate::securing;
use crate::securities::Securities;
use crate::settler::{self, Settler};
use crate::shared::Shared;
use crate::sources::Sources;
use crate::sourcing;
use crate::subscribing;
use crate::subscriptions::Subscriptions;
use crate::tally::Tally;
use crate::vault::Vault;
use crate::vitals::{self, Vitals};

/// After the grace, what is left to write gets this long; a store that is down cannot hold a stop up for ever.
const LAST_WRITES: Duration = Duration::from_secs(5);
const FIRST_PROJECT: &str = "default";

pub(crate) async fn start(
    store: Arc<dyn Store>,
    sender: Arc<dyn Sender>,
    clock: Arc<dyn Clock>,
    dice: Arc<dyn Dice>,
    options: EngineOptions,
) -> Result<Arc<Shared>, StoreError> {
    let now = clock.now();
    let worker_id = WorkerId::new(now, dice.bits());
    let asked_at = clock.monotonic();
    store.open_worker(worker_id, options.lease, now).await?;
    ensure_first_project(&*store, &*clock, &*dice).await?;
    let connections = Connections::bound_by(options.ladders);
    for connection in store.all_connections().await? {
        connections.put(Arc::new(connection));
    }
    let keys = KeyBook::default();
    keys.load(&*store).await?;
    let (intake, requests) = Intake::new(options.intake_waiting_max);
    let (settler, orders) = Settler::new();
    let (call_log, records) = CallLog::new(options.call_log_waiting_max);
    let other_workers = options.other_workers;
    let vault = Arc::new(Vault::new(options.keyring.clone(), Arc::clone(&dice)));
    let (outbox, mails) = Outbox::new();
    let (announcer, announcements) = Announcer::new();
    let vitals = Vitals::new(Arc::clone(&clock), options.health);
    let shared = Arc::new(Shared {
        lease: Lease::new(Arc::clone(&clock), worker_id, options.lease, asked_at),
        store,
        sender,
        clock,
        dice,
        options,
        connections,
        projects: Projects::default(),
        securities: Securities::default(),
        endpoints: Endpoints::default(),
        admission: Admission::default(),
        workers: AtomicU32::new(1),
        subscriptions: Subscriptions::default(),
        sources: Sources::default(),
        notifier: Notifier::default(),
        queues: Queues::default(),
        intake,
        settler,
        call_log,
        keyed_calls: KeyedCalls::default(),
        sweeps: SweepNotice::default(),
        untold: Notify::new(),
        jobs: JobNotice::default(),
        tally: Tally::default(),
        flows: Flows::default(),
        vitals,
        remotes: Remotes::default(),
        services: LocalServices::default(),
        ports: Ports::default(),
        outbox,
        announcer,
        vault,
        holding: Holding::default(),
        last_id: Mutex::default(),
        keys,
        passwords: Passwords::default(),
        log_ins: Mutex::default(),
        last_audit_id: Mutex::new(AuditId::from_u128(0)),
        stopping: AtomicBool::new(false),
        ended: watch::Sender::new(false),
    });
    load(&shared).await?;
    shared.spawn_worker(Worker::Settler, settler::run(Arc::clone(&shared), orders));
    shared.spawn_worker(Worker::Intake, intake::run(Arc::clone(&shared), requests));
    shared.spawn_worker(Worker::CallLog, call_log::run(Arc::clone(&shared), records));
    shared.spawn_worker(Worker::Mailer, outbox::run(Arc::clone(&shared), mails));
    shared.spawn(announcer::run(Arc::clone(&shared), announcements));
    shared.spawn_restarted(Worker::LeaseKeeper, lease_keeper::run);
    if let Err(error) = dispatcher::take_orphans(&shared).await {
        end(&shared);
        return Err(error);
    }
    look_after(&shared, other_workers);
    Ok(shared)
}

/// What goes on beside the runners for as long as the engine runs.
fn look_after(shared: &Arc<Shared>, other_workers: bool) {
    if other_workers {
        shared.spawn_restarted(Worker::Dispatcher, neighbours::run);
    }
    shared.spawn_restarted(Worker::DlqSweeper, dlq_sweeper::run);
    shared.spawn_restarted(Worker::Pruner, pruner::run);
    shared.spawn_restarted(Worker::Jobs, jobs::run);
    shared.spawn_restarted(Worker::HealthSweeper, health_sweeper::run);
    shared.spawn_restarted(Worker::KeyKeeper, key_keeper::run);
    if shared.options.listens {
        shared.spawn(listening::run(Arc::clone(shared)));
    }
    if shared.options.looks_at_itself {
        shared.spawn_restarted(Worker::Alerts, alerts::run);
        shared.spawn(vitals::run(Arc::clone(shared)));
        shared.spawn(vitals::probe(Arc::clone(shared)));
    }
}

/// What attempts need of the configuration, beside the connections.
async fn load(shared: &Shared) -> Result<(), StoreError> {
    securing::load(shared).await?;
    for project in shared.store.projects().await? {
        shared.projects.put(&project);
    }
    endpointing::load(shared).await?;
    subscribing::load(shared).await?;
    sourcing::load(shared).await?;
    restoring::load(shared).await
}

/// Makes the project `default` in a store that has none yet.
pub async fn ensure_first_project(store: &dyn Store, clock: &dyn Clock, dice: &dyn Dice) -> Result<(), StoreError> {
    if store.projects().await?.is_empty() {
        let now = clock.now();
        let id = ProjectId::new(now, dice.bits());
        store
            .create_project(Project {
                id,
                name: FIRST_PROJECT.to_owned(),
                settings: ProjectSettings::default(),
                created_at: now,
            })
            .await?;
    }
    Ok(())
}

/// Takes nothing more in, lets what is under way end for at most `grace`, writes it, and gives everything back.
pub(crate) async fn stop(shared: &Arc<Shared>, grace: Wait) {
    if shared.stopping.swap(true, Ordering::AcqRel) {
        return;
    }
    shared.call_log.stop();
    let quiet = async {
        // First everything that was accepted is handed to its runner, then the runners end.
        shared.intake.stop().await;
        tell_all(shared, || ToRunner::Stop);
        shared.queues.all_ended().await;
        shared.call_log.drained().await;
    };
    if tokio::time::timeout(grace.as_duration(), quiet).await.is_err() {
        tell_all(shared, || ToRunner::Abort);
        if tokio::time::timeout(LAST_WRITES, shared.queues.all_ended()).await.is_err() {
            tracing::error!(
                event = log::STOP_UNWRITTEN,
                "not every decision could be written before the stop; what is not written is sent again"
            );
        }
    }
    // What cannot be told in this time is not told; it is stored all the same.
    let _ = tokio::time::timeout(LAST_WRITES, shared.announcer.drained()).await;
    if tokio::time::timeout(LAST_WRITES, key_keeper::write(shared)).await.is_err() {
        tracing::warn!(event = log::KEY_USES_NOT_WRITTEN, "the last uses of keys could not be written");
    }
    let closed = tokio::time::timeout(LAST_WRITES, shared.store.close_worker(shared.lease.worker_id())).await;
    if !matches!(closed, Ok(Ok(()))) {
        tracing::warn!(
            event = log::QUEUES_NOT_RELEASED,
            "the queues could not be given back; they are free once the lease has ended"
        );
    }
    end(shared);
}

/// Ends every task where it stands, as a crash would.
pub(crate) fn end(shared: &Shared) {
    shared.stopping.store(true, Ordering::Release);
    shared.ended.send_replace(true);
    shared.notifier.dismiss_all();
}

fn tell_all(shared: &Shared, message: impl Fn() -> ToRunner) {
    for handle in shared.queues.all() {
        handle.tell(message());
    }
}
