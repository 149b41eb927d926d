//! The database is stopped and started while requests come in and are delivered.

use std::time::{Duration, Instant};

use crate::harness::OwnPostgres;
use crate::harness::cluster::{eventually, worker_on};
use crate::load::Load;
use crate::plant::Plant;

/// Lines in the log of one outage: each kind at most ten times in ten seconds, however many requests are refused.
const LINES_MAX: usize = 400;

// proves: Z13, Z14, Z30, R16, D05, P06
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn z13_a_database_stopped_and_started_under_load_loses_nothing() {
    let database = OwnPostgres::start(&[]);
    let plant = Plant::start(&database.url()).await;
    let dir = tempfile::tempdir().unwrap();
    let mut worker = worker_on(&database.url(), dir.path());
    let load = Load::begin(&plant).await;
    eventually("deliveries under way", async || (load.received() > 200).then_some(())).await;
    for how in ["immediate", "fast"] {
        let before = plant.log_lines();
        tokio::task::block_in_place(|| database.stop(how));
        let away = Instant::now();
        if how == "fast" {
            // It is red once nothing has been written for fifteen seconds.
            plant.until_not_ready().await;
            println!("not ready after {:?}", away.elapsed());
        } else {
            tokio::time::sleep(Duration::from_secs(4)).await;
        }
        tokio::task::block_in_place(|| database.start_again());
        let back = Instant::now();
        plant.until_ready().await;
        let received = load.received();
        eventually("deliveries go on", async || (load.received() > received + 100).then_some(())).await;
        let lines = plant.log_lines() - before;
        println!("{how}: away for {:?}, at work {:?} after it was back, {lines} lines", back - away, back.elapsed());
        assert!(lines < LINES_MAX, "{lines} lines:\n{}", plant.log());
    }
    let refused = load.end(&plant, 2).await;
    assert!(refused > 20, "only {refused} were refused while it was away");
    worker.kill().await.unwrap();
    plant.server.stop().await;
}
