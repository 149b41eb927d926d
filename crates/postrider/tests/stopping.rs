//! How the real binary stops: within its bound, with 0, however a remote system hangs; and what it tells a service manager.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod harness;

use std::path::Path;
use std::time::{Duration, Instant};

use harness::Act::{Hold, Read};
use harness::{Api, KEY, RawRemote};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::UnixDatagram;
use tokio::process::{Child, Command};

const PROJECT: &str = "/api/v1/projects/default";

struct Serving {
    child: Child,
    api: Api,
}

impl Serving {
    async fn start(data: &Path, variables: &[(&str, &str)]) -> Serving {
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data).env("POSTRIDER_ADMIN_KEY", KEY);
        command.env("POSTRIDER_LOG", "error").envs(variables.iter().copied());
        let mut child = command.stdout(std::process::Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = loop {
            let line = lines.next_line().await.unwrap().expect("it listens");
            if let Some(address) = line.strip_prefix("listening on ") {
                break address.to_owned();
            }
        };
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Serving { child, api: Api::new(&address) }
    }

    async fn call(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let (status, answer) = self.api.call(method, &format!("{PROJECT}{path}"), &body.to_string()).await.unwrap();
        (status, serde_json::from_str(&answer).unwrap_or(Value::Null))
    }

    async fn connection(&self, name: &str, remote: &RawRemote) {
        let body = json!({"name": name, "type": "rest", "host": remote.address, "url_path": "/", "use_queue": true, "timeout": 600});
        let (status, answer) = self.call("POST", "/connections", body).await;
        assert_eq!(status, 201, "{answer}");
    }

    async fn terminate(&self) {
        let pid = self.child.id().unwrap().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().await.unwrap().success());
    }
}

// proves: P06
#[tokio::test(flavor = "multi_thread")]
async fn p06_a_stop_keeps_its_bound_with_0_while_a_remote_hangs_and_says_that_it_is_not_ready() {
    let dir = tempfile::tempdir().unwrap();
    let mut serving = Serving::start(dir.path(), &[("POSTRIDER_STOP_SECONDS", "6")]).await;
    let hanging = RawRemote::start(&[Read, Hold]).await;
    serving.connection("q", &hanging).await;
    let id = serving.call("POST", "/connections/q/publish", json!({"body": "x"})).await.1["msg_id"].clone();
    hanging.until_received(1).await;
    let began = Instant::now();
    serving.terminate().await;
    // While attempts end it answers: not ready, and what is new is refused.
    let deadline = Instant::now() + Duration::from_secs(5);
    let answer = loop {
        let (status, answer) = serving.api.call("GET", "/health/ready", "").await.unwrap();
        if status == 503 {
            break answer;
        }
        assert!(Instant::now() < deadline, "{answer}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert!(answer.contains("the server is stopping"), "{answer}");
    assert_eq!(serving.api.call("GET", "/health/live", "").await.unwrap().0, 200);
    let (status, refused) = serving.call("POST", "/connections/q/publish", json!({"body": "y"})).await;
    assert_eq!(status, 503, "{refused}");
    let ended = tokio::time::timeout(Duration::from_secs(30), serving.child.wait()).await.unwrap().unwrap();
    assert_eq!(ended.code(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());

    hanging.heal();
    let mut again = Serving::start(dir.path(), &[]).await;
    hanging.until_received(2).await;
    let deadline = Instant::now() + Duration::from_secs(30);
    while again.call("GET", &format!("/deliveries/{}", id.as_str().unwrap()), Value::Null).await.1["status"]
        != "SUCCESS"
    {
        assert!(Instant::now() < deadline, "it is delivered after the next start");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    again.terminate().await;
    assert_eq!(again.child.wait().await.unwrap().code(), Some(0));
}

async fn told(socket: &UnixDatagram, wanted: &str) -> String {
    let mut bytes = [0; 4096];
    loop {
        let received = tokio::time::timeout(Duration::from_secs(30), socket.recv(&mut bytes)).await;
        let length = received.unwrap_or_else(|_| panic!("{wanted} is never told")).unwrap();
        let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
        if text.lines().any(|line| line == wanted) {
            return text;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn p06_a_service_manager_is_told_of_readiness_of_life_and_of_the_stop() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let variables = [("NOTIFY_SOCKET", path.to_str().unwrap()), ("WATCHDOG_USEC", "400000")];
    let mut serving = Serving::start(&dir.path().join("data"), &variables).await;
    let ready = told(&socket, "READY=1").await;
    assert!(ready.contains("STATUS=listening on http://127.0.0.1:"), "{ready}");
    for _ in 0..3 {
        told(&socket, "WATCHDOG=1").await;
    }
    serving.terminate().await;
    told(&socket, "STOPPING=1").await;
    assert_eq!(serving.child.wait().await.unwrap().code(), Some(0));
}
