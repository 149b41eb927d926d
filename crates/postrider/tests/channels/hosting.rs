//! `serve --services DIR`: the process of the services is the server's own to start, watch and start again.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::harness::{Api, KEY, Mirror, Server};
use crate::lab::{Answered, try_ask};
use crate::python::{python, sdk};

const PROJECT: &str = "/api/v1/projects/default";
const ORDER_INTAKE: &str = include_str!("../../../../sdk/python/tests/snippets/order_intake.py");

struct Hosted {
    server: Server,
    api: Api,
    log: std::path::PathBuf,
    _dir: tempfile::TempDir,
}

impl Hosted {
    async fn start(folder: &Path) -> Hosted {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(dir.path().join("data"))
            .arg("--services")
            .arg(folder)
            .args(["--services-alias", "zato.server.service=postrider.services"])
            .env("POSTRIDER_ADMIN_KEY", KEY)
            .env("POSTRIDER_LOG", "info")
            .env("POSTRIDER_LOG_FORMAT", "json")
            .env("POSTRIDER_PYTHON", python())
            .env("PYTHONPATH", sdk())
            .stderr(std::fs::File::create(&log).unwrap());
        let server = Server::of(command).await;
        Hosted { api: Api::new(&server.address), server, log, _dir: dir }
    }

    async fn call(&self, method: &str, path: &str, body: Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, answer) = self.api.call(method, &format!("{PROJECT}{path}"), &body).await.unwrap();
        assert!(status < 300, "{status} {answer}");
        serde_json::from_str(&answer).unwrap_or(Value::Null)
    }

    async fn post(&self, path: &str, body: &str) -> Answered {
        try_ask(&self.server.address, "POST", path, &[], body.as_bytes()).await.unwrap()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    async fn until(&self, what: &str, holds: impl AsyncFn() -> bool) {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(40);
        while !holds().await {
            assert!(tokio::time::Instant::now() < deadline, "{what}: {}", self.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn serves(&self, name: &str) -> bool {
        let found = self.call("GET", "/services", Value::Null).await;
        found["data"].as_array().unwrap().iter().any(|service| service["name"] == name)
    }

    /// The process ids of the hosts that this server has started.
    fn children(&self) -> Vec<String> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.server.pid())).unwrap();
        let of_task =
            |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        let all: String = tasks.flatten().map(of_task).collect();
        all.split_whitespace().map(str::to_owned).collect()
    }
}

fn answering(text: &str) -> String {
    format!(
        "from postrider.services import Service\n\nclass Greet(Service):\n    name = 'greet'\n    def handle(self):\n        \
         self.logger.warning('greeting')\n        self.response.payload = {{'said': '{text}'}}\n"
    )
}

#[tokio::test]
async fn d42_the_servers_own_services_run_without_being_configured_and_call_it_back() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("orders.py"), ORDER_INTAKE).unwrap();
    let (hosted, mirror) = tokio::join!(Hosted::start(folder.path()), Mirror::start());
    hosted.until("it serves", async || hosted.serves("orders.order-intake").await).await;
    let connection =
        json!({"name": "Fulfilment", "type": "rest", "host": mirror.address, "url_path": "/", "use_queue": true});
    hosted.call("POST", "/connections", connection).await;
    let channel = json!({"name": "Orders", "type": "rest", "url_path": "/orders", "service": "orders.order-intake", "use_queue": true});
    hosted.call("POST", "/channels", channel).await;
    let answer = hosted.post("/orders", r#"{"order_id": 7}"#).await;
    assert_eq!(answer.json()["order_id"], 7, "{}", answer.text());
    mirror.until(1).await;
    assert_eq!(mirror.last().header("x-postrider-cid"), Some(answer.header("x-postrider-cid")));
    let service = hosted.call("GET", "/services/orders.order-intake", Value::Null).await;
    assert_eq!((&service["source"], &service["hooks"]), (&json!("hosted"), &json!(["queue-response"])));
    let children = hosted.children();
    assert!(!children.is_empty());
    hosted.server.stop().await;
    for pid in children {
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "the host outlived its server");
    }
}

#[tokio::test]
async fn d42_a_changed_file_and_a_killed_process_are_seen_and_a_mistake_takes_nothing_away() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("greet.py");
    std::fs::write(&file, answering("one")).unwrap();
    let hosted = Hosted::start(folder.path()).await;
    hosted.until("it serves", async || hosted.serves("greet").await).await;
    hosted
        .call("POST", "/channels", json!({"name": "Greet", "type": "rest", "url_path": "/greet", "service": "greet"}))
        .await;
    let says = async |text: &str| hosted.post("/greet", "").await.text().contains(text);
    assert!(says("one").await);
    // The log of a run is the server's, under the id of the request.
    let cid = hosted.post("/greet", "").await.header("x-postrider-cid").to_owned();
    hosted
        .until("its line", async || {
            hosted
                .log()
                .lines()
                .any(|line| line.contains("greeting") && line.contains(&cid) && line.contains("services.warn"))
        })
        .await;
    std::fs::write(&file, answering("twice")).unwrap();
    hosted.until("the change holds", async || says("twice").await).await;
    std::fs::write(&file, "class Greet(: no\n").unwrap();
    hosted.until("the mistake is told", async || hosted.log().contains("services.not_started")).await;
    assert!(says("twice").await, "what ran goes on");
    std::fs::write(&file, answering("three times")).unwrap();
    hosted.until("the repair holds", async || says("three times").await).await;
    for pid in hosted.children() {
        Command::new("kill").args(["-9", &pid]).status().await.unwrap();
    }
    hosted.until("it is back", async || hosted.log().contains("services.ended") && says("three times").await).await;
}
