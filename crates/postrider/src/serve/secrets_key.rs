//! Which keys seal the secrets at rest (D46): those of the environment first, then what an earlier start made in the data directory.
//!
//! It must not know what is sealed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use postrider::key_file::{self, KeyFile, NAME};
use postrider_engine::Keyring;

use super::data_dir::DataDir;
use crate::exit::{Exit, Failed};

pub const VARIABLE: &str = "POSTRIDER_SECRETS_KEY";
pub const FILE_VARIABLE: &str = "POSTRIDER_SECRETS_KEY_FILE";

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
        self.keyring_at(data.path())
    }

    /// The same for a directory that nobody may make.
    pub fn keyring_at(&self, data: &Path) -> Result<Keyring, Failed> {
        let made = data.join(NAME);
        let configured = match self {
            SecretsKey::InDataDir => Keyring::default(),
            SecretsKey::Given(ring) => ring.clone(),
            SecretsKey::File(path) => read(path, FILE_VARIABLE)?,
        };
        let made_earlier = if made.exists() { read(&made, NAME)? } else { Keyring::default() };
        Ok(configured.then(made_earlier).kept_in(Arc::new(KeyFile(made))))
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
    key_file::read(path, name).map_err(|why| Failed::new(Exit::Refused, why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use postrider_engine::{KeyHome as _, MasterKey};

    const KEY: &str = "0101010101010101010101010101010101010101010101010101010101010101";
    const OTHER: &str = "0202020202020202020202020202020202020202020202020202020202020202";

    fn key(text: &str) -> MasterKey {
        Keyring::parse(VARIABLE, text).unwrap().first().unwrap().clone()
    }

    #[test]
    fn d46_a_made_key_is_its_owners_only_and_opens_beside_a_configured_one() {
        let data = DataDir::temporary().unwrap();
        assert_eq!(SecretsKey::InDataDir.keyring(&data).unwrap().first(), None);
        let home = KeyFile(data.path().join(NAME));
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
