//! How fast the SQLite store takes messages through their whole life: stored, settled as delivered, with the attempt on record.
//!
//! `cargo run -p postrider-store --release --example lifecycle [messages] [lanes] [backlog]`: each lane works on its own in batches of 256
//! over 16 queues; `backlog` messages wait in a further queue all the while.
#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use postrider_core::attempt::Attempt;
use postrider_core::connection::{Connection, ConnectionKind, ConnectionSpec};
use postrider_core::delivery::{Origin, Progress, Status};
use postrider_core::id::{BodyId, Cid, ConnectionId, DeliveryId, ProjectId, WorkerId};
use postrider_core::message::{HeaderList, RequestHead};
use postrider_core::{Timestamp, Wait};
use postrider_store::*;
use serde_json::{Map, json};

const BATCH: u64 = 256;
const BODY_BYTES: usize = 1024;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(1_773_317_134_000 + i64::try_from(millis).expect("a measurement fails loudly"))
}

fn new_delivery(connection: ConnectionId, project: ProjectId, serial: u64, lease: Option<QueueLease>) -> NewDelivery {
    let now = at(serial / 50);
    let accepted = Progress::accepted(now);
    let mut headers = HeaderList::default();
    headers.push("content-type".to_owned(), "application/json".to_owned()).expect("a measurement fails loudly");
    NewDelivery {
        id: DeliveryId::new(now, u128::from(serial) << 20 | 5),
        project_id: project,
        connection_id: connection,
        cid: Cid::new(now, serial),
        origin: Origin::Publish,
        created_at: now,
        head: RequestHead { headers, ..RequestHead::default() },
        body: NewBody { id: BodyId::new(now, u128::from(serial) << 20), bytes: Bytes::from(vec![b'x'; BODY_BYTES]) },
        event: None,
        ladder: None,
        progress: if lease.is_some() { accepted.begun(now) } else { accepted },
        ordered: lease.is_none(),
        claimed_under: lease,
        idempotency: None,
        awaited_until: None,
    }
}

fn success(new: &NewDelivery, lease: QueueLease) -> Settlement {
    let now = new.created_at + Wait::from_millis(5);
    let begun = if new.claimed_under.is_some() { new.progress.clone() } else { new.progress.clone().begun(now) };
    Settlement {
        delivery_id: new.id,
        queue_id: new.connection_id,
        guard: Guard::Lease(lease),
        progress: Progress { status: Status::Success, delivered_at: Some(now), ended_at: Some(now), ..begun },
        placement: Placement::Keep,
        attempt: Some(Attempt {
            number: 1,
            started_at: now,
            took: Wait::from_millis(3),
            failure: None,
            status: Some(200),
            error: None,
            response_headers: HeaderList::default(),
            response_body: Bytes::from_static(b"{\"ok\":true}"),
            response_bytes: 11,
            incomplete: false,
        }),
        forward: None,
        edited_body: None,
        answers: None,
        health: None,
        reply: None,
    }
}

async fn connections(store: &SqliteStore, project: ProjectId, ordered: bool) -> Vec<QueueLease> {
    let worker_id = WorkerId::from_u128(1);
    let mut ids = Vec::new();
    for number in 0..17_u128 {
        let mut written = Map::new();
        written.insert("host".to_owned(), json!("https://api.example.org"));
        written.insert("url_path".to_owned(), json!("/"));
        written.insert("use_queue".to_owned(), json!(true));
        written.insert("ordered".to_owned(), json!(ordered));
        let connection = Connection {
            id: ConnectionId::from_u128(number + 1),
            project_id: project,
            name: format!("c{number}"),
            spec: ConnectionSpec::parse(ConnectionKind::Rest, &written).expect("a measurement fails loudly"),
            written,
            paused: false,
            version: 1,
            created_at: at(0),
            updated_at: at(0),
        };
        store.create_connection(&connection).await.expect("a measurement fails loudly");
        ids.push(connection.id);
    }
    store.open_worker(worker_id, Wait::from_secs(1_000_000), at(0)).await.expect("a measurement fails loudly");
    let taken = store.take_named_queues(worker_id, at(0), ids).await.expect("a measurement fails loudly");
    taken.into_iter().map(|taken| taken.lease).collect()
}

async fn lane(
    store: Arc<SqliteStore>,
    project: ProjectId,
    leases: Vec<QueueLease>,
    serials: std::ops::Range<u64>,
    ordered: bool,
) {
    for first in serials.step_by(BATCH as usize) {
        let batch: Vec<NewDelivery> = (first..first + BATCH)
            .map(|serial| {
                let lease = leases[(serial % 16) as usize];
                new_delivery(lease.queue_id, project, serial, (!ordered).then_some(lease))
            })
            .collect();
        let settlements: Vec<Settlement> =
            batch.iter().zip(first..).map(|(new, serial)| success(new, leases[(serial % 16) as usize])).collect();
        store.enqueue(batch).await.expect("a measurement fails loudly");
        for settled in store.settle(settlements).await.expect("a measurement fails loudly") {
            assert!(matches!(settled, Settled::Applied { .. }), "{settled:?}");
        }
    }
}

fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("a measurement fails loudly");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("a measurement fails loudly").split_whitespace().collect();
    (fields[11].parse::<f64>().expect("a measurement fails loudly")
        + fields[12].parse::<f64>().expect("a measurement fails loudly"))
        / 100.0
}

async fn measure(directory: &Path, ordered: bool, messages: u64, lanes: u64, backlog: u64) {
    let path = directory.join(if ordered { "ordered.db" } else { "unordered.db" });
    let mut store = Arc::new(SqliteStore::open(&path, SqliteOptions::default()).expect("a measurement fails loudly"));
    let project = ProjectId::from_u128(1);
    store
        .create_project(Project {
            id: project,
            name: "p".to_owned(),
            settings: ProjectSettings::default(),
            created_at: at(0),
        })
        .await
        .expect("a measurement fails loudly");
    let mut leases = connections(&store, project, ordered).await;
    if backlog > 0 {
        let began = Instant::now();
        for first in (0..backlog).step_by(BATCH as usize) {
            let batch = (first..first + BATCH)
                .map(|serial| new_delivery(leases[16].queue_id, project, serial + (1 << 40), None))
                .collect();
            store.enqueue(batch).await.expect("a measurement fails loudly");
        }
        println!("backlog of {backlog}: {:.0} enqueued/s", backlog as f64 / began.elapsed().as_secs_f64());
        store = reopened(store, &path, &mut leases).await;
    }
    let (before, cpu, began) = (store.statistics(), cpu_seconds(), Instant::now());
    let each = messages / lanes / BATCH * BATCH;
    let mut running = tokio::task::JoinSet::new();
    for number in 0..lanes {
        let serials = number * each..(number + 1) * each;
        running.spawn(lane(Arc::clone(&store), project, leases.clone(), serials, ordered));
    }
    while let Some(ended) = running.join_next().await {
        ended.expect("a measurement fails loudly");
    }
    let (took, after, done) = (began.elapsed().as_secs_f64(), store.statistics(), (each * lanes) as f64);
    let wal = std::fs::metadata(path.with_extension("db-wal")).map_or(0, |file| file.len());
    println!(
        "{}: {:.0} messages/s, {:.1} CPU µs each, {:.3} statements and {:.4} commits a message, WAL {} MiB",
        if ordered { "ordered" } else { "unordered" },
        done / took,
        (cpu_seconds() - cpu) * 1e6 / done,
        (after.statements - before.statements) as f64 / done,
        (after.commits - before.commits) as f64 / done,
        wal >> 20,
    );
    let counts = store.counts(None).await.expect("a measurement fails loudly");
    assert!(counts.is_balanced(), "{counts:?}");
}

/// How long it takes from opening the file to the first window in hand.
async fn reopened(store: Arc<SqliteStore>, path: &Path, leases: &mut Vec<QueueLease>) -> Arc<SqliteStore> {
    drop(store);
    let began = Instant::now();
    let store = Arc::new(SqliteStore::open(path, SqliteOptions::default()).expect("a measurement fails loudly"));
    let worker_id = WorkerId::from_u128(2);
    store.open_worker(worker_id, Wait::from_secs(1_000_000), at(0)).await.expect("a measurement fails loudly");
    store.take_queues(worker_id, at(0), 1).await.expect("a measurement fails loudly");
    println!("opened and taken after {:.1} ms", began.elapsed().as_secs_f64() * 1e3);
    let ids = leases.iter().map(|lease| lease.queue_id).take(16).collect();
    let mut taken = store.take_named_queues(worker_id, at(0), ids).await.expect("a measurement fails loudly");
    taken.sort_by_key(|taken| taken.lease.queue_id);
    *leases = taken.into_iter().map(|taken| taken.lease).collect();
    store
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    let mut given = std::env::args().skip(1).map(|text| text.parse::<u64>().expect("a measurement fails loudly"));
    let (messages, lanes, backlog) =
        (given.next().unwrap_or(200_000), given.next().unwrap_or(2).max(1), given.next().unwrap_or(0));
    let directory = tempfile::tempdir_in(".").expect("a measurement fails loudly");
    for ordered in [true, false] {
        measure(directory.path(), ordered, messages, lanes, backlog).await;
    }
}
