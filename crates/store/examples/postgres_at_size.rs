//! What a PostgreSQL database of many deliveries takes and how fast it is: filled by itself, then measured through the store.
//!
//! `cargo run -p postrider-store --release --features conformance --example postgres_at_size -- postgres://… [ended] [waiting]`, for instance 10000000
//! 100000. It makes the schema `at_size` (another by `schema=` in the URL), which stays to be looked at; drop it afterwards. Reckon with 2 KB a delivery.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "a measurement reads the clock and fails loudly")]

use std::time::{Duration, Instant};

use postrider_core::delivery::Status;
use postrider_core::id::{ProjectId, WorkerId};
use postrider_core::{Failure, Timestamp, Wait};
use postrider_store::postgres::filling::{Sizes, fill};
use postrider_store::{
    Database, DeliveryFilter, PageRequest, PostgresOptions, PostgresStore, Store as _, StoreRead as _, WindowLimit,
};

const DAYS: i64 = 30;
const TRIES: usize = 20;

#[tokio::main(worker_threads = 2)]
async fn main() {
    let mut words = std::env::args().skip(1);
    let url = words.next().expect("the database: postgres://…");
    let mut number = |default: i64| words.next().map_or(default, |word| word.parse().unwrap());
    let (ended, waiting) = (number(5_000_000), number(100_000));
    let more = if url.contains('?') { '&' } else { '?' };
    let url = if url.contains("schema=") { url } else { format!("{url}{more}schema=at_size") };
    let database = Database::parse(&url).unwrap();
    let store = PostgresStore::open(&database, PostgresOptions::default()).await.unwrap();
    let began = Instant::now();
    let sizes = Sizes { ended, days: DAYS, waiting, dead: waiting / 10, connections: 16 };
    fill(&store, &database, sizes, &mut |what, rows| {
        eprintln!("{rows} {what} after {:.0} s", began.elapsed().as_secs_f64());
    })
    .await;
    println!("{ended} ended, {waiting} waiting, filled in {:.0} s\n", began.elapsed().as_secs_f64());
    println!("| what | median ms | slowest ms |\n|---|---|---|");
    lists(&store).await;
    work(&store).await;
    retention(&store).await;
    store.close().await.unwrap();
}

/// The middle and the slowest of several.
async fn measured(what: &str, mut once: impl AsyncFnMut()) {
    let mut took: Vec<Duration> = Vec::with_capacity(TRIES);
    for _ in 0..TRIES {
        let began = Instant::now();
        once().await;
        took.push(began.elapsed());
    }
    took.sort_unstable();
    let millis = |took: Duration| took.as_secs_f64() * 1000.0;
    println!("| {what} | {:.1} | {:.1} |", millis(took[TRIES / 2]), millis(took[TRIES - 1]));
}

async fn lists(store: &PostgresStore) {
    let projects = store.projects().await.unwrap();
    let project: ProjectId = projects.iter().find(|one| one.name == "filled").unwrap().id;
    let connection = store.all_connections().await.unwrap()[3].id;
    let of = |statuses: Vec<Status>| DeliveryFilter { project_id: Some(project), statuses, ..Default::default() };
    for (what, filter) in [
        ("first page of a project", of(vec![])),
        ("first page of one connection", DeliveryFilter { connection_id: Some(connection), ..of(vec![]) }),
        ("first page of what succeeded", of(vec![Status::Success])),
        ("first page of the dead letters", of(vec![Status::Dlq])),
        (
            "first page of timeouts (none)",
            DeliveryFilter { failure: Some(Failure::Timeout), ..of(vec![Status::Failed]) },
        ),
        (
            "search by a caller's correlation id (none)",
            DeliveryFilter { cid: Some("order 7".to_owned()), ..of(vec![]) },
        ),
    ] {
        measured(what, async || {
            store.deliveries(&filter, PageRequest { limit: 50, cursor: None }).await.unwrap();
        })
        .await;
    }
    let page = store.deliveries(&of(vec![Status::Success]), PageRequest { limit: 50, cursor: None }).await.unwrap();
    measured("one delivery of the log by its id", async || {
        assert!(store.delivery(page.items[7].id).await.unwrap().is_some());
    })
    .await;
}

/// What a worker does: takes a queue, loads or claims.
async fn work(store: &PostgresStore) {
    let now = Timestamp::from_millis(4_000_000_000_000);
    let limit = WindowLimit { deliveries_max: 64, bytes_max: 4 << 20 };
    let worker_id = WorkerId::from_u128(4711);
    store.open_worker(worker_id, Wait::from_secs(3600), now).await.unwrap();
    measured("free queues looked for and one taken and released", async || {
        let taken = store.take_queues(worker_id, now, 1).await.unwrap();
        for one in taken {
            store.release_queue(one.lease).await.unwrap();
        }
    })
    .await;
    let connections = store.all_connections().await.unwrap();
    let ids = connections.iter().map(|one| one.id).collect();
    let taken = store.take_named_queues(worker_id, now, ids).await.unwrap();
    measured("64 claimed of an unordered queue", async || {
        store.claim(taken[1].lease, now, limit).await.unwrap();
    })
    .await;
    measured("when the next one is due", async || {
        store.next_due(taken[1].lease).await.unwrap();
    })
    .await;
    measured("depth and age of a queue", async || {
        store.queue_summary(connections[0].id).await.unwrap();
    })
    .await;
    store.close_worker(worker_id).await.unwrap();
}

/// One day leaves as a whole, then what its rows refer to, a thousand at a time.
async fn retention(store: &PostgresStore) {
    let (before, now) = {
        let newest = store.deliveries(
            &DeliveryFilter { statuses: vec![Status::Success], ..Default::default() },
            PageRequest { limit: 1, cursor: None },
        );
        let newest = newest.await.unwrap().items[0].created_at;
        (newest - Wait::from_secs((DAYS as u64 - 2) * 86_400), newest)
    };
    let began = Instant::now();
    store.prune(before, now, 1).await.unwrap();
    println!("| a day leaves the log, the first row given back | {:.1} | |", began.elapsed().as_secs_f64() * 1000.0);
    measured("a thousand of its rows given back", async || {
        store.prune(before, now, 1000).await.unwrap();
    })
    .await;
}
