//! Files of keys for secrets (D46): read, and made once. It must not know what is sealed with them.

use std::io::Write;
use std::path::{Path, PathBuf};

use postrider_core::log;
use postrider_engine::{KeyHome, Keyring, MasterKey};

/// In the data directory, of mode 0600: the key that is made where none is configured.
pub const NAME: &str = "secrets.key";
/// A key file with more in it is something else.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// # Errors
/// In words, with the file's name and never its content.
pub fn read(path: &Path, name: &'static str) -> Result<Keyring, String> {
    let unreadable = |why: String| format!("the key file {} ({name}): {why}", path.display());
    let found = std::fs::metadata(path).map_err(|error| unreadable(error.to_string()))?;
    if found.len() > FILE_BYTES_MAX {
        return Err(unreadable(format!("it has {} bytes, which is no list of keys", found.len())));
    }
    warn_if_open(path, &found);
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
    Keyring::parse(name, &text).map_err(|error| unreadable(error.to_string()))
}

#[cfg(unix)]
fn warn_if_open(path: &Path, found: &std::fs::Metadata) {
    use std::os::unix::fs::PermissionsExt;
    if found.permissions().mode() & 0o077 != 0 {
        tracing::warn!(event = log::SECRETS_KEY_OPEN, path = %path.display(), "the key file for secrets can be read by others than its owner: chmod 600 it");
    }
}

#[cfg(not(unix))]
fn warn_if_open(_: &Path, _: &std::fs::Metadata) {}

/// The file in the data directory, on disk before the first secret is sealed with it.
pub struct KeyFile(pub PathBuf);

impl KeyHome for KeyFile {
    fn keep(&self, key: &MasterKey) -> Result<(), String> {
        let write = || -> std::io::Result<()> {
            let directory = self.0.parent().unwrap_or(Path::new("."));
            // A temporary file has mode 0600, and an existing key is never written over.
            let mut file = tempfile::NamedTempFile::new_in(directory)?;
            writeln!(
                file,
                "# Postrider seals the secrets in its store with this key. Keep a copy apart from the store."
            )?;
            writeln!(file, "{}", key.written())?;
            file.as_file().sync_all()?;
            file.persist_noclobber(&self.0)?;
            std::fs::File::open(directory)?.sync_all()
        };
        write().map_err(|error| format!("{}: {error}", self.0.display()))
    }
}
