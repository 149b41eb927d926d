//! Backup of a running server and restore of it (D08): of one instant, whole, and nothing is sent before somebody says so.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod cli_parts;
mod harness;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cli_parts::{Cli, Ran, program};
use harness::{Api, KEY, Mirror, Server};
use serde_json::{Value, json};

const PUBLISH: &str = "/api/v1/projects/default/connections/c/publish";

async fn on(data: &Path, words: &[&str]) -> Ran {
    let mut command = program();
    command.arg("--data").arg(data).args(words);
    Ran::of(command, b"").await
}

async fn serve(data: &Path, more: &[&str]) -> Server {
    let mut command = program();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data).args(more);
    command.env("POSTRIDER_ADMIN_KEY", KEY).env("POSTRIDER_LOG", "warn");
    Server::of(command).await
}

fn cli(server: &Server) -> Cli {
    Cli { server: server.address.clone(), key: KEY.to_owned() }
}

/// Publishes one after another until it is told to stop: what was accepted, in order, and how long each took.
async fn load(address: String, stop: Arc<AtomicBool>, name: usize) -> Vec<(String, Duration)> {
    let api = Api::new(&address);
    let mut accepted = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let body = json!({"body": format!("{name}.{}", accepted.len())}).to_string();
        let begun = Instant::now();
        let Ok((202, answer)) = api.call("POST", PUBLISH, &body).await else { break };
        let answer: Value = serde_json::from_str(&answer).unwrap();
        accepted.push((answer["msg_id"].as_str().unwrap().to_owned(), begun.elapsed()));
    }
    accepted
}

async fn ready(server: &Server) -> Value {
    let (status, body) = Api::new(&server.address).call("GET", "/health/ready", "").await.unwrap();
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

// proves: D08
#[tokio::test(flavor = "multi_thread")]
async fn d08_a_backup_under_load_restores_to_all_that_was_accepted_before_it_and_waits_to_be_resumed() {
    let dir = tempfile::tempdir().unwrap();
    let (data, copy, file) = (dir.path().join("data"), dir.path().join("copy"), dir.path().join("backup.db"));
    let (server, remote) = tokio::join!(serve(&data, &[]), Mirror::start());
    // A backlog that waits, one that was paused by hand, and traffic.
    cli(&server).connection("c", &remote.address, &["url_path=/", "use_queue=true"]).await;
    cli(&server).connection("by hand", &remote.address, &["url_path=/", "use_queue=true"]).await;
    cli(&server).done(&["connections", "pause", "c"]).await;
    cli(&server).done(&["connections", "pause", "by hand"]).await;
    let stop = Arc::new(AtomicBool::new(false));
    let before: Vec<(String, Duration)> = {
        let early = tokio::spawn(load(server.address.clone(), Arc::clone(&stop), 0));
        tokio::time::sleep(Duration::from_millis(500)).await;
        stop.store(true, Ordering::Relaxed);
        early.await.unwrap()
    };
    assert!(!before.is_empty());
    cli(&server).done(&["connections", "resume", "c"]).await;
    stop.store(false, Ordering::Relaxed);
    let callers: Vec<_> = (1..3).map(|n| tokio::spawn(load(server.address.clone(), Arc::clone(&stop), n))).collect();
    let ran = on(&data, &["backup", file.to_str().unwrap(), "--json"]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        ran.json()["rows"]["delivery_log"].as_u64().unwrap() + ran.json()["rows"]["delivery"].as_u64().unwrap()
            >= before.len() as u64
    );
    let again = on(&data, &["backup", file.to_str().unwrap()]).await;
    assert!(again.code == 5 && again.error().contains("is there already"), "{again:?}");
    server.kill_nine().await;
    stop.store(true, Ordering::Relaxed);
    for caller in callers {
        assert!(!caller.await.unwrap().is_empty(), "nothing was published beside the backup");
    }
    let sent_by_the_original = remote.count();

    let ran = on(&copy, &["restore", file.to_str().unwrap()]).await;
    assert!(ran.code == 0 && ran.stderr.contains("all 2 connections are paused"), "{ran:?}");
    let refused = on(&copy, &["restore", file.to_str().unwrap()]).await;
    assert!(refused.code == 4 && refused.error().contains("has a store already"), "{refused:?}");
    let refused = on(&data, &["restore", file.to_str().unwrap()]).await;
    assert_eq!(refused.code, 4, "{refused:?}");

    let server = serve(&copy, &[]).await;
    let notice = ready(&server).await["restored"].clone();
    assert_eq!(notice["paused"], 1, "the other one was paused by hand: {notice}");
    let held: Value = cli(&server).done(&["queue", "list", "c", "--json"]).await.json();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(remote.count(), sent_by_the_original, "something was sent before anybody resumed: {held}");
    server.stop().await;

    let server = serve(&copy, &["--resume"]).await;
    assert_eq!(ready(&server).await.get("restored"), None);
    let shown = cli(&server).done(&["connections", "show", "by hand", "--json"]).await.json();
    assert_eq!(shown["state"]["paused"], true, "a pause by hand stays one");
    for (id, _) in &before {
        cli_until(&server, id).await;
    }
    let got: BTreeSet<String> =
        remote.requests().iter().map(|seen| String::from_utf8_lossy(&seen.body).into_owned()).collect();
    assert!((0..before.len()).all(|n| got.contains(&format!("0.{n}"))), "something that was accepted before is lost");
    let audit = cli(&server).done(&["audit", "list", "--action", "connection.resume", "--json"]).await.json();
    assert_eq!(audit["data"][0]["objectName"], "c", "{audit}");
    server.stop().await;
}

async fn cli_until(server: &Server, id: &str) {
    let api = Api::new(&server.address);
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let (status, body) = api.call("GET", &format!("/api/v1/projects/default/deliveries/{id}"), "").await.unwrap();
        assert_eq!(status, 200, "{id} is not there: {body}");
        if serde_json::from_str::<Value>(&body).unwrap()["status"] == "SUCCESS" {
            return;
        }
        assert!(Instant::now() < deadline, "{id}: {body}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

// proves: D08
#[tokio::test(flavor = "multi_thread")]
async fn d08_what_is_no_backup_makes_no_data_directory_that_starts_and_resuming_one_by_one_ends_the_notice() {
    let dir = tempfile::tempdir().unwrap();
    let (data, copy) = (dir.path().join("data"), dir.path().join("copy"));
    let junk = dir.path().join("junk");
    std::fs::write(&junk, "no database at all, and long enough to be looked at by its first bytes").unwrap();
    for from in [junk.to_str().unwrap(), "not-there"] {
        let ran = on(&copy, &["restore", from]).await;
        assert_eq!(ran.code, 5, "{ran:?}");
    }
    assert!(!copy.join("postrider.db").exists() && !copy.join("postrider.db.restoring").exists());
    let ran = on(&dir.path().join("nothing"), &["backup", "x.db"]).await;
    assert!(ran.code == 5 && ran.error().contains("there is no file"), "{ran:?}");

    let (server, remote) = tokio::join!(serve(&data, &[]), Mirror::start());
    for name in ["a", "b"] {
        cli(&server).connection(name, &remote.address, &["url_path=/", "use_queue=true"]).await;
    }
    server.stop().await;
    // Of a stopped server as well.
    let file = dir.path().join("backup.db");
    assert_eq!(on(&data, &["backup", file.to_str().unwrap()]).await.code, 0);
    assert_eq!(on(&copy, &["restore", file.to_str().unwrap()]).await.code, 0);
    let server = serve(&copy, &[]).await;
    assert_eq!(ready(&server).await["restored"]["paused"], 2);
    cli(&server).done(&["connections", "resume", "a"]).await;
    assert_eq!(ready(&server).await["restored"]["paused"], 1);
    assert_eq!(cli(&server).done(&["connections", "resume", "--all"]).await.stdout, "1 resumed\n");
    assert_eq!(ready(&server).await.get("restored"), None);
    server.stop().await;
    let server = serve(&copy, &[]).await;
    assert_eq!(ready(&server).await.get("restored"), None, "it does not come back");
    server.stop().await;
}

/// The names in a directory.
fn names(dir: &Path) -> BTreeSet<String> {
    std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

// proves: D08
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn d08_what_was_cut_off_is_no_obstacle_and_nobody_else_reads_a_copy() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let (data, copy, files) = (dir.path().join("data"), dir.path().join("copy"), dir.path().join("files"));
    let server = serve(&data, &[]).await;
    cli(&server).connection("c", "http://127.0.0.1:9", &["url_path=/", "use_queue=true"]).await;
    for made in [&copy, &files] {
        std::fs::create_dir(made).unwrap();
    }
    let file = files.join("nightly.db");
    // As a kill in the middle leaves them.
    std::fs::write(files.join("nightly.db.partial"), "half of it").unwrap();
    for left in ["postrider.db.restoring", "postrider.db.restoring-wal", "postrider.db.restoring.partial"] {
        std::fs::write(copy.join(left), "half of it").unwrap();
    }
    let ran = on(&data, &["backup", file.to_str().unwrap()]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(names(&files), BTreeSet::from(["nightly.db".to_owned()]));
    let ran = on(&copy, &["restore", file.to_str().unwrap()]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(names(&copy), BTreeSet::from(["postrider.db", "postrider.db.lock"].map(str::to_owned)));
    for private in [&file, &copy.join("postrider.db"), &data.join("postrider.db"), &data.join("postrider.db-wal")] {
        let mode = std::fs::metadata(private).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", private.display());
    }
    server.stop().await;
    let server = serve(&copy, &["--resume"]).await;
    assert_eq!(ready(&server).await.get("restored"), None);
    server.stop().await;
}

// proves: D08
#[tokio::test(flavor = "multi_thread")]
async fn d08_two_copies_to_one_file_and_two_restores_to_one_place_do_not_mix() {
    let dir = tempfile::tempdir().unwrap();
    let (data, copy, file) = (dir.path().join("data"), dir.path().join("copy"), dir.path().join("backup.db"));
    let server = serve(&data, &[]).await;
    let to = file.to_str().unwrap();
    let (backup, restore) = (["backup", to], ["restore", to]);
    let (one, two) = tokio::join!(on(&data, &backup), on(&data, &backup));
    assert_eq!(BTreeSet::from([one.code, two.code]), BTreeSet::from([0, 5]), "{one:?} {two:?}");
    let (one, two) = tokio::join!(on(&copy, &restore), on(&copy, &restore));
    assert!([one.code, two.code].contains(&0) && one.code != two.code, "{one:?} {two:?}");
    server.stop().await;
    let server = serve(&copy, &["--resume"]).await;
    server.stop().await;
}
