//! How long a page of each list takes in a SQLite store of a million deliveries: the first one, the slowest of those turned, and one deep within.
//!
//! `cargo run -p postrider-store --release --example lists_at_a_million [deliveries]`. Of ten deliveries six are delivered, one failed, two are dead
//! letters and one waits. Ends with 1 when a page takes longer than 200 ms.
#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]

use std::time::{Duration, Instant};

use bytes::Bytes;
use postrider_core::attempt::Attempt;
use postrider_core::connection::{Connection, ConnectionKind, ConnectionSpec};
use postrider_core::delivery::{Origin, Progress, Status};
use postrider_core::id::{BodyId, Cid, ConnectionId, DeliveryId, ProjectId, WorkerId};
use postrider_core::message::{HeaderList, RequestHead};
use postrider_core::{Failure, Timestamp, Wait};
use postrider_store::*;
use serde_json::{Map, json};

const LOUD: &str = "a measurement fails loudly";
const BATCH: u64 = 256;
const PAGE_MAX: Duration = Duration::from_millis(200);
const ROWS: u32 = 50;
/// Pages that are turned to the deep one, or fewer where the list ends.
const TURNED: usize = 200;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(1_773_317_134_000 + i64::try_from(millis).expect(LOUD))
}

fn new_delivery(lease: QueueLease, project: ProjectId, serial: u64) -> NewDelivery {
    let now = at(serial * 20);
    let waits = serial % 10 == 9;
    let accepted = Progress::accepted(now);
    NewDelivery {
        id: DeliveryId::new(now, u128::from(serial) << 20 | 5),
        project_id: project,
        connection_id: lease.queue_id,
        cid: Cid::new(now, serial),
        origin: if serial.is_multiple_of(3) { Origin::Call } else { Origin::Publish },
        created_at: now,
        head: RequestHead { path: format!("/invoices/{}", serial % 1000), ..RequestHead::default() },
        body: NewBody {
            id: BodyId::new(now, u128::from(serial) << 20),
            bytes: Bytes::from_static(b"{\"total\":12.5}"),
        },
        event: None,
        ladder: None,
        progress: if waits { accepted } else { accepted.begun(now) },
        ordered: false,
        claimed_under: (!waits).then_some(lease),
        idempotency: None,
        awaited_until: None,
    }
}

fn settlement(new: &NewDelivery, serial: u64) -> Option<Settlement> {
    let lease = new.claimed_under?;
    let now = new.created_at + Wait::from_millis(5);
    let status = match serial % 10 {
        6 => Status::Failed,
        7 | 8 => Status::Dlq,
        _ => Status::Success,
    };
    let failed = status != Status::Success;
    let (failure, error) = match serial % 100 {
        _ if !failed => (None, None),
        7 => (Some(Failure::Timeout), Some("no answer within 30 s".to_owned())),
        _ => (Some(Failure::Status), Some("status 503".to_owned())),
    };
    let ended = |wanted: bool| wanted.then_some(now);
    Some(Settlement {
        delivery_id: new.id,
        queue_id: new.connection_id,
        guard: Guard::Lease(lease),
        progress: Progress {
            status,
            failure,
            error: error.clone(),
            delivered_at: ended(!failed),
            dead_at: ended(status == Status::Dlq),
            ended_at: ended(status != Status::Dlq),
            ..new.progress.clone()
        },
        placement: Placement::Keep,
        attempt: Some(Attempt {
            number: 1,
            started_at: now,
            took: Wait::from_millis(3),
            failure,
            status: Some(if failed { 503 } else { 200 }),
            error,
            response_headers: HeaderList::default(),
            response_body: Bytes::from_static(b"{}"),
            response_bytes: 2,
            incomplete: false,
        }),
        forward: None,
        edited_body: None,
        answers: None,
        health: None,
        reply: None,
    })
}

async fn queues(store: &SqliteStore, project: ProjectId) -> Vec<QueueLease> {
    let created_at = at(0);
    let record = Project { id: project, name: "p".to_owned(), settings: ProjectSettings::default(), created_at };
    store.create_project(record).await.expect(LOUD);
    let written = json!({"host": "https://api.example.org", "url_path": "/", "use_queue": true, "ordered": false});
    let written: Map<_, _> = written.as_object().cloned().expect(LOUD);
    let mut ids = Vec::new();
    for number in 0..16_u128 {
        let connection = Connection {
            id: ConnectionId::from_u128(number + 1),
            project_id: project,
            name: format!("c{number}"),
            spec: ConnectionSpec::parse(ConnectionKind::Rest, &written).expect(LOUD),
            written: written.clone(),
            paused: false,
            version: 1,
            created_at,
            updated_at: created_at,
        };
        store.create_connection(&connection).await.expect(LOUD);
        ids.push(connection.id);
    }
    let worker_id = WorkerId::from_u128(1);
    store.open_worker(worker_id, Wait::from_secs(10_000_000), created_at).await.expect(LOUD);
    let taken = store.take_named_queues(worker_id, created_at, ids).await.expect(LOUD);
    taken.into_iter().map(|taken| taken.lease).collect()
}

async fn fill(store: &SqliteStore, project: ProjectId, deliveries: u64) {
    let leases = queues(store, project).await;
    for first in (0..deliveries).step_by(BATCH as usize) {
        let serials = first..(first + BATCH).min(deliveries);
        // One connection has half of everything.
        let lease = |serial: u64| leases[if serial.is_multiple_of(2) { 0 } else { (serial / 2 % 16) as usize }];
        let batch: Vec<NewDelivery> =
            serials.clone().map(|serial| new_delivery(lease(serial), project, serial)).collect();
        let settlements = batch.iter().zip(serials).filter_map(|(new, serial)| settlement(new, serial)).collect();
        store.enqueue(batch).await.expect(LOUD);
        for settled in store.settle(settlements).await.expect(LOUD) {
            assert!(matches!(settled, Settled::Applied { .. }), "{settled:?}");
        }
    }
}

/// One list for each condition that there is, and some of several.
fn lists(project: ProjectId, deliveries: u64) -> Vec<(String, DeliveryFilter)> {
    let all = || DeliveryFilter { project_id: Some(project), ..DeliveryFilter::default() };
    let text = |text: &str| Some(text.to_owned());
    let (middle, end) = (at(deliveries * 10), at(deliveries * 20));
    let mut lists = vec![
        ("all of a project".to_owned(), all()),
        ("all of every project".to_owned(), DeliveryFilter::default()),
        ("connection".to_owned(), DeliveryFilter { connection_id: Some(ConnectionId::from_u128(1)), ..all() }),
        ("cid".to_owned(), DeliveryFilter { cid: text("order 7"), ..all() }),
        ("id".to_owned(), DeliveryFilter { id: Some(DeliveryId::from_u128(1)), ..all() }),
        ("error=timeout".to_owned(), DeliveryFilter { failure: Some(Failure::Timeout), ..all() }),
        ("error=expired (none)".to_owned(), DeliveryFilter { failure: Some(Failure::Expired), ..all() }),
        ("error_text=503".to_owned(), DeliveryFilter { error_text: text("503"), ..all() }),
        ("error_text=nowhere".to_owned(), DeliveryFilter { error_text: text("nowhere"), ..all() }),
        ("event_type=nowhere".to_owned(), DeliveryFilter { event_type: text("nowhere"), ..all() }),
        ("origin=call".to_owned(), DeliveryFilter { origin: Some(Origin::Call), ..all() }),
        ("origin=channel (none)".to_owned(), DeliveryFilter { origin: Some(Origin::Channel), ..all() }),
        ("method=PUT (none)".to_owned(), DeliveryFilter { method: text("PUT"), ..all() }),
        ("path=/invoices/7".to_owned(), DeliveryFilter { path: text("/invoices/7"), ..all() }),
        ("edited=true (none)".to_owned(), DeliveryFilter { edited: Some(true), ..all() }),
        ("created before the middle".to_owned(), DeliveryFilter { created_before: Some(middle), ..all() }),
        (
            "connection, DLQ, timeout, second half".to_owned(),
            DeliveryFilter {
                connection_id: Some(ConnectionId::from_u128(2)),
                statuses: vec![Status::Dlq],
                failure: Some(Failure::Timeout),
                created_from: Some(middle),
                ..all()
            },
        ),
    ];
    for status in Status::ALL {
        lists.push((format!("status={status:?}"), DeliveryFilter { statuses: vec![status], ..all() }));
    }
    use {CountColumn as Count, TimeColumn as Time};
    for column in [Time::LastAttempt, Time::NextAttempt, Time::Delivered, Time::Dead, Time::Ended] {
        for (words, from, before) in
            [("first half", None, Some(middle)), ("after the end", Some(end + Wait::from_secs(9)), None)]
        {
            let times = vec![TimeRange { column, from, before }];
            lists.push((format!("{column:?} {words}"), DeliveryFilter { times, ..all() }));
        }
    }
    for column in [Count::Attempts, Count::Rounds, Count::BodyBytes, Count::DlqRetries] {
        let counts = vec![CountRange { column, min: Some(1000), max: None }];
        lists.push((format!("{column:?} at least 1000 (none)"), DeliveryFilter { counts, ..all() }));
    }
    lists
}

/// The slowest page of one list.
async fn measured(store: &SqliteStore, name: &str, filter: &DeliveryFilter) -> Duration {
    let page = async |cursor: Option<String>| {
        let began = Instant::now();
        let page = store.deliveries(filter, PageRequest { limit: ROWS, cursor }).await.expect(LOUD);
        (page, began.elapsed())
    };
    let (mut last, first) = page(None).await;
    let (mut rows, mut slowest, mut deep, mut turned) = (last.items.len(), first, first, 1);
    while turned < TURNED {
        let Page { next_cursor: Some(cursor), .. } = last else { break };
        let (next, took) = page(Some(cursor)).await;
        rows += next.items.len();
        (last, deep, slowest, turned) = (next, took, slowest.max(took), turned + 1);
    }
    let millis = |took: Duration| took.as_secs_f64() * 1000.0;
    println!("| {name} | {:.2} | {:.2} | {:.2} | {turned} | {rows} |", millis(first), millis(slowest), millis(deep));
    slowest
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    let deliveries = std::env::args().nth(1).map_or(1_000_000, |count| count.parse().expect(LOUD));
    let directory = tempfile::tempdir_in(".").expect(LOUD);
    let store = SqliteStore::open(&directory.path().join("lists.db"), SqliteOptions::default()).expect(LOUD);
    let (project, began) = (ProjectId::from_u128(1), Instant::now());
    fill(&store, project, deliveries).await;
    println!("{deliveries} deliveries, filled in {:.0} s\n", began.elapsed().as_secs_f64());
    println!("| list | first page ms | slowest page ms | last page ms | pages | rows |\n|---|---|---|---|---|---|");
    let mut slowest = Duration::ZERO;
    for (name, filter) in lists(project, deliveries) {
        slowest = slowest.max(measured(&store, &name, &filter).await);
    }
    println!("\nslowest page: {:.1} ms", slowest.as_secs_f64() * 1000.0);
    if slowest > PAGE_MAX {
        std::process::exit(1);
    }
}
