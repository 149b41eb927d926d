//! Whether a server is alive and ready: what was observed is held against bounds, and each check comes out with what to do.
//!
//! Nothing here says anything about messages, so that the answer can be shown to anybody. It must not know how the observations came
//! about, nor who asks.

use crate::Wait;

/// The tasks that a server cannot do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Worker {
    Intake,
    Settler,
    CallLog,
    LeaseKeeper,
    Dispatcher,
    DlqSweeper,
    Pruner,
    Jobs,
    KeyKeeper,
    Mailer,
    Alerts,
    HealthSweeper,
}

impl Worker {
    pub const ALL: [Worker; 12] = [
        Worker::Intake,
        Worker::Settler,
        Worker::CallLog,
        Worker::LeaseKeeper,
        Worker::Dispatcher,
        Worker::DlqSweeper,
        Worker::Pruner,
        Worker::Jobs,
        Worker::KeyKeeper,
        Worker::Mailer,
        Worker::Alerts,
        Worker::HealthSweeper,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Worker::Intake => "intake",
            Worker::Settler => "settler",
            Worker::CallLog => "call_log",
            Worker::LeaseKeeper => "lease_keeper",
            Worker::Dispatcher => "dispatcher",
            Worker::DlqSweeper => "dlq_sweeper",
            Worker::Pruner => "pruner",
            Worker::Jobs => "jobs",
            Worker::KeyKeeper => "key_keeper",
            Worker::Mailer => "mailer",
            Worker::Alerts => "alerts",
            Worker::HealthSweeper => "health_sweeper",
        }
    }

    /// Whether deliveries end with it, so that only a new process helps.
    pub const fn is_irreplaceable(self) -> bool {
        matches!(self, Worker::Intake | Worker::Settler | Worker::CallLog)
    }
}

/// What a worker does at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerState {
    /// Waits for work.
    Idle,
    /// Has been at one piece of work for this long.
    Busy(Wait),
    /// Panicked and has not come back.
    BrokeDown,
}

/// The disk below the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// A store that fills no disk of this machine.
    Elsewhere,
    Bytes {
        free: u64,
        /// `store_free_bytes_min` (D07).
        min: u64,
    },
    Unknown,
}

/// What is known at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    pub stopping: bool,
    /// How long ago a task of the runtime last had its turn.
    pub since_pulse: Wait,
    /// How long ago something was last written to the store and durable.
    pub since_write: Wait,
    pub room: Room,
    pub workers: Vec<(Worker, WorkerState)>,
}

/// How long is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// `pulse_stalled_after`
    pub pulse: Wait,
    /// `write_stalled_after`
    pub write: Wait,
    /// `worker_stuck_after`
    pub worker: Wait,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { pulse: Wait::from_secs(10), write: Wait::from_secs(15), worker: Wait::from_secs(60) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckName {
    /// Start-up has finished.
    Start,
    /// The process turns.
    Runtime,
    /// The store takes writes.
    Store,
    /// There is room on the disk.
    Disk,
    /// Every worker is alive.
    Workers,
    /// It is not being stopped.
    Stop,
}

impl CheckName {
    pub const fn as_str(self) -> &'static str {
        match self {
            CheckName::Start => "start",
            CheckName::Runtime => "runtime",
            CheckName::Store => "store",
            CheckName::Disk => "disk",
            CheckName::Workers => "workers",
            CheckName::Stop => "stop",
        }
    }
}

/// What is wrong, and what helps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    pub detail: String,
    pub action: &'static str,
}

/// One check; `None`: all is well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub name: CheckName,
    pub trouble: Option<Trouble>,
}

impl Check {
    fn new(name: CheckName, trouble: Option<(String, &'static str)>) -> Check {
        Check { name, trouble: trouble.map(|(detail, action)| Trouble { detail, action }) }
    }

    /// Before there is anything to observe.
    pub fn starting() -> Check {
        let action = "wait; a large store takes a while to open";
        Check::new(CheckName::Start, Some(("start-up has not finished".to_owned(), action)))
    }
}

/// Whether requests should be sent here now.
pub fn ready(seen: &Observed, bounds: &Bounds) -> Vec<Check> {
    let stop = seen.stopping.then(|| ("the server is stopping".to_owned(), "send requests to another server"));
    vec![
        Check::new(CheckName::Start, None),
        runtime(seen, bounds),
        store(seen, bounds),
        disk(seen),
        workers(seen, bounds),
        Check::new(CheckName::Stop, stop),
    ]
}

/// Whether the process is worth keeping: `false` for what only a new process can mend.
pub fn live(seen: &Observed, bounds: &Bounds) -> Vec<Check> {
    let lost =
        seen.workers.iter().filter(|(worker, state)| worker.is_irreplaceable() && *state == WorkerState::BrokeDown);
    let lost: Vec<&str> = lost.map(|(worker, _)| worker.as_str()).collect();
    let lost = (!lost.is_empty()).then(|| (format!("broke down: {}", lost.join(", ")), RESTART));
    vec![runtime(seen, bounds), Check::new(CheckName::Workers, lost)]
}

const RESTART: &str = "restart the server, and send its log to whoever maintains it";

fn runtime(seen: &Observed, bounds: &Bounds) -> Check {
    let stalled = seen.since_pulse > bounds.pulse;
    let told = || (format!("no task has had its turn for {} s", seconds(seen.since_pulse)), RESTART);
    Check::new(CheckName::Runtime, stalled.then(told))
}

fn store(seen: &Observed, bounds: &Bounds) -> Check {
    let stalled = seen.since_write > bounds.write;
    let action =
        "see whether its disk is full, slow or read-only, or another process holds the database; the log says why";
    let told = || (format!("nothing could be written for {} s", seconds(seen.since_write)), action);
    Check::new(CheckName::Store, stalled.then(told))
}

fn disk(seen: &Observed) -> Check {
    let trouble = match seen.room {
        Room::Elsewhere => None,
        Room::Bytes { free, min } => (free < min).then(|| {
            let detail = format!("{free} bytes are free, and `store_free_bytes_min` is {min}: nothing is taken in");
            (detail, "make room on the disk of the data directory")
        }),
        Room::Unknown => {
            let detail = "the disk of the data directory does not say how much is free".to_owned();
            Some((detail, "see whether the data directory is still mounted"))
        }
    };
    Check::new(CheckName::Disk, trouble)
}

fn workers(seen: &Observed, bounds: &Bounds) -> Check {
    let told = seen.workers.iter().filter_map(|(worker, state)| match state {
        WorkerState::Busy(time) if *time > bounds.worker => {
            Some(format!("{} is stuck for {} s", worker.as_str(), seconds(*time)))
        }
        WorkerState::BrokeDown => Some(format!("{} broke down", worker.as_str())),
        WorkerState::Idle | WorkerState::Busy(_) => None,
    });
    let told: Vec<String> = told.collect();
    Check::new(CheckName::Workers, (!told.is_empty()).then(|| (told.join("; "), RESTART)))
}

const fn seconds(wait: Wait) -> u64 {
    wait.as_millis() / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn well() -> Observed {
        Observed {
            stopping: false,
            since_pulse: Wait::ZERO,
            since_write: Wait::from_secs(5),
            room: Room::Bytes { free: 10, min: 10 },
            workers: Worker::ALL.into_iter().map(|worker| (worker, WorkerState::Idle)).collect(),
        }
    }

    fn failing(checks: Vec<Check>) -> Vec<&'static str> {
        checks.into_iter().filter(|check| check.trouble.is_some()).map(|check| check.name.as_str()).collect()
    }

    /// What is alive and what is ready by the names of the checks that fail.
    fn judged(seen: &Observed) -> (Vec<&'static str>, Vec<&'static str>) {
        let bounds = Bounds::default();
        (failing(live(seen, &bounds)), failing(ready(seen, &bounds)))
    }

    // proves: P06
    #[test]
    fn p06_each_trouble_fails_its_own_check_and_only_a_lost_worker_ends_the_process() {
        let none: Vec<&str> = vec![];
        assert_eq!(judged(&well()), (none.clone(), none.clone()));
        let at_bounds = Observed { since_write: Wait::from_secs(15), since_pulse: Wait::from_secs(10), ..well() };
        assert_eq!(judged(&at_bounds), (none.clone(), none.clone()));
        let cases = [
            (Observed { stopping: true, ..well() }, vec![], vec!["stop"]),
            (Observed { since_write: Wait::from_millis(15_001), ..well() }, vec![], vec!["store"]),
            (Observed { since_pulse: Wait::from_millis(10_001), ..well() }, vec!["runtime"], vec!["runtime"]),
            (Observed { room: Room::Bytes { free: 9, min: 10 }, ..well() }, vec![], vec!["disk"]),
            (Observed { room: Room::Unknown, ..well() }, vec![], vec!["disk"]),
            (Observed { room: Room::Elsewhere, ..well() }, vec![], vec![]),
        ];
        for (seen, live, ready) in cases {
            assert_eq!(judged(&seen), (live, ready), "{seen:?}");
        }
        for worker in Worker::ALL {
            let with = |state| Observed { workers: vec![(worker, state)], ..well() };
            assert_eq!(judged(&with(WorkerState::Busy(Wait::from_secs(60)))), (none.clone(), none.clone()));
            assert_eq!(judged(&with(WorkerState::Busy(Wait::from_secs(61)))), (none.clone(), vec!["workers"]));
            let lost = if worker.is_irreplaceable() { vec!["workers"] } else { vec![] };
            assert_eq!(judged(&with(WorkerState::BrokeDown)), (lost, vec!["workers"]), "{worker:?}");
        }
    }
}
