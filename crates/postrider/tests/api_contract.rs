//! P04: the running binary against its own OpenAPI document, with requests that a program makes up which we did not write. No answer of 5xx, none that
//! the document does not have, no wrong request taken, none without a key, no method beside those that are there.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod harness;

use std::path::PathBuf;
use std::time::Duration;

use harness::{KEY, Server};
use tokio::process::Command;

/// For each of the processes that ask; how far they come in it depends on the machine.
const SECONDS: &str = "60";

#[tokio::test]
async fn p04_the_server_keeps_to_its_own_description() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path()).await;
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let venv = std::env::var("POSTRIDER_PEERS_VENV").map_or_else(|_| root.join("target/peers/venv"), PathBuf::from);
    let python = venv.join("bin/python");
    assert!(python.exists(), "the peer lab is not installed; `cargo xtask peers` installs it");
    let mut command = Command::new(python);
    command
        .arg(root.join("tests/peers/api_contract.py"))
        .args([&server.address, SECONDS, "--phases", "examples,coverage", "--continue-on-failure"])
        .env("POSTRIDER_KEY", KEY)
        .kill_on_drop(true);
    let ran = tokio::time::timeout(Duration::from_secs(300), command.output()).await.unwrap().unwrap();
    let report = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{report}\n{}", String::from_utf8_lossy(&ran.stderr));
    server.stop().await;
}
