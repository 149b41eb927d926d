//! What every row works with: the generator, the receiver, the binary, a place for data.

use std::path::PathBuf;
use std::time::Duration;

use http::StatusCode;

use crate::failure::Failure;
use crate::lane::Lane;
use crate::million::Million;
use crate::parts::Parts;
use crate::process;
use crate::progress::Progress;
use crate::receiver::Receiver;
use crate::server::{Server, data_directory};

pub struct Bench {
    pub quick: bool,
    pub binary: PathBuf,
    pub scratch: PathBuf,
    pub cores: usize,
    pub generator: Lane,
    pub receiver: Receiver,
    pub progress: Progress,
    /// As measured last, in this run.
    pub parts: Option<Parts>,
    /// A data directory with a million waiting, for the rows that share it.
    pub million: Option<Million>,
}

/// A server with a data directory of its own, both gone when dropped.
pub struct Stage {
    pub server: Server,
    pub data: tempfile::TempDir,
}

impl Bench {
    pub async fn new(quick: bool, binary: PathBuf, scratch: PathBuf) -> Result<Bench, Failure> {
        process::raise_open_files();
        Ok(Bench {
            quick,
            binary,
            scratch,
            cores: process::Machine::read().cores,
            generator: Lane::start("load generator")?,
            receiver: Receiver::start("receiver", StatusCode::OK, "").await?,
            progress: Progress::start(),
            parts: None,
            million: None,
        })
    }

    /// How long something is measured: the first number of seconds, or the second with `--quick`.
    pub const fn seconds(&self, full: u64, quick: u64) -> Duration {
        Duration::from_secs(if self.quick { quick } else { full })
    }

    /// How many: the first number, or the second with `--quick`.
    pub const fn number(&self, full: u64, quick: u64) -> u64 {
        if self.quick { quick } else { full }
    }

    pub async fn stage(&self) -> Result<Stage, Failure> {
        let data = data_directory(&self.scratch)?;
        let server = Server::start(&self.binary, data.path()).await?;
        Ok(Stage { server, data })
    }

    /// The parts of this run, measured when the first row asks for them.
    pub async fn parts(&mut self) -> Result<Parts, Failure> {
        if let Some(parts) = self.parts {
            return Ok(parts);
        }
        let parts = Parts::measure(self).await?;
        self.parts = Some(parts);
        Ok(parts)
    }
}
