//! `doctor` over real stores and real servers: what is wrong is found, whether a server runs or not, and nothing is changed.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod cli_parts;
mod harness;

use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use cli_parts::{Cli, Ran, program};
use harness::{KEY, Mirror, Server};
use serde_json::Value;

async fn doctor(data: &Path, more: &[(&str, &str)]) -> (i32, Value) {
    let mut command = program();
    command.args(["doctor", "--json", "--data"]).arg(data).envs(more.iter().copied());
    let ran = Ran::of(command, b"").await;
    let json = ran.json();
    assert_eq!(json["ok"].as_bool().unwrap(), ran.code == 0, "{ran:?}");
    (ran.code, json)
}

/// The details of one check at one level, in a line.
fn told(report: &Value, check: &str, level: &str) -> String {
    let found = report["findings"].as_array().unwrap().iter();
    let found = found.filter(|finding| finding["check"] == check && finding["level"] == level);
    found.map(|finding| finding["detail"].as_str().unwrap()).collect::<Vec<_>>().join("; ")
}

// proves: R09, D41, D46
#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_finds_what_is_wrong_beside_a_server_and_without_one() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let (code, report) = doctor(&data, &[]).await;
    assert_eq!(code, 0, "{report}");
    assert!(told(&report, "store", "note").starts_with("there is no store"), "{report}");
    assert!(told(&report, "ladder", "ok").contains("the preset webhook takes up to"), "{report}");
    assert!(!data.exists(), "looking makes nothing");

    let (server, remote) = tokio::join!(Server::start(&data), Mirror::start());
    let cli = Cli { server: server.address.clone(), key: KEY.to_owned() };
    cli.connection("fine", &remote.address, &["url_path=/"]).await;
    cli.connection("held", "http://localhost:9", &["url_path=/", "use_queue=true"]).await;
    cli.done(&["connections", "pause", "held"]).await;
    cli.done(&["topics", "create", "lab"]).await;
    cli.run_with(&["security", "create", "bearer", "s", "--secret", "-"], b"hunter2").await;
    let (code, report) = doctor(&data, &[]).await;
    assert_eq!(code, 0, "{report}");
    for (check, level, wanted) in [
        ("server", "ok", "is ready"),
        ("clock", "ok", "to the second"),
        ("store", "ok", "whole"),
        ("store", "ok", "schema version 2"),
        ("secrets", "ok", "the key opens all 1 secrets"),
        ("connections", "note", "paused: `held`"),
        ("topics", "note", "`lab`"),
        ("dns", "ok", "1 hosts"),
        ("dlq", "ok", "empty"),
    ] {
        assert!(told(&report, check, level).contains(wanted), "{check} {level} {wanted}: {report}");
    }
    // From elsewhere, over the API alone.
    let remote_only = dir.path().join("elsewhere");
    let (code, report) = doctor(&remote_only, &[("POSTRIDER_SERVER", &server.address), ("POSTRIDER_KEY", KEY)]).await;
    assert_eq!(code, 0, "{report}");
    assert!(
        told(&report, "connections", "note").contains("`held`") && told(&report, "topics", "note").contains("`lab`"),
        "{report}"
    );
    server.stop().await;

    let (code, report) = doctor(&data, &[]).await;
    assert!(code == 0 && told(&report, "server", "note").contains("no server runs"), "{report}");
    std::fs::rename(data.join("secrets.key"), data.join("kept")).unwrap();
    let (code, report) = doctor(&data, &[]).await;
    assert!(code == 1 && told(&report, "secrets", "wrong").contains("opens the secrets of `s`"), "{report}");
    std::fs::rename(data.join("kept"), data.join("secrets.key")).unwrap();

    let variables = [("POSTRIDER_LEASE_SECONDS", "1"), ("DELIVERY_ESCALATION_HARD_CAP_HOURS", "5")];
    let (code, report) = doctor(&data, &variables).await;
    let wrong = told(&report, "environment", "wrong");
    assert!(code == 1 && wrong.contains("POSTRIDER_LEASE_SECONDS") && wrong.contains("84 or more"), "{report}");
    let (code, report) = doctor(&data, &[("POSTRIDER_LISEN", "x"), ("POSTRIDER_ADMIN_KEY", "hunter2")]).await;
    assert!(code == 0 && told(&report, "environment", "note").contains("POSTRIDER_LISEN"), "{report}");
    assert!(!report.to_string().contains("hunter2"), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_sees_a_damaged_store_and_a_restored_one() {
    let dir = tempfile::tempdir().unwrap();
    let (data, copy) = (dir.path().join("data"), dir.path().join("copy"));
    let server = Server::start(&data).await;
    let cli = Cli { server: server.address.clone(), key: KEY.to_owned() };
    cli.connection("c", "http://127.0.0.1:9", &["url_path=/", "use_queue=true"]).await;
    server.stop().await;
    let file = dir.path().join("backup.db");
    for words in [["backup", file.to_str().unwrap()], ["restore", file.to_str().unwrap()]] {
        let mut command = program();
        command.args(words).arg("--data").arg(if words[0] == "backup" { &data } else { &copy });
        assert_eq!(Ran::of(command, b"").await.code, 0);
    }
    let server = Server::start(&copy).await;
    let (code, report) = doctor(&copy, &[]).await;
    assert!(code == 1 && told(&report, "server", "wrong").contains("restored from a backup"), "{report}");
    server.stop().await;
    // A page in the middle, made into nothing.
    let database = data.join("postrider.db");
    let mut broken = std::fs::OpenOptions::new().write(true).open(&database).unwrap();
    for page in 3..12 {
        broken.seek(SeekFrom::Start(page * 4096)).unwrap();
        broken.write_all(&[0xff; 4096]).unwrap();
    }
    drop(broken);
    let (code, report) = doctor(&data, &[]).await;
    assert!(code == 1 && !told(&report, "store", "wrong").is_empty(), "{report}");
    let mut command = program();
    command.args(["doctor", "--data"]).arg(&data);
    let ran = Ran::of(command, b"").await;
    assert!(ran.code == 1 && ran.stdout.contains("WRONG") && ran.stdout.contains("-> "), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_advises_no_restore_where_the_store_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    Server::start(&data).await.stop().await;
    let database = data.join("postrider.db");
    // As a later version may leave it.
    let newer = rusqlite::Connection::open(&database).unwrap();
    newer.execute_batch("ALTER TABLE connection RENAME COLUMN name TO label; PRAGMA user_version = 99;").unwrap();
    drop(newer);
    let advice = |report: &Value| {
        let found = report["findings"].as_array().unwrap().iter();
        let wrong = found.filter(|finding| finding["check"] == "store" && finding["level"] == "wrong");
        wrong.map(|finding| finding["action"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let (code, report) = doctor(&data, &[]).await;
    assert!(code == 1 && told(&report, "store", "wrong").starts_with("schema version 99"), "{report}");
    assert_eq!(advice(&report), ["use the program that wrote it, or a newer one"]);
    // Whatever keeps it from being read, such as somebody else's file.
    std::fs::remove_file(&database).unwrap();
    std::fs::create_dir(&database).unwrap();
    let (code, report) = doctor(&data, &[]).await;
    assert_eq!(code, 1, "{report}");
    assert!(advice(&report).iter().all(|action| !action.contains("restore")), "{report}");
    std::fs::remove_dir(&database).unwrap();
    std::fs::write(&database, "").unwrap();
    let (_, report) = doctor(&data, &[]).await;
    assert!(told(&report, "store", "note").starts_with("there is no store"), "{report}");
}
