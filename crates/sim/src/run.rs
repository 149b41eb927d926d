//! One run: set up, operate, crash or stop, start again, heal, drain, fall quiet, check.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use postrider_core::Wait;
use postrider_core::id::ProjectId;
use postrider_engine::{Clock, Engine, SystemDice};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::clock::SimClock;
use crate::disk::Disk;
use crate::faulty_store::FaultyStore;
use crate::network::Network;
use crate::oracle::{Oracle, Violation};
use crate::plan::{LifeEnd, Plan};
use crate::tamper::{Defect, TamperedSender};
use crate::thief;
use crate::workload::Workload;

/// Longer than any plan's rounds, expiries and DLQ intervals together (oracle 7).
const DRAIN_BOUND: Duration = Duration::from_secs(1_800);
/// How long the engine is watched with nothing to do.
const QUIET: Duration = Duration::from_secs(600);
/// Calls of the store that a quiet engine may make meanwhile: the heartbeat every 5 s, retention every minute, and as much again. With
/// other workers it polls besides.
const QUIET_CALLS: u64 = 300;

#[derive(Clone, Debug)]
pub struct Report {
    pub violations: Vec<Violation>,
    /// Over everything that reached a remote system: equal for two runs of one seed.
    pub trace: u64,
    pub receipts: usize,
    pub acknowledged: usize,
    pub log: Vec<String>,
}

/// Runs one plan from beginning to end.
///
/// # Errors
/// When the run itself cannot be set up, such as a runtime or a store that does not open.
pub fn run_seed(plan: &Plan) -> Result<Report, String> {
    run_tampered(plan, None)
}

/// The same with a deliberate defect, which the oracle must report.
///
/// # Errors
/// As [`run_seed`].
pub fn run_tampered(plan: &Plan, defect: Option<Defect>) -> Result<Report, String> {
    let disk = Disk::new(plan.store)?;
    let oracle = Arc::new(Oracle::new(disk.open()?, plan.clone()));
    let mut parts: Option<Parts> = None;
    let ends = plan.lives.iter().map(|end| Some(*end)).chain([None]);
    for (number, end) in ends.enumerate() {
        let runtime = runtime(true)?;
        runtime.block_on(async {
            let parts = parts.get_or_insert_with(|| Parts::new(plan, &oracle, defect));
            parts.clock.enter_runtime();
            oracle.note(format!("{} life {number} begins, to end by {end:?}", parts.clock.now()));
            parts.live(plan, &oracle, number == 0, end).await;
            parts.clock.leave_runtime();
        });
        // With the runtime goes every task, as with a process.
        drop(runtime);
        let now = parts.as_ref().map(|parts| parts.end);
        runtime_free_checks(&oracle, end, now)?;
        if !oracle.violations().is_empty() {
            break;
        }
        if end.is_some() {
            oracle.drop_store();
            oracle.set_store(disk.open()?);
        }
    }
    let parts = parts.ok_or("the run had no life")?;
    Ok(report(&parts, &oracle))
}

fn runtime(paused: bool) -> Result<tokio::runtime::Runtime, String> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(paused).build().map_err(|error| error.to_string())
}

fn runtime_free_checks(
    oracle: &Oracle,
    end: Option<LifeEnd>,
    now: Option<postrider_core::Timestamp>,
) -> Result<(), String> {
    runtime(true)?.block_on(async {
        match (end, now) {
            (Some(LifeEnd::Stop { grace_ms: 10_000.. }), _) => oracle.after_graceful_stop().await,
            // A stop without enough grace cuts attempts off.
            (Some(_), _) => oracle.after_crash().await,
            (None, Some(now)) => oracle.at_end(now).await,
            (None, None) => {}
        }
    });
    Ok(())
}

fn report(parts: &Parts, oracle: &Oracle) -> Report {
    let receipts = parts.network.receipts();
    let mut hasher = DefaultHasher::new();
    for receipt in &receipts {
        (receipt.at.as_millis(), receipt.delivery.as_u128(), receipt.attempt, &receipt.body).hash(&mut hasher);
    }
    let acknowledged = oracle.ledger().acknowledged.len();
    Report {
        violations: oracle.violations(),
        trace: hasher.finish(),
        receipts: receipts.len(),
        acknowledged,
        log: oracle.trace(),
    }
}

/// What lives on over crashes.
struct Parts {
    clock: Arc<SimClock>,
    network: Arc<Network>,
    workload: Workload,
    rng: StdRng,
    defect: Option<Defect>,
    end: postrider_core::Timestamp,
}

impl Parts {
    fn new(plan: &Plan, oracle: &Arc<Oracle>, defect: Option<Defect>) -> Self {
        let clock = Arc::new(SimClock::new());
        let network = Arc::new(Network::new(plan.seed, clock.clone(), oracle.clone()));
        let rng = StdRng::seed_from_u64(plan.seed ^ 0x574F_524B);
        let workload = Workload::new(plan.clone(), rng, oracle.clone(), clock.clone());
        let end = clock.now();
        let rng = StdRng::seed_from_u64(plan.seed.wrapping_mul(31).wrapping_add(1));
        Parts { clock, network, workload, rng, defect, end }
    }

    /// One life of the server: from its start to its crash or its stop.
    async fn live(&mut self, plan: &Plan, oracle: &Arc<Oracle>, first: bool, end: Option<LifeEnd>) {
        let stores: Vec<Arc<FaultyStore>> = (0..plan.workers)
            .map(|_| {
                let store = oracle.store();
                Arc::new(FaultyStore::new(store, self.rng.random(), oracle.clone(), self.clock.clone(), self.defect))
            })
            .collect();
        let crashed = stores.first().map(|store| store.crashed.clone()).unwrap_or_default();
        tokio::select! {
            biased;
            () = crashed.notified() => {}
            () = self.work(plan, oracle, &stores, first, end) => {}
        }
        self.end = self.clock.now();
    }

    async fn work(
        &mut self,
        plan: &Plan,
        oracle: &Arc<Oracle>,
        stores: &[Arc<FaultyStore>],
        first: bool,
        end: Option<LifeEnd>,
    ) {
        let crash_after = match end {
            Some(LifeEnd::CrashAtCall(calls)) => Some(calls),
            Some(LifeEnd::Stop { .. }) | None => None,
        };
        if !first {
            arm(stores, plan, crash_after);
        }
        let mut engines = Vec::new();
        let mut project = ProjectId::from_u128(0);
        for store in stores {
            let engine = self.start(plan, store).await;
            project = wait_for_project(&engine).await;
            if first && engines.is_empty() {
                self.workload.set_up(&engine, project).await;
            }
            engines.push(engine);
        }
        if first {
            arm(stores, plan, crash_after);
        }
        let lives = u32::try_from(plan.lives.len()).unwrap_or(0) + 1;
        let share = if end.is_some() { plan.operations / lives + 1 } else { u32::MAX };
        let (thief_oracle, thief_clock, thefts_ms) = (oracle.clone(), self.clock.clone(), plan.thefts_ms.clone());
        let thief = tokio::spawn(async move { thief::steal(&thief_oracle, &thief_clock, &thefts_ms).await });
        for _ in 0..share.min(self.workload.left) {
            self.workload.step(&engines, project).await;
        }
        match end {
            // The crash comes at a call of the store; if none comes any more, the process dies here.
            Some(LifeEnd::CrashAtCall(_)) => tokio::time::sleep(Duration::from_secs(60)).await,
            Some(LifeEnd::Stop { grace_ms }) => {
                for engine in &engines {
                    engine.stop(Wait::from_millis(grace_ms)).await;
                }
            }
            None => {
                thief.abort();
                self.end_well(plan, oracle, stores, &engines, project).await;
            }
        }
    }

    async fn start(&mut self, plan: &Plan, store: &Arc<FaultyStore>) -> Engine {
        loop {
            let clock: Arc<dyn Clock> = self.clock.clone();
            let dice = SystemDice::seeded(self.rng.random());
            let sender = Arc::new(TamperedSender { inner: self.network.clone(), defect: self.defect });
            match Engine::start(store.clone(), sender, clock, dice, plan.options.clone()).await {
                Ok(engine) => return engine,
                Err(_) => tokio::time::sleep(Duration::from_secs(1)).await,
            }
        }
    }

    async fn end_well(
        &mut self,
        plan: &Plan,
        oracle: &Arc<Oracle>,
        stores: &[Arc<FaultyStore>],
        engines: &[Engine],
        project: ProjectId,
    ) {
        tokio::time::sleep(Duration::from_secs(5)).await;
        stores.iter().for_each(|store| store.heal());
        self.network.heal();
        // Pauses by the workload end by themselves within 20 s, and a lost lease is taken anew within 15 s.
        tokio::time::sleep(Duration::from_secs(25)).await;
        if let [engine] = engines {
            self.workload.resume_all(engine, project).await;
        }
        if let Some(engine) = engines.first() {
            self.workload.resume_jobs(engine, project).await;
        }
        wait_until_drained(oracle).await;
        self.end = self.clock.now();
        if oracle.violations().is_empty() && oracle.is_drained().await {
            tokio::time::sleep(Duration::from_secs(60)).await;
            let before: u64 = stores.iter().map(|store| store.calls()).sum();
            tokio::time::sleep(QUIET).await;
            let after: u64 = stores.iter().map(|store| store.calls()).sum();
            let looking = oracle.looks_again().await;
            let polling = if engines.len() > 1 {
                QUIET.as_secs() * ((plan.connections.len() + plan.hooks.endpoints.len()) as u64 + 1)
            } else {
                0
            };
            // With other workers the keys are read anew every five seconds.
            let polling = polling + if engines.len() > 1 { QUIET.as_secs() / 5 } else { 0 };
            let each = QUIET_CALLS + polling;
            oracle.check_quiet(after - before, engines.len() as u64 * each + looking * QUIET.as_secs() * 2);
        }
        for engine in engines {
            engine.stop(Wait::from_secs(10)).await;
        }
    }
}

fn arm(stores: &[Arc<FaultyStore>], plan: &Plan, crash_after: Option<u32>) {
    for (worker, store) in stores.iter().enumerate() {
        let own = plan.troubles.iter().filter(|trouble| trouble.worker as usize == worker);
        store.arm(plan.faults, own.copied().collect(), crash_after);
    }
}

async fn wait_for_project(engine: &Engine) -> ProjectId {
    loop {
        match engine.project("default").await {
            Ok(project) => return project,
            Err(_) => tokio::time::sleep(Duration::from_secs(1)).await,
        }
    }
}

async fn wait_until_drained(oracle: &Oracle) {
    for _ in 0..DRAIN_BOUND.as_secs() / 10 {
        tokio::time::sleep(Duration::from_secs(10)).await;
        if oracle.is_drained().await {
            return;
        }
    }
}
