//! Which keys seal the secrets at rest (D46): those of the environment first, then what an earlier start made in the data directory.
//!
//! It must not know what is sealed.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use postrider_core::log;
use postrider_engine::{KeyHome, Keyring, MasterKey};

use super::data_dir::DataDir;
use crate::exit::{Exit, Failed};

pub const VARIABLE: &str = "POSTRIDER_SECRETS_KEY";
pub const FILE_VARIABLE: &str = "POSTRIDER_SECRETS_KEY_FILE";
/// In the data directory, of mode 0600: the key that is made where none is configured.
const NAME: &str = "secrets.key";
/// A key file with more in it is something else.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// Where the keys are, as the environment says.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum SecretsKey {
    /// Nothing is configured: one in the data directory, made when the first secret is stored.
    #[default]
    InDataDir,
    Given(Keyring),
    File(PathBuf),
}

impl SecretsKey {
    /// # Errors
    /// Both are set, or the value is no list of keys. The value is never shown.
    pub fn read(given: Option<&str>, file: Option<&str>) -> Result<SecretsKey, postrider_core::SettingError> {
        match (given, file) {
            (None, None) => Ok(SecretsKey::InDataDir),
            (None, Some(file)) => Ok(SecretsKey::File(file.into())),
            (Some(given), None) => Keyring::parse(VARIABLE, given).map(SecretsKey::Given),
            (Some(_), Some(_)) => {
                let allowed = format!("one of `{VARIABLE}` and `{FILE_VARIABLE}`");
                Err(postrider_core::SettingError::new(FILE_VARIABLE, "set beside the other one", allowed))
            }
        }
    }

    /// The configured keys, and behind them those of the data directory, so that what they sealed still opens.
    ///
    /// # Errors
    /// A file that cannot be read or holds no keys.
    pub fn keyring(&self, data: &DataDir) -> Result<Keyring, Failed> {
        let made = data.path().join(NAME);
        let configured = match self {
            SecretsKey::InDataDir => Keyring::default(),
            SecretsKey::Given(ring) => ring.clone(),
            SecretsKey::File(path) => read(path, FILE_VARIABLE)?,
        };
        let made_earlier = if made.exists() { read(&made, NAME)? } else { Keyring::default() };
        Ok(configured.then(made_earlier).kept_in(Arc::new(FileHome(made))))
    }
}

impl std::fmt::Debug for SecretsKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SecretsKey::InDataDir => f.write_str("InDataDir"),
            SecretsKey::Given(ring) => f.debug_tuple("Given").field(ring).finish(),
            SecretsKey::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

fn read(path: &Path, name: &'static str) -> Result<Keyring, Failed> {
    let unreadable =
        |why: String| Failed::new(Exit::Refused, format!("the key file {} ({name}): {why}", path.display()));
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
struct FileHome(PathBuf);

impl KeyHome for FileHome {
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

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "0101010101010101010101010101010101010101010101010101010101010101";
    const OTHER: &str = "0202020202020202020202020202020202020202020202020202020202020202";

    fn key(text: &str) -> MasterKey {
        Keyring::parse(VARIABLE, text).unwrap().first().unwrap().clone()
    }

    #[test]
    fn d46_a_made_key_is_its_owners_only_and_opens_beside_a_configured_one() {
        let data = DataDir::temporary().unwrap();
        assert_eq!(SecretsKey::InDataDir.keyring(&data).unwrap().first(), None);
        let home = FileHome(data.path().join(NAME));
        home.keep(&key(KEY)).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(data.path().join(NAME)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert!(home.keep(&key(OTHER)).is_err(), "a key is never written over");
        assert_eq!(SecretsKey::InDataDir.keyring(&data).unwrap().first(), Some(&key(KEY)));
        let configured = SecretsKey::read(Some(OTHER), None).unwrap().keyring(&data).unwrap();
        assert_eq!(configured.first(), Some(&key(OTHER)));
        assert!(configured.key(key(KEY).id()).is_some());
    }

    #[test]
    fn keys_come_from_a_file_or_from_a_variable_and_a_refusal_shows_none() {
        let data = DataDir::temporary().unwrap();
        let path = data.path().join("keys");
        std::fs::write(&path, format!("# newest first\n{OTHER}\n{KEY}\n")).unwrap();
        let from_file = SecretsKey::read(None, path.to_str()).unwrap();
        assert_eq!(from_file.keyring(&data).unwrap().first(), Some(&key(OTHER)));
        std::fs::write(&path, "hunter2").unwrap();
        let error = from_file.keyring(&data).unwrap_err();
        assert_eq!(error.exit, Exit::Refused);
        assert!(!error.message.contains("hunter2") && error.message.contains("keys"), "{}", error.message);
        assert!(SecretsKey::File("/nowhere/at/all".into()).keyring(&data).is_err());
        let both = SecretsKey::read(Some(KEY), Some("f")).unwrap_err();
        assert!(both.to_string().contains(FILE_VARIABLE));
        assert!(!SecretsKey::read(Some("hunter2"), None).unwrap_err().to_string().contains("hunter2"));
    }
}
