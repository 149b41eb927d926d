//! Where the workspace is and what its manifests say, as cargo itself understands them.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::process;

/// The folder with the root manifest.
pub fn root() -> PathBuf {
    // Cargo sets the variable for what it runs; the value compiled in serves a binary started by hand.
    let own = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&own).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// A `cargo` command that runs in the root folder.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    // What cargo says of xtask to xtask is none of the inner cargo's business: build scripts that watch these would run again each time.
    for (name, _) in std::env::vars_os() {
        let told = name.to_string_lossy();
        if told.starts_with("CARGO_PKG_") || told.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Cargo's own account of the workspace, without dependencies.
pub fn metadata() -> Result<Value, String> {
    let text = process::output(cargo().args(["metadata", "--format-version", "1", "--no-deps", "--offline"]))?;
    serde_json::from_str(&text).map_err(|error| format!("cargo metadata is not JSON: {error}"))
}

/// The folder that cargo builds into.
pub fn target() -> Result<PathBuf, String> {
    let metadata = metadata()?;
    let folder = metadata["target_directory"].as_str().ok_or("cargo metadata names no target directory")?;
    Ok(PathBuf::from(folder))
}
