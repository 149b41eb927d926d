//! `/health/live` and `/health/ready` of the real binary over a real disk (P06). Stopping is in `stopping.rs`.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod harness;

use std::path::Path;
use std::time::Duration;

use harness::{Api, Bench, KEY, Server};
use serde_json::Value;
use tokio::process::Command;

async fn health(api: &Api, kind: &str) -> (u16, Value) {
    let (status, body) = api.call("GET", &format!("/health/{kind}"), "").await.unwrap();
    (status, serde_json::from_str(&body).unwrap())
}

fn check<'a>(answer: &'a Value, name: &str) -> &'a Value {
    answer["checks"].as_array().unwrap().iter().find(|check| check["name"] == name).unwrap()
}

/// Waits until the check stands so, and the whole with it.
async fn until(api: &Api, name: &str, wanted: &str) -> Value {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    loop {
        let (status, answer) = health(api, "ready").await;
        if check(&answer, name)["status"] == wanted {
            let all_well = answer["checks"].as_array().unwrap().iter().all(|check| check["status"] == "ok");
            assert_eq!((status == 200, answer["status"] == "ok"), (all_well, all_well), "{answer}");
            return check(&answer, name).clone();
        }
        assert!(tokio::time::Instant::now() < deadline, "{name} is not {wanted}: {answer}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A server that soon notices a store that takes no writes.
async fn quick(data: &Path) -> (Server, Api) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data);
    command.env("POSTRIDER_ADMIN_KEY", KEY).env("POSTRIDER_LOG", "warn").env("POSTRIDER_STORE_STALLED_SECONDS", "3");
    let server = Server::of(command).await;
    let api = Api::new(&server.address);
    (server, api)
}

#[tokio::test(flavor = "multi_thread")]
async fn p06_health_needs_no_key_and_names_each_check() {
    let bench = Bench::start().await;
    let answer = bench.exchange(b"GET /health/ready HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("application/json"), "{answer}");
    let (_, ready) = health(&bench.api, "ready").await;
    let names: Vec<&str> =
        ready["checks"].as_array().unwrap().iter().map(|check| check["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["start", "runtime", "store", "disk", "workers", "stop"]);
    assert!(check(&ready, "store")["since"].as_str().unwrap().ends_with('Z'), "{ready}");
    assert_eq!(health(&bench.api, "live").await.0, 200);
    bench.server.stop().await;
}

// proves: P06
#[tokio::test(flavor = "multi_thread")]
async fn p06_a_store_held_by_another_process_is_not_ready_and_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let (server, api) = quick(dir.path()).await;
    until(&api, "store", "ok").await;
    let other = rusqlite::Connection::open(dir.path().join("postrider.db")).unwrap();
    other.execute_batch("PRAGMA busy_timeout = 10000; BEGIN IMMEDIATE").unwrap();
    let red = until(&api, "store", "failing").await;
    assert!(red["detail"].as_str().unwrap().starts_with("nothing could be written for "), "{red}");
    assert!(red["action"].as_str().unwrap().contains("another process holds the database"), "{red}");
    assert_eq!(health(&api, "live").await.0, 200, "a restart would not help");
    other.execute_batch("ROLLBACK").unwrap();
    until(&api, "store", "ok").await;
    server.stop().await;
}

/// A small file system of its own; `None` where we may not mount one: only root may.
struct Disk(tempfile::TempDir);

fn run(words: &[&str]) -> bool {
    std::process::Command::new(words[0]).args(&words[1..]).output().is_ok_and(|output| output.status.success())
}

impl Disk {
    fn mount(size: &str) -> Option<Disk> {
        let dir = tempfile::tempdir().unwrap();
        let mounted =
            run(&["mount", "-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs", dir.path().to_str().unwrap()]);
        if !mounted {
            eprintln!("skipped: a file system can only be mounted by root");
        }
        mounted.then_some(Disk(dir))
    }

    /// Leaves no room at all.
    fn fill(&self) {
        use std::io::Write;
        let mut file = std::fs::File::create(self.0.path().join("fill")).unwrap();
        while file.write_all(&[b'x'; 4096]).is_ok() {}
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        run(&["umount", "-l", self.0.path().to_str().unwrap()]);
    }
}

// proves: D07
#[tokio::test(flavor = "multi_thread")]
async fn p06_a_full_disk_is_not_ready_and_room_makes_it_ready_again() {
    let Some(disk) = Disk::mount("300m") else { return };
    let (server, api) = quick(&disk.0.path().join("data")).await;
    until(&api, "disk", "ok").await;
    disk.fill();
    let red = until(&api, "disk", "failing").await;
    assert!(red["detail"].as_str().unwrap().contains("`store_free_bytes_min` is 268435456"), "{red}");
    assert_eq!(red["action"], "make room on the disk of the data directory");
    assert_eq!(health(&api, "live").await.0, 200);
    std::fs::remove_file(disk.0.path().join("fill")).unwrap();
    until(&api, "disk", "ok").await;
    until(&api, "store", "ok").await;
    server.stop().await;
}
