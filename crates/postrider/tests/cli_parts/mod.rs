//! The real binary run as a command: what it printed and how it ended.
#![allow(dead_code, reason = "each test uses its own part")]

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// The program with nothing of our own environment in it.
pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("POSTRIDER_") {
            command.env_remove(name);
        }
    }
    command.kill_on_drop(true);
    command
}

#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub async fn of(mut command: Command, input: &[u8]) -> Ran {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A program that does not read its input may have ended already.
        let _ = stdin.write_all(input).await;
        drop(stdin);
        let output = child.wait_with_output().await.unwrap();
        Ran {
            code: output.status.code().expect("it was not ended by a signal"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Words with spaces between them.
    pub async fn command(words: &str) -> Ran {
        let mut command = program();
        command.args(words.split_whitespace());
        Ran::of(command, b"").await
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The one line of an error.
    pub fn error(&self) -> &str {
        let mut lines = self.stderr.lines();
        let line = lines.next().unwrap_or_default();
        assert!(line.starts_with("error: ") && lines.next().is_none(), "not one clear line: {self:?}");
        line
    }
}

/// Commands to one server.
pub struct Cli {
    pub server: String,
    pub key: String,
}

impl Cli {
    pub async fn run(&self, words: &[&str]) -> Ran {
        self.run_with(words, b"").await
    }

    pub async fn run_with(&self, words: &[&str], input: &[u8]) -> Ran {
        let mut command = program();
        command.args(words).env("POSTRIDER_SERVER", &self.server).env("POSTRIDER_KEY", &self.key);
        Ran::of(command, input).await
    }

    pub async fn done(&self, words: &[&str]) -> Ran {
        let ran = self.run(words).await;
        assert_eq!(ran.code, 0, "{words:?}: {ran:?}");
        ran
    }

    /// Creates a REST connection.
    pub async fn connection(&self, name: &str, host: &str, settings: &[&str]) {
        let host = format!("host={host}");
        let words = [&["connections", "create", "rest", name, &host][..], settings].concat();
        self.done(&words).await;
    }

    /// Asks again until a delivery has this status.
    pub async fn until_status(&self, id: &str, status: &str) {
        let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(30);
        loop {
            let now = self.done(&["deliveries", "show", id, "--json"]).await.json();
            if now["status"] == status {
                return;
            }
            assert!(tokio::time::Instant::now() < deadline, "{id} is not {status}: {now}");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
}

pub fn server_file(data: &Path) -> Option<Value> {
    let bytes = std::fs::read(data.join("server.json")).ok()?;
    Some(serde_json::from_slice(&bytes).unwrap())
}
