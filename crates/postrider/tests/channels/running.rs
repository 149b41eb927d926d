//! Services in Python, by the host of our SDK: hooks, failures, and what is left of it all after a kill -9.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Bench, Mirror};
use crate::lab::{by_cid, channel, post, service, try_ask, until_ended};
use crate::python::Host;

/// The first seed's service, word for word.
const ORDER_INTAKE: &str = include_str!("../../../../sdk/python/tests/snippets/order_intake.py");

const HOOKS: &str = r#"
import time
from postrider.services import Service

class Base(Service):
    def handle(self):
        if self.request.payload and self.request.payload.get("fail"):
            raise KeyError("order_id")

class Plain(Base):
    name = "plain"

class Raising(Base):
    name = "raising"
    def get_queue_response(self):
        raise ValueError("no")

class Hanging(Base):
    name = "hanging"
    def get_queue_response(self):
        time.sleep(30)

class Nonsense(Base):
    name = "nonsense"
    def get_queue_response(self):
        self.response.payload = object()

class Telling(Base):
    name = "telling"
    def get_queue_response(self):
        self.response.status_code = 202
        self.response.content_type = "application/vnd.lab+json"
        self.response.payload = '{"method": "%s", "id": "%s", "who": "%s"}' % (
            self.request.method, self.request.queue.msg_id, self.request.path_params.get("id"))

class Busy(Base):
    name = "busy"
    def handle(self):
        time.sleep(1)
    def get_queue_response(self):
        self.response.payload = {"told": True}

class Asleep(Service):
    name = "asleep"
    def handle(self):
        time.sleep(1.2 if self.request.attempt == 1 else 0)
"#;

async fn with_services(files: &[(&str, &str)]) -> (Bench, Host, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let bench = Bench::start().await;
    let host = Host::start(folder.path(), &bench.server.address, "127.0.0.1:0").await;
    (bench, host, folder)
}

async fn connection(bench: &Bench, name: &str, mirror: &Mirror) {
    bench.connection(name, &mirror.address, json!({"use_queue": true})).await;
}

#[tokio::test]
async fn z44_the_first_seeds_service_writes_the_acknowledgment_and_runs_from_the_queue() {
    let (bench, host, _folder) = with_services(&[("orders.py", ORDER_INTAKE)]).await;
    let mirror = Mirror::start().await;
    connection(&bench, "Fulfilment", &mirror).await;
    service(&bench, "orders.order-intake", &host.service("orders.order-intake")).await;
    channel(
        &bench,
        "Orders",
        "/orders",
        json!({"service": "orders.order-intake", "use_queue": true, "max_retries": 3}),
    )
    .await;
    let answer = post(&bench, "/orders", r#"{"order_id": 5}"#).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let told = answer.json();
    assert_eq!((&told["accepted"], &told["order_id"]), (&json!(true), &json!(5)));
    let msg_id = told["msg_id"].as_str().unwrap();
    assert_eq!(answer.header("x-postrider-msg-id"), msg_id);
    assert_eq!(bench.until_status(msg_id, "SUCCESS").await["service"], "orders.order-intake");
    mirror.until(1).await;
    let got = mirror.last();
    assert_eq!(serde_json::from_slice::<Value>(&got.body).unwrap(), json!({"order_id": 5}));
    assert_eq!(got.header("x-postrider-cid"), Some(answer.header("x-postrider-cid")), "its calls go under the same id");
    // What it is asked for is not there: the hook raises, and the order is stored all the same.
    let odd = post(&bench, "/orders", r#"{"order": 6}"#).await;
    assert_eq!((odd.status, odd.json()["is_ok"].as_bool()), (200, Some(true)), "{}", odd.text());
    let stored = by_cid(&bench, odd.json()["cid"].as_str().unwrap()).await;
    assert!(stored.iter().any(|delivery| delivery["connection"] == "Orders"), "{stored:?}");
}

#[tokio::test]
async fn z44_a_hook_that_raises_hangs_or_says_nonsense_falls_back_to_the_default() {
    let (bench, host, _folder) = with_services(&[("all.py", HOOKS)]).await;
    for name in ["plain", "raising", "hanging", "nonsense", "telling"] {
        service(&bench, name, &host.service(name)).await;
        let settings = json!({"service": name, "use_queue": true, "hook_timeout_ms": 700});
        channel(&bench, name, &format!("/{name}/{{id}}"), settings).await;
    }
    for name in ["plain", "raising", "hanging", "nonsense"] {
        let answer = post(&bench, &format!("/{name}/1"), "{}").await;
        let cid = answer.json()["cid"].as_str().unwrap_or_default().to_owned();
        assert_eq!(answer.text(), format!("{{\"is_ok\": true, \"cid\": \"{cid}\"}}"), "{name}");
        until_ended(&bench, &cid, "SUCCESS").await;
    }
    let told = post(&bench, "/telling/17", "{}").await;
    assert_eq!((told.status, told.header("content-type")), (202, "application/vnd.lab+json"));
    let id = told.header("x-postrider-msg-id");
    assert_eq!(told.json(), json!({"method": "POST", "id": id, "who": "17"}));
    // A fixed text stands behind the service's own words, and in front of the default.
    bench.call("PATCH", "/channels/telling", &json!({"queue_response": "fixed"})).await;
    assert_eq!(post(&bench, "/telling/18", "{}").await.status, 202);
    bench.call("PATCH", "/channels/raising", &json!({"queue_response": "fixed"})).await;
    assert_eq!(post(&bench, "/raising/18", "{}").await.text(), "fixed");
    // With the queue off nobody asks the hook.
    bench.call("PATCH", "/channels/telling", &json!({"use_queue": false})).await;
    let direct = post(&bench, "/telling/19", "{}").await;
    assert_eq!((direct.status, direct.header("x-postrider-msg-id")), (200, ""));
}

#[tokio::test]
async fn z44_an_acknowledgment_does_not_wait_for_runs() {
    let (bench, host, _folder) = with_services(&[("all.py", HOOKS)]).await;
    service(&bench, "busy", &host.service("busy")).await;
    let settings = json!({"service": "busy", "use_queue": true, "ordered": false, "concurrency": 40});
    channel(&bench, "busy", "/busy", settings).await;
    bench.call("PATCH", "/services/busy", &json!({"pool_size": 2})).await;
    let started = std::time::Instant::now();
    for at in 0..10 {
        let answer = post(&bench, "/busy", "{}").await;
        assert_eq!(answer.json(), json!({"told": true}), "{at}");
    }
    assert!(started.elapsed() < Duration::from_secs(4), "ten runs of a second two at a time: {:?}", started.elapsed());
}

#[tokio::test]
async fn z41_a_run_that_raises_or_takes_too_long_is_run_again() {
    let (bench, host, _folder) = with_services(&[("all.py", HOOKS)]).await;
    for name in ["plain", "asleep"] {
        service(&bench, name, &host.service(name)).await;
    }
    let retried = json!({"service": "plain", "use_queue": true, "max_retries": 1, "retry_sleep_time": 1});
    channel(&bench, "plain", "/plain", retried).await;
    let slow = json!({"service": "asleep", "use_queue": true, "max_retries": 2, "retry_sleep_time": 1, "service_timeout_seconds": 0.5});
    channel(&bench, "asleep", "/asleep", slow).await;
    let cid = post(&bench, "/plain", r#"{"fail": true}"#).await.json()["cid"].as_str().unwrap().to_owned();
    let dead = until_ended(&bench, &cid, "DLQ").await;
    assert_eq!((&dead["attempts"], &dead["error"]), (&json!(2), &json!("the service failed: KeyError")));
    let cid = post(&bench, "/asleep", "{}").await.json()["cid"].as_str().unwrap().to_owned();
    let ended = until_ended(&bench, &cid, "SUCCESS").await;
    assert_eq!(ended["attempts"], 2);
    let (_, attempts) =
        bench.call("GET", &format!("/deliveries/{}/attempts", ended["id"].as_str().unwrap()), &Value::Null).await;
    assert_eq!(attempts["data"][0]["failure"], "timeout");
    // With the queue off, the caller is told that it failed, and not why.
    bench.call("PATCH", "/channels/plain", &json!({"use_queue": false})).await;
    let failed = post(&bench, "/plain", r#"{"fail": true}"#).await;
    assert_eq!(failed.status, 500);
    assert!(!failed.text().contains("order_id") && failed.header("x-postrider-error").is_empty(), "{}", failed.text());
}

/// Orders, a host that is killed half-way, and a server that is killed half-way: each order has run, under the id that was acknowledged.
#[tokio::test]
async fn z41_a_kill_nine_of_server_and_service_loses_no_order() {
    const ORDERS: usize = 240;
    let folder = tempfile::tempdir().unwrap();
    let seen = folder.path().join("seen");
    std::fs::create_dir(&seen).unwrap();
    let text = format!(
        "import os\nfrom postrider.services import Service\n\nclass Orders(Service):\n    name = 'orders'\n    def handle(self):\n        \
         path = os.path.join({:?}, '%s-%s' % (self.request.payload['n'], self.cid))\n        open(path, 'w').close()\n",
        seen.to_str().unwrap()
    );
    let code = folder.path().join("code");
    std::fs::create_dir(&code).unwrap();
    std::fs::write(code.join("orders.py"), text).unwrap();
    let mut bench = Bench::start().await;
    let mut host = Host::start(&code, &bench.server.address, "127.0.0.1:0").await;
    let listen = host.address.strip_prefix("http://").unwrap().to_owned();
    service(&bench, "orders", &host.service("orders")).await;
    let settings = json!({
        "service": "orders", "use_queue": true, "ordered": false, "concurrency": 8, "max_retries": 50, "retry_sleep_time": 0,
        "retry_backoff_multiplier": 1, "retry_backoff_threshold": 600
    });
    channel(&bench, "Orders", "/orders", settings).await;
    let mut acknowledged: BTreeMap<usize, String> = BTreeMap::new();
    for n in 0..ORDERS {
        if n == ORDERS / 3 {
            host.kill_nine().await;
            host = Host::start(&code, &bench.server.address, &listen).await;
        }
        if n == ORDERS * 2 / 3 {
            bench = bench.kill_and_restart().await;
        }
        let body = json!({"n": n}).to_string();
        let answer = try_ask(&bench.server.address, "POST", "/orders", &[], body.as_bytes()).await;
        let answer = answer.unwrap_or_else(|error| panic!("{n}: {error}"));
        assert_eq!(answer.status, 200, "{}", answer.text());
        acknowledged.insert(n, answer.json()["cid"].as_str().unwrap().to_owned());
    }
    let deadline = tokio::time::Instant::now() + Duration::from_secs(90);
    loop {
        let missing = acknowledged.iter().filter(|(n, cid)| !seen.join(format!("{n}-{cid}")).exists()).count();
        if missing == 0 {
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "{missing} orders have not run");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let runs = std::fs::read_dir(&seen).unwrap().count();
    assert_eq!(runs, ORDERS, "no order ran under another id");
    drop(host);
}
