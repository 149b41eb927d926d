//! Workers that are stopped past their lease and wake up: others have gone on meanwhile, and what they write late changes nothing.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::harness::cluster::{eventually, worker_on};
use crate::harness::{Desk, OwnPostgres};
use crate::plant::Plant;

const QUEUES: usize = 9;

async fn signal(process: &Child, name: &str) {
    let pid = process.id().unwrap().to_string();
    assert!(Command::new("kill").args([name, &pid]).status().await.unwrap().success());
}

async fn attempts(plant: &Plant, id: &Value) -> Vec<Value> {
    let path = format!("/deliveries/{}/attempts", id.as_str().unwrap());
    let (_, page) = plant.call("GET", &path, &Value::Null).await;
    page["data"].as_array().unwrap().clone()
}

fn seen(attempts: &[Value]) -> Vec<(u64, Option<&str>)> {
    attempts.iter().map(|one| (one["number"].as_u64().unwrap(), one["failure"].as_str())).collect()
}

// proves: D04, D05, Z13, Z14, R01
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d05_workers_stopped_past_their_lease_change_nothing_when_they_wake() {
    let database = OwnPostgres::start(&[]);
    let plant = Plant::start(&database.url()).await;
    let desk = Desk::start().await;
    let names: Vec<String> = (0..QUEUES).map(|number| format!("q{number}")).collect();
    let mut ids = Vec::new();
    for name in &names {
        let often = json!({"max_retries": 9, "retry_sleep_time": 8, "retry_backoff_threshold": 600, "timeout": 60});
        plant.connection(name, &desk.address, often).await;
        plant.call("POST", &format!("/connections/{name}/pause"), &Value::Null).await;
        ids.push(plant.publish(name, name).await.1["msg_id"].clone());
    }
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let workers = dirs.each_ref().map(|dir| worker_on(&database.url(), dir.path()));
    // Each of the three gets its part.
    let shares = "SELECT count(*), min(queues) FROM (SELECT count(*) AS queues FROM postrider.queue WHERE owner IS NOT NULL GROUP BY owner) AS o";
    eventually("queues of each worker", async || {
        let shares = database.ask(shares);
        let (workers, fewest) = shares.split_once('|').unwrap();
        (workers == "3" && fewest.parse::<usize>().is_ok_and(|fewest| fewest >= 2)).then_some(())
    })
    .await;
    // Every owner makes an attempt, which the remote system takes and does not answer yet.
    desk.hold();
    for name in &names {
        plant.call("POST", &format!("/connections/{name}/resume"), &Value::Null).await;
    }
    desk.until_received(QUEUES).await;
    let token = |name: &str| {
        let sql = format!(
            "SELECT token FROM postrider.queue AS q JOIN postrider.connection AS c USING (id) WHERE c.name = '{name}'"
        );
        database.ask(&sql).parse::<i64>().unwrap()
    };
    let before: Vec<i64> = names.iter().map(|name| token(name)).collect();
    for worker in &workers {
        signal(worker, "-STOP").await;
    }
    desk.says(500);
    // The server takes their queues over; what they had under way is answered 200, which they will read when they wake.
    let mut taken = Vec::new();
    eventually("their queues are taken over", async || {
        taken = (0..QUEUES).filter(|at| token(&names[*at]) > before[*at]).collect();
        let owners = "SELECT count(DISTINCT owner) FROM postrider.queue WHERE owner IS NOT NULL";
        (taken.len() >= 4 && database.ask(owners) == "1").then_some(())
    })
    .await;
    desk.release();
    for at in &taken {
        eventually("the attempt after the one that was cut off", async || {
            (attempts(&plant, &ids[*at]).await.len() == 2).then_some(())
        })
        .await;
    }
    for worker in &workers {
        signal(worker, "-CONT").await;
    }
    // They read their answers and write; three seconds are more than a round of theirs.
    tokio::time::sleep(Duration::from_secs(3)).await;
    for at in &taken {
        let (_, now) = plant.call("GET", &format!("/deliveries/{}", ids[*at].as_str().unwrap()), &Value::Null).await;
        assert_eq!(now["status"], "PENDING", "a late write was taken: {now}");
        let attempts = attempts(&plant, &ids[*at]).await;
        assert_eq!(seen(&attempts), [(1, Some("interrupted")), (2, Some("status"))], "{attempts:?}");
    }
    desk.says(200);
    for (at, id) in ids.iter().enumerate() {
        let end = plant.until_status(id, "SUCCESS").await;
        let attempts = attempts(&plant, id).await;
        let numbers: Vec<u64> = seen(&attempts).iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "without gaps: {attempts:?}");
        let wanted = if taken.contains(&at) { 3 } else { 1 };
        assert_eq!(end["attempts"], wanted, "{end}");
    }
    // And those that woke are workers again.
    eventually("those that woke have queues or may have", async || {
        (database.ask("SELECT count(*) FROM postrider.worker WHERE ends_at > extract(epoch FROM now()) * 1000") == "3")
            .then_some(())
    })
    .await;
    println!("{} of {QUEUES} queues were taken over", taken.len());
    for mut worker in workers {
        worker.kill().await.unwrap();
    }
    plant.server.stop().await;
}
