//! Calls through one server on connections whose queue another one owns: the owner attempts, and the caller gets the reply (D11).
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod harness;

use std::time::{Duration, Instant};

use harness::cluster::{Database, eventually, serve_on};
use harness::{Api, Desk, Server, flags};
use serde_json::{Value, json};

const PROJECT: &str = "/api/v1/projects/default";
/// Far below the connections' timeout of 30 s, and below the look that makes up for lost news.
const SOON: Duration = Duration::from_secs(10);

/// Two servers on one database, and a remote system.
struct Pair {
    servers: Vec<Server>,
    apis: [Api; 2],
    desk: Desk,
    _dirs: [tempfile::TempDir; 2],
    _database: Database,
}

impl Pair {
    async fn start() -> Pair {
        let database = Database::new();
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let servers =
            vec![serve_on(&database.url(), dirs[0].path()).await, serve_on(&database.url(), dirs[1].path()).await];
        let apis = [Api::new(&servers[0].address), Api::new(&servers[1].address)];
        Pair { servers, apis, desk: Desk::start().await, _dirs: dirs, _database: database }
    }

    /// Made on the first server; known to both, and owned by the first, which has had a request in it.
    async fn connection(&self, name: &str, more: Value) {
        let mut body = json!({"name": name, "type": "rest", "host": self.desk.address, "url_path": "/", "use_queue": true,
            "timeout": 30, "max_retries": 5, "retry_sleep_time": 8});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, answer) =
            self.apis[0].call("POST", &format!("{PROJECT}/connections"), &body.to_string()).await.unwrap();
        assert_eq!(status, 201, "{answer}");
        assert_eq!(flags(&self.send(0, name, "first").await.1), (true, false, false));
        let path = format!("{PROJECT}/connections/{name}");
        eventually("the connection on the other server", async || {
            (self.apis[1].call("GET", &path, "").await.unwrap().0 == 200).then_some(())
        })
        .await;
    }

    async fn send(&self, server: usize, name: &str, body: &str) -> (u16, Value) {
        send(self.apis[server].clone(), name, body).await
    }

    async fn delivery(&self, id: &Value) -> Value {
        let path = format!("{PROJECT}/deliveries/{}", id.as_str().unwrap());
        let (status, body) = self.apis[1].call("GET", &path, "").await.unwrap();
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }

    async fn until_status(&self, id: &Value, status: &str) -> Value {
        eventually(status, async || Some(self.delivery(id).await).filter(|now| now["status"] == status)).await
    }

    async fn stop(self) {
        for server in self.servers {
            server.stop().await;
        }
    }
}

async fn send(api: Api, name: &str, body: &str) -> (u16, Value) {
    let path = format!("{PROJECT}/connections/{name}/send");
    let (status, answer) = api.call("POST", &path, &json!({"body": body}).to_string()).await.unwrap();
    (status, serde_json::from_str(&answer).unwrap())
}

fn assert_heard(told: &(u16, Value), status: u16, body: &str) {
    let (_, result) = told;
    assert_eq!(result["response"]["status"], status, "{result}");
    assert_eq!(result["response"]["body"], format!("heard {body}"), "{result}");
    assert!(result["response"]["headers"].to_string().contains("x-desk"), "{result}");
    assert!(result["msg_id"].is_string() && result["cid"].is_string(), "{result}");
}

// proves: D10, Z11, Z30
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d11_a_call_gets_its_reply_through_whichever_server_it_came() {
    let pair = Pair::start().await;
    for (name, more) in [("fifo", json!({})), ("any", json!({"ordered": false, "concurrency": 2}))] {
        pair.connection(name, more).await;
        for number in 0..12 {
            let body = format!("{name} {number}");
            let began = Instant::now();
            let told = pair.send(1 - number % 2, name, &body).await;
            assert_eq!((told.0, flags(&told.1)), (200, (true, false, false)), "{}", told.1);
            assert_heard(&told, 200, &body);
            assert!(began.elapsed() < SOON, "{body} took {:?}", began.elapsed());
        }
    }
    // Many at once, each its own, and in one line.
    let before = pair.desk.bodies().len();
    let calls = (0..40).map(|number| {
        let api = pair.apis[number % 2].clone();
        tokio::spawn(async move { (number, send(api, "fifo", &format!("many {number}")).await) })
    });
    for call in calls.collect::<Vec<_>>() {
        let (number, told) = call.await.unwrap();
        assert_eq!(flags(&told.1), (true, false, false), "{}", told.1);
        assert_heard(&told, 200, &format!("many {number}"));
    }
    let (_, page) =
        pair.apis[0].call("GET", &format!("{PROJECT}/deliveries?connection=fifo&limit=1000"), "").await.unwrap();
    let listed: Value = serde_json::from_str(&page).unwrap();
    assert!(listed["data"].as_array().unwrap().iter().all(|one| one["attempts"] == 1), "each was attempted once");
    let mut received = pair.desk.bodies().split_off(before);
    received.sort_unstable();
    received.dedup();
    assert_eq!(received.len(), 40, "each was received once");
    pair.stop().await;
}

/// What the caller of a call that was refused is told, and those behind it, does not depend on the server either.
// proves: D10, Z10, Z11, Z30
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d11_a_refusal_and_those_behind_it_are_told_through_the_other_server() {
    let pair = Pair::start().await;
    pair.connection("kept", json!({})).await;
    pair.connection("returned", json!({"max_retries": 0, "use_dlq": false})).await;
    pair.connection("dead", json!({"max_retries": 0})).await;
    pair.desk.says(500);
    let told = pair.send(1, "returned", "a").await;
    assert_eq!((told.0, flags(&told.1)), (200, (false, false, false)), "{}", told.1);
    assert_heard(&told, 500, "a");
    assert_eq!(pair.delivery(&told.1["msg_id"]).await["status"], "FAILED");
    let told = pair.send(1, "dead", "b").await;
    assert_eq!(flags(&told.1), (false, false, true), "{}", told.1);
    assert_heard(&told, 500, "b");

    // Two wait behind one that is under way; it fails, and they keep their places at once.
    pair.desk.hold();
    let before = pair.desk.bodies().len();
    let first = tokio::spawn(send(pair.apis[1].clone(), "kept", "1"));
    pair.desk.until_received(before + 1).await;
    let second = tokio::spawn(send(pair.apis[1].clone(), "kept", "2"));
    let queue = format!("{PROJECT}/connections/kept/queue");
    eventually("the second is stored", async || {
        let queue = harness::cluster::json(&pair.apis[0], &queue).await;
        (queue["data"].as_array().unwrap().len() == 2).then_some(())
    })
    .await;
    let behind = [second, tokio::spawn(send(pair.apis[0].clone(), "kept", "3"))];
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!first.is_finished() && behind.iter().all(|call| !call.is_finished()), "they wait for their turn");
    let began = Instant::now();
    pair.desk.release();
    let told = first.await.unwrap();
    assert_eq!((told.0, flags(&told.1)), (202, (false, true, false)), "{}", told.1);
    assert_heard(&told, 500, "1");
    let mut ids = vec![told.1["msg_id"].clone()];
    for call in behind {
        let told = call.await.unwrap();
        assert_eq!((told.0, flags(&told.1)), (202, (false, true, false)), "{}", told.1);
        assert!(told.1["response"].is_null(), "{}", told.1);
        ids.push(told.1["msg_id"].clone());
    }
    // And so does one that comes while the first waits for its retry.
    let told = pair.send(1, "kept", "4").await;
    assert_eq!((told.0, flags(&told.1)), (202, (false, true, false)), "{}", told.1);
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    ids.push(told.1["msg_id"].clone());
    pair.desk.says(200);
    for id in &ids {
        pair.until_status(id, "SUCCESS").await;
    }
    let received: Vec<String> = pair.desk.bodies().split_off(before);
    assert_eq!(received, ["1", "1", "2", "3", "4"], "in the order in which they came");
    pair.stop().await;
}

/// A caller who leaves, a server that dies with its caller, an owner that dies: each request is delivered.
// proves: D10, Z05, Z13
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d11_whoever_leaves_or_dies_nothing_is_lost() {
    let mut pair = Pair::start().await;
    pair.connection("kept", json!({"retry_sleep_time": 0})).await;
    pair.desk.hold();
    let left = tokio::spawn(send(pair.apis[1].clone(), "kept", "left"));
    pair.desk.until_received(2).await;
    let behind = tokio::spawn(send(pair.apis[1].clone(), "kept", "behind"));
    tokio::time::sleep(Duration::from_millis(300)).await;
    left.abort();
    behind.abort();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let stays = tokio::spawn(send(pair.apis[1].clone(), "kept", "stays"));
    tokio::time::sleep(Duration::from_millis(300)).await;
    pair.desk.release();
    // Behind one whose caller has left it need not wait for its turn.
    let told = stays.await.unwrap();
    assert!(matches!(flags(&told.1), (false, true, false) | (true, false, false)), "{}", told.1);
    pair.until_status(&told.1["msg_id"], "SUCCESS").await;
    assert_eq!(pair.desk.bodies(), ["first", "left", "behind", "stays"]);

    // The owner dies with an attempt under way; the caller is told by who goes on, and its request is delivered.
    pair.desk.hold();
    let called = tokio::spawn(send(pair.apis[1].clone(), "kept", "again"));
    pair.desk.until_received(5).await;
    pair.servers.remove(0).kill_nine().await;
    pair.desk.release();
    let told = called.await.unwrap();
    assert!(matches!(flags(&told.1), (false, true, false) | (true, false, false)), "{}", told.1);
    pair.until_status(&told.1["msg_id"], "SUCCESS").await;
    let told = pair.send(1, "kept", "last").await;
    assert_eq!(flags(&told.1), (true, false, false), "{}", told.1);
    pair.stop().await;
}
