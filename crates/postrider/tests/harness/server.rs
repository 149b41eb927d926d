//! The real binary as a child process.

use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

pub const KEY: &str = "kill-nine-test-key";

pub struct Server {
    pub address: String,
    child: Child,
}

impl Server {
    pub async fn start(data: &Path) -> Server {
        Self::listening(Self::spawn(data)).await
    }

    /// A server that somebody else has given its options.
    pub async fn of(mut command: Command) -> Server {
        Self::listening(command.stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap()).await
    }

    async fn listening(mut child: Child) -> Server {
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = loop {
            let line = lines.next_line().await.unwrap().expect("the server ended before it listened");
            if let Some(address) = line.strip_prefix("listening on ") {
                break address.trim().to_owned();
            }
        };
        // The pipe is read on, so that the server never blocks on a full one.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Server { address, child }
    }

    /// Killed so long after its start, whether it was ready or not.
    pub async fn start_and_kill(data: &Path, after: std::time::Duration) {
        let mut child = Self::spawn(data);
        tokio::time::sleep(after).await;
        child.kill().await.unwrap();
    }

    fn spawn(data: &Path) -> Child {
        Command::new(env!("CARGO_BIN_EXE_postrider"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(data)
            .env("POSTRIDER_ADMIN_KEY", KEY)
            .env("POSTRIDER_LOG", "warn")
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap()
    }

    pub fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }

    pub async fn kill_nine(mut self) {
        self.child.kill().await.unwrap();
    }

    pub async fn stop(mut self) {
        let pid = self.child.id().unwrap().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().await.unwrap().success());
        let status = self.child.wait().await.unwrap();
        assert!(status.success(), "a graceful stop ends with 0, not {status}");
    }
}
