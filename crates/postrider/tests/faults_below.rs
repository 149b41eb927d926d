//! What can go wrong below the server: its disk, its files, its process.
//!
//! A second server on the same data, a port in use and a file that is no store are in `serving.rs`.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod cli_parts;
mod harness;

use std::path::Path;
use std::time::Duration;

use cli_parts::{Ran, program};
use harness::Act::{Hold, Read, Say};
use harness::{Bench, KEY, RawRemote, flags};
use serde_json::{Value, json};

/// A file system of its own in memory; unmounted when dropped. `None` where we may not mount one: only root may.
struct Disk {
    dir: Option<tempfile::TempDir>,
}

fn run(words: &[&str]) -> bool {
    std::process::Command::new(words[0]).args(&words[1..]).output().is_ok_and(|output| output.status.success())
}

impl Disk {
    fn mount(size: &str) -> Option<Disk> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_str().unwrap();
        if !run(&["mount", "-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs", path]) {
            eprintln!("skipped: a file system can only be mounted by root");
            return None;
        }
        Some(Disk { dir: Some(dir) })
    }

    fn path(&self) -> &Path {
        self.dir.as_ref().unwrap().path()
    }

    fn make_read_only(&self) {
        assert!(run(&["mount", "-o", "remount,ro", self.path().to_str().unwrap()]));
    }

    /// Leaves about this much room, in bytes; 0 is none at all.
    fn fill(&self, bytes: usize) {
        use std::io::Write;
        let mut file = std::fs::File::options().append(true).create(true).open(self.path().join("fill")).unwrap();
        if bytes > 0 {
            return file.write_all(&vec![b'x'; bytes]).unwrap();
        }
        while file.write_all(&[b'x'; 4096]).is_ok() {}
    }

    fn free(&self) {
        std::fs::remove_file(self.path().join("fill")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        run(&["umount", "-l", self.path().to_str().unwrap()]);
    }
}

async fn refused_start(data: &Path) -> String {
    let mut command = program();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data).env("POSTRIDER_ADMIN_KEY", KEY);
    let ran = Ran::of(command, b"").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (5, ""), "{ran:?}");
    assert!(ran.error().contains(data.to_str().unwrap()), "it names the store: {ran:?}");
    ran.error().to_owned()
}

fn assert_full(told: &(u16, Value), limit: &str) {
    assert_eq!((told.0, flags(&told.1)), (507, (false, false, false)), "{told:?}");
    assert!(told.1["msg_id"].is_null() && told.1["error"].as_str().unwrap().contains(limit), "{told:?}");
}

// proves: Z13, Z30, R16, D07
#[tokio::test(flavor = "multi_thread")]
async fn z30_a_disk_that_fills_refuses_first_and_loses_nothing_at_last() {
    let Some(disk) = Disk::mount("300m") else { return };
    let bench = Bench::at(disk.path().join("data"), tempfile::tempdir().unwrap()).await;
    let failing = RawRemote::start(&[Read, Say(b"HTTP/1.1 500 ?\r\nContent-Length: 0\r\n\r\n")]).await;
    let healthy = RawRemote::start(&[]).await;
    healthy.heal();
    let often = json!({"use_queue": true, "use_dlq": false, "max_retries": 1000, "retry_sleep_time": 0,
        "retry_backoff_multiplier": 0, "retry_backoff_threshold": 86400});
    bench.connection("failing", &failing.address, often).await;
    bench.connection("held", &healthy.address, json!({"use_queue": true})).await;
    bench.connection("direct", &healthy.address, json!({})).await;
    bench.call("POST", "/connections/held/pause", &Value::Null).await;
    let held = bench.publish("held", "held").await;
    let failed = bench.publish("failing", "failing").await;

    disk.fill(60 << 20);
    for verb in ["send", "publish"] {
        let told = bench.call("POST", &format!("/connections/held/{verb}"), &json!({"body": "x"})).await;
        assert_full(&told, "store_free_bytes_min");
    }
    let (_, direct) = bench.send("direct", "direct").await;
    assert_eq!(flags(&direct), (true, false, false), "it needs no room: {direct}");
    bench.call("POST", "/connections/held/resume", &Value::Null).await;
    bench.until_status(&held, "SUCCESS").await;

    disk.fill(0);
    // The attempt under way when the disk filled cannot be settled; until it is, nothing is sent again.
    let mut received = 0;
    let mut quiet = 0;
    while quiet < 5 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let now = failing.bodies().len();
        quiet = if now == received { quiet + 1 } else { 0 };
        received = now;
    }
    assert_full(&bench.send("held", "x").await, "store_free_bytes_min");
    let (status, problem) = bench.call("POST", "/topics", &json!({"name": "t"})).await;
    assert_eq!(status, 507, "{problem}");
    assert_eq!(bench.call("GET", "/connections/failing/queue", &Value::Null).await.0, 200, "reading goes on");

    bench.server.kill_nine().await;
    let error = refused_start(&disk.path().join("data")).await;
    assert!(error.contains("full"), "{error}");
    disk.free();
    failing.heal();
    let bench = Bench::at(disk.path().join("data"), tempfile::tempdir().unwrap()).await;
    bench.until_status(&failed, "SUCCESS").await;
    bench.until_status(&held, "SUCCESS").await;
    let (_, attempts) = bench.call("GET", &format!("/deliveries/{failed}/attempts"), &Value::Null).await;
    let numbers: Vec<u64> =
        attempts["data"].as_array().unwrap().iter().map(|attempt| attempt["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "without gaps: {attempts}");
    assert_eq!(numbers.len(), failing.bodies().len(), "every request that was received has its attempt: {attempts}");
    bench.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_too_small_or_read_only_is_one_clear_line() {
    let Some(disk) = Disk::mount("8k") else { return };
    refused_start(disk.path()).await;
    drop(disk);
    let Some(disk) = Disk::mount("8m") else { return };
    let bench = Bench::at(disk.path().to_owned(), tempfile::tempdir().unwrap()).await;
    bench.connection("q", "http://127.0.0.1:1", json!({"use_queue": true})).await;
    assert_full(&bench.send("q", "x").await, "store_free_bytes_min");
    assert_eq!(bench.api.call("GET", "/health/ready", "").await.unwrap().0, 503);
    assert_eq!(bench.api.call("GET", "/health/live", "").await.unwrap().0, 200);
    bench.server.stop().await;
    disk.make_read_only();
    let error = refused_start(disk.path()).await;
    assert!(error.contains("Read-only"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_was_damaged_is_refused_and_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let bench = Bench::at(dir.path().to_owned(), tempfile::tempdir().unwrap()).await;
    bench.connection("q", "http://127.0.0.1:1", json!({"use_queue": true})).await;
    for _ in 0..20 {
        bench.publish("q", &"x".repeat(2000)).await;
    }
    bench.server.stop().await;
    let file = dir.path().join("postrider.db");
    let whole = std::fs::read(&file).unwrap();
    let mut trashed = whole.clone();
    trashed[8192..].iter_mut().for_each(|byte| *byte ^= 0x5a);
    for damaged in [whole[..whole.len() / 2].to_vec(), trashed, b"SQLite format 3\0".to_vec()] {
        std::fs::write(&file, &damaged).unwrap();
        refused_start(dir.path()).await;
        assert_eq!(std::fs::read(&file).unwrap(), damaged);
    }
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    refused_start(dir.path()).await;
}

// proves: Z13, Z15, D04
#[tokio::test(flavor = "multi_thread")]
async fn z13_killed_or_stopped_in_the_middle_of_an_attempt_it_is_counted_and_goes_on() {
    for (ordered, killed) in [(true, true), (false, true), (true, false), (false, false)] {
        let bench = Bench::start().await;
        let remote = RawRemote::start(&[Read, Hold]).await;
        let settings =
            json!({"use_queue": true, "timeout": 1.5, "max_retries": 9, "retry_sleep_time": 0, "ordered": ordered});
        bench.connection("q", &remote.address, settings).await;
        let id = bench.publish("q", "x").await;
        remote.until_received(1).await;
        let bench = if killed { bench.kill_and_restart().await } else { bench.stop_and_restart().await };
        remote.heal();
        let delivery = bench.until_status(&id, "SUCCESS").await;
        let (_, attempts) = bench.call("GET", &format!("/deliveries/{id}/attempts"), &Value::Null).await;
        let first = &attempts["data"][0];
        let wanted = if killed { "interrupted" } else { "timeout" };
        assert_eq!((&first["number"], &first["failure"]), (&json!(1), &json!(wanted)), "{ordered}: {attempts}");
        assert_eq!(delivery["attempts"], remote.bodies().len(), "{delivery}");
        bench.server.stop().await;
    }
}
