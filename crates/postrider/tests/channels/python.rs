//! The services host of `sdk/python`, as a process.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::harness::KEY;

/// Where there is no lab, the interpreter of the machine does: the SDK needs nothing but the standard library.
pub fn python() -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let lab = std::env::var("POSTRIDER_PEERS_VENV").map_or_else(|_| root.join("target/peers/venv"), PathBuf::from);
    let of_lab = lab.join("bin/python");
    if of_lab.exists() { of_lab } else { PathBuf::from("python3") }
}

pub fn sdk() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../sdk/python/src").canonicalize().unwrap()
}

pub struct Host {
    pub address: String,
    child: Child,
}

impl Host {
    /// Serves the files of a folder; what its services call is this server.
    pub async fn start(folder: &Path, server: &str, listen: &str) -> Host {
        let mut child = Command::new(python())
            .args(["-m", "postrider.services"])
            .arg(folder)
            .args(["--listen", listen, "--import-alias", "zato.server.service=postrider.services", "--stop-with-stdin"])
            .env("PYTHONPATH", sdk())
            .env("POSTRIDER_SERVER", server)
            .env("POSTRIDER_KEY", KEY)
            .env_remove("POSTRIDER_SERVICES_TOKEN")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = loop {
            let line = lines.next_line().await.unwrap().expect("the host ended before it listened");
            if let Some(address) = line.strip_prefix("listening on ") {
                break address.trim().to_owned();
            }
        };
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Host { address, child }
    }

    pub async fn kill_nine(mut self) {
        self.child.kill().await.unwrap();
    }

    pub fn service(&self, name: &str) -> String {
        format!("{}/services/{name}", self.address)
    }
}
