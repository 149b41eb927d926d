//! `server.json` in the data directory: where the server that runs on it listens. It holds no secret.

use postrider_core::log;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::exit::{Exit, Failed};

const NAME: &str = "server.json";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// `http://ADDR`.
    pub address: String,
    pub pid: u32,
}

/// The file, removed when this is dropped.
#[derive(Debug)]
pub struct ServerFile(PathBuf);

impl ServerFile {
    /// Written whole or not at all, so that nobody reads half of it. One that a crash left behind is replaced.
    pub fn write(data: &Path, address: &str) -> Result<ServerFile, Failed> {
        let path = data.join(NAME);
        let known = Known { address: address.to_owned(), pid: std::process::id() };
        let written = || -> std::io::Result<()> {
            let mut file = tempfile::NamedTempFile::new_in(data)?;
            serde_json::to_writer(&mut file, &known)?;
            file.write_all(b"\n")?;
            file.persist(&path)?;
            Ok(())
        };
        written()
            .map_err(|error| Failed::new(Exit::Failure, format!("{} cannot be written: {error}", path.display())))?;
        Ok(ServerFile(path))
    }
}

impl Drop for ServerFile {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0) {
            tracing::warn!(event = log::SERVER_FILE_LEFT, %error, path = %self.0.display(), "the server's file could not be removed");
        }
    }
}

/// `None` where no server runs, or the file cannot be read.
pub fn read(data: &Path) -> Option<Known> {
    let bytes = std::fs::read(data.join(NAME)).ok()?;
    serde_json::from_slice(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_there_while_the_server_runs_and_gone_afterwards() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(read(data.path()), None);
        let file = ServerFile::write(data.path(), "http://127.0.0.1:1").unwrap();
        let known = read(data.path()).unwrap();
        assert_eq!((known.address.as_str(), known.pid), ("http://127.0.0.1:1", std::process::id()));
        drop(file);
        assert_eq!(std::fs::read_dir(data.path()).unwrap().count(), 0);
    }
}
