//! The network between a server and its database is cut, falls silent, or loses the answer to a COMMIT, while another worker still has its own.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::cluster::{eventually, worker_on};
use crate::harness::{Desk, OwnPostgres};
use crate::load::Load;
use crate::plant::Plant;
use crate::wire::{Cut, Way, Wire};

/// The database is given so long to answer a statement (25 s), and a connection so long to come about (10 s).
const REFUSED_WITHIN: Duration = Duration::from_secs(50);

/// The worker beside it goes on with the queues of the server that is cut off.
// proves: Z13, Z14, Z30, R16, D05
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn z13_a_server_cut_off_from_its_database_loses_nothing_and_overtakes_nobody() {
    let database = OwnPostgres::start(&[]);
    let wire = Wire::laid(database.port).await;
    let plant = Plant::start(&database.url_at(wire.port)).await;
    let dir = tempfile::tempdir().unwrap();
    let mut worker = worker_on(&database.url(), dir.path());
    let load = Load::begin(&plant).await;
    eventually("deliveries under way", async || (load.received() > 200).then_some(())).await;
    for (way, lasts) in [(Way::Cut, 4), (Way::Silent, 8), (Way::Cut, 1)] {
        wire.set(way);
        tokio::time::sleep(Duration::from_secs(lasts)).await;
        wire.set(Way::Open);
        let received = load.received();
        eventually("deliveries go on", async || (load.received() > received + 100).then_some(())).await;
    }
    plant.until_ready().await;
    let refused = load.end(&plant, 3).await;
    assert!(refused > 10, "only {refused} were refused while it was cut off");
    worker.kill().await.unwrap();
    plant.server.stop().await;
}

/// A frozen database takes what is sent and says nothing: nobody is kept waiting without an end.
// proves: Z30, P06
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn z30_a_database_that_says_nothing_is_given_up() {
    let database = OwnPostgres::start(&[]);
    let wire = Wire::laid(database.port).await;
    let plant = Plant::start(&database.url_at(wire.port)).await;
    let desk = Desk::start().await;
    plant.connection("q", &desk.address, json!({})).await;
    assert_eq!(plant.publish("q", "1").await.0, 202);
    desk.until_received(1).await;
    wire.set(Way::Silent);
    let began = Instant::now();
    let read = plant.call("GET", "/deliveries", &Value::Null);
    let (stored, read) = tokio::join!(plant.publish("q", "refused"), read);
    let took = began.elapsed();
    assert_eq!((stored.0, read.0), (503, 503), "{stored:?} {read:?}");
    assert!(took < REFUSED_WITHIN, "{took:?}");
    println!("refused after {took:?}");
    plant.until_not_ready().await;
    wire.set(Way::Open);
    plant.until_ready().await;
    let told =
        eventually("it takes requests", async || Some(plant.publish("q", "2").await).filter(|told| told.0 == 202))
            .await;
    plant.until_status(&told.1["msg_id"], "SUCCESS").await;
    assert_eq!(desk.bodies(), ["1", "2"], "what was refused was not half stored");
    plant.server.stop().await;
}

/// Whether a COMMIT arrived or not, its request is stored once, and delivered once.
// proves: Z13, Z30, R16
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r16_a_commit_whose_answer_is_lost_is_looked_up_before_anybody_is_told() {
    let database = OwnPostgres::start(&[]);
    let wire = Wire::laid(database.port).await;
    let plant = Plant::start(&database.url_at(wire.port)).await;
    let desk = Desk::start().await;
    plant.connection("q", &desk.address, json!({})).await;
    let mut wanted = Vec::new();
    for (cut, name) in [(Cut::Before, "before"), (Cut::After, "after")] {
        for round in 0..5 {
            // Whichever comes first: the intake's, a settlement's, or a heartbeat's.
            wire.cut_next_commit(cut);
            let body = format!("{name} {round}");
            let (status, result) = plant.publish("q", &body).await;
            assert_eq!(status, 202, "{result}");
            plant.until_status(&result["msg_id"], "SUCCESS").await;
            assert!(wire.has_cut(cut), "a commit was cut");
            let path = format!("/deliveries/{}/attempts", result["msg_id"].as_str().unwrap());
            let (_, attempts) = plant.call("GET", &path, &Value::Null).await;
            assert_eq!(attempts["data"].as_array().unwrap().len(), 1, "{attempts}");
            wanted.push(body);
        }
    }
    assert_eq!(desk.bodies(), wanted, "each once, in order");
    plant.server.stop().await;
}
