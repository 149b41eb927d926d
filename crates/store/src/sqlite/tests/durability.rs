//! kill -9 in the middle of writing, and a disk that fills up: what was answered is there, the rest is not, and the books balance.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bytes::Bytes;
use postrider_core::delivery::Status;
use postrider_core::id::{ConnectionId, DeliveryId, ProjectId};

use super::InFile;
use crate::conformance::fixture::{FIRST_PAGE, World, at};
use crate::conformance::{LIMITS, TestStore};
use crate::sqlite::{SqliteOptions, SqliteStore};
use crate::*;

const CHILD: &str = "POSTRIDER_STORE_OF_KILLED_CHILD";
const ROOMY: StoreLimits = StoreLimits { queue_messages_max: u64::MAX, queue_bytes_max: u64::MAX };

/// Not a test of its own: `z13_kill_9_…` starts it as a process, and kills it.
#[tokio::test]
async fn child_that_writes_until_it_is_killed() {
    let Some(path) = std::env::var_os(CHILD).map(PathBuf::from) else { return };
    let options = SqliteOptions { limits: ROOMY, free_bytes_min: 0 };
    let store = SqliteStore::open(&path, options).unwrap();
    let world = World::new(&store).await;
    let connection = world.connection("killed", true).await;
    let lease = world.owner(&connection, 0).await;
    let mut out = std::io::stdout();
    writeln!(out, "\nqueue {}", connection.id).unwrap();
    for round in 0_i64.. {
        let ids = world.stored(&connection, 5 + round % 9).await;
        for id in &ids {
            writeln!(out, "stored {id}").unwrap();
        }
        for id in ids.iter().take(3) {
            let settled = world.attempted(*id, lease, Status::Success).await;
            assert!(matches!(settled, Settled::Applied { .. }), "{settled:?}");
            writeln!(out, "settled {id}").unwrap();
        }
    }
}

struct Told {
    queue: ConnectionId,
    stored: Vec<DeliveryId>,
    settled: Vec<DeliveryId>,
}

/// What the child had been answered when it was killed after so many answers.
fn killed_after(path: &Path, answers: usize) -> Told {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sqlite::tests::durability::child_that_writes_until_it_is_killed", "--nocapture"])
        .env(CHILD, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut told = Told { queue: ConnectionId::from_u128(0), stored: Vec::new(), settled: Vec::new() };
    let mut is_killed = false;
    let out = child.stdout.take().unwrap();
    for line in BufReader::new(out).lines() {
        let line = line.unwrap();
        match line.split_once(' ') {
            Some(("queue", id)) => told.queue = id.parse().unwrap(),
            // The last line may be cut.
            Some(("stored", id)) => told.stored.extend(id.parse::<DeliveryId>()),
            Some(("settled", id)) => told.settled.extend(id.parse::<DeliveryId>()),
            _ => {}
        }
        if !is_killed && told.stored.len() + told.settled.len() >= answers {
            // SIGKILL on Unix.
            child.kill().unwrap();
            is_killed = true;
        }
    }
    child.wait().unwrap();
    assert!(is_killed, "the child ended by itself");
    told
}

// proves: Z13 (kill -9), law 3
#[tokio::test]
async fn z13_kill_9_loses_nothing_that_was_answered() {
    let directory = tempfile::TempDir::new().unwrap();
    for (number, answers) in [1, 40, 250].into_iter().enumerate() {
        let path = directory.path().join(format!("{number}.db"));
        let told = killed_after(&path, answers);
        let store = SqliteStore::open(&path, SqliteOptions::default()).unwrap();
        for id in &told.stored {
            let found = store.delivery(*id).await.unwrap().unwrap();
            assert_eq!(store.body(found.body_id).await.unwrap().unwrap(), id.to_string().into_bytes());
        }
        for id in &told.settled {
            assert_eq!(store.delivery(*id).await.unwrap().unwrap().progress.status, Status::Success);
            assert_eq!(store.attempts(*id).await.unwrap().len(), 1);
        }
        let counts = store.counts(None).await.unwrap();
        assert!(counts.is_balanced() && counts.accepted >= told.stored.len() as u64, "{counts:?}");
        let summary = store.queue_summary(told.queue).await.unwrap();
        assert_eq!((summary.waiting, summary.owner), (counts.pending, None), "kept counters and rows agree");
    }
}

fn large(world: &World<'_>, connection: &postrider_core::connection::Connection, bytes: usize) -> NewDelivery {
    let new = world.fresh(connection, 0);
    NewDelivery { body: NewBody { bytes: Bytes::from(vec![7; bytes]), ..new.body }, ..new }
}

async fn pages_max(store: &SqliteStore, pages: u32) {
    store
        .write(move |work| {
            let sql = format!("PRAGMA max_page_count = {pages}");
            Ok(work.connection.query_row(&sql, [], |_| Ok(()))?)
        })
        .await
        .unwrap();
}

// proves: D07 (a full disk refuses and drops nothing), law 5
#[tokio::test]
async fn d07_a_full_disk_refuses_whole_calls_and_the_writer_lives_on() {
    for inline in [false, true] {
        let made = InFile::new(ROOMY, inline);
        let store = made.sqlite();
        let world = World::new(&*store).await;
        let connection = world.connection("full", true).await;
        let first = world.stored(&connection, 1).await[0];
        pages_max(&store, 200).await;
        let mut stored = 1;
        let error = loop {
            match store.enqueue(vec![large(&world, &connection, 10_000), large(&world, &connection, 10_000)]).await {
                Ok(_) => stored += 2,
                Err(error) => break error,
            }
        };
        assert_eq!(error, StoreError::Full { limit: "disk" });
        let counts = store.counts(None).await.unwrap();
        assert_eq!((counts.accepted, counts.pending), (stored, stored), "nothing of the refused call is there");
        pages_max(&store, 1_000_000).await;
        let lease = world.owner(&connection, 0).await;
        assert!(matches!(world.attempted(first, lease, Status::Success).await, Settled::Applied { .. }));
        assert_eq!(world.summary(&connection).await.waiting, stored - 1);
    }
}

// proves: D07 (`store_free_bytes_min`)
#[tokio::test]
async fn d07_with_little_space_left_intake_stops_and_settling_goes_on() {
    let mut made = InFile::new(LIMITS, false);
    let (world_connection, id) = {
        let store = made.sqlite();
        let world = World::new(&*store).await;
        let connection = world.connection("low", true).await;
        let id = world.stored(&connection, 1).await[0];
        (connection, id)
    };
    made.options.free_bytes_min = u64::MAX;
    made.reopen().await;
    let store = made.sqlite();
    // Ids go on from far behind those of the first world.
    let world = World::starting_at(&*store, ProjectId::new(at(0), 1), 1000);
    let full = StoreError::Full { limit: "store_free_bytes_min" };
    assert_eq!(store.enqueue(vec![world.fresh(&world_connection, 1)]).await, Err(full.clone()));
    assert_eq!(store.check().await, Err(full));
    let lease = world.owner(&world_connection, 0).await;
    assert!(matches!(world.attempted(id, lease, Status::Success).await, Settled::Applied { .. }));
    // An act that makes room, asked with an idempotency key.
    let key = Idempotency { key_hash: [1; 32], request_hash: [2; 32], ends_at: at(5000) };
    assert_eq!(store.claim_answer(key, at(4000)).await, Ok(Claimed::First));
}

// proves: D07 (the WAL stays bounded)
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d07_the_wal_stays_bounded_under_continuous_load() {
    let made = InFile::new(ROOMY, false);
    let store = made.sqlite();
    let world = World::new(&*store).await;
    let connection = world.connection("busy", true).await;
    let mut longest = 0;
    for _ in 0..400 {
        store.enqueue((0..2).map(|_| large(&world, &connection, 60_000)).collect()).await.unwrap();
        let wal = std::fs::metadata(made.path().with_extension("db-wal")).unwrap();
        longest = longest.max(wal.len());
    }
    assert!(longest < 16 << 20, "48 MB written, and the WAL grew to {longest}");
}

// Joined calls: one that is refused late must not take the others with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_fails_within_a_group_fails_alone() {
    let made = InFile::new(ROOMY, false);
    let store = made.sqlite();
    let world = World::new(&*store).await;
    let connection = world.connection("joined", true).await;
    let known = world.fresh(&connection, 0);
    store.enqueue(vec![known.clone()]).await.unwrap();
    let calls = (0..40).map(|number| {
        let batch = if number % 4 == 0 {
            vec![world.fresh(&connection, 1), known.clone()]
        } else {
            vec![world.fresh(&connection, 1)]
        };
        store.enqueue(batch)
    });
    let answers = futures_of(calls).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_err()).count(), 10);
    let counts = store.counts(None).await.unwrap();
    assert_eq!((counts.accepted, counts.pending), (31, 31));
    let line = store.queue(connection.id, FIRST_PAGE).await.unwrap();
    assert_eq!(line.items.len(), 31);
    assert!(store.statistics().commits < 40, "calls that come together are committed together");
}

/// All at once, polled together, so that they reach the writer as one group.
async fn futures_of<F: Future>(calls: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut waiting: Vec<_> = calls.map(|call| (Box::pin(call), None)).collect();
    std::future::poll_fn(|context| {
        let mut all_done = true;
        for (call, done) in &mut waiting {
            if done.is_none() {
                match call.as_mut().poll(context) {
                    std::task::Poll::Ready(output) => *done = Some(output),
                    std::task::Poll::Pending => all_done = false,
                }
            }
        }
        if all_done { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    waiting.into_iter().filter_map(|(_, done)| done).collect()
}
