//! Which store, and opening it. Everything behind this file knows the contract only.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use postrider_core::SettingError;
use postrider_store::{SqliteOptions, SqliteStore, Store, StoreError};

use super::data_dir::DataDir;
use crate::exit::{Exit, Failed};

/// The database's name in the data directory.
pub const DATABASE: &str = "postrider.db";
/// The option and the variable that name a store.
const SETTING: &str = "store";

/// Where a store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreAddress {
    Sqlite(PathBuf),
}

impl StoreAddress {
    /// `sqlite:PATH`; nothing is the database in the data directory.
    ///
    /// # Errors
    /// Names what is allowed. An address may carry a password, so none is repeated.
    pub fn parse(given: Option<&str>, data: &Path) -> Result<StoreAddress, SettingError> {
        let Some(given) = given.filter(|given| !given.is_empty()) else {
            return Ok(StoreAddress::Sqlite(data.join(DATABASE)));
        };
        match given.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => {
                // `sqlite:///a/b` is `/a/b`, as elsewhere.
                Ok(StoreAddress::Sqlite(path.strip_prefix("//").unwrap_or(path).into()))
            }
            Some(("postgres" | "postgresql", _)) => {
                let given = "an address of PostgreSQL";
                Err(SettingError::new(SETTING, given, "sqlite:PATH: this version has no PostgreSQL store"))
            }
            _ => Err(SettingError::new(SETTING, "something else", "sqlite:PATH")),
        }
    }
}

/// Refused when another server has it, when it cannot be written, and when it is no store of ours.
pub async fn open(given: Option<&str>, data: &DataDir) -> Result<Arc<dyn Store>, Failed> {
    let StoreAddress::Sqlite(database) =
        StoreAddress::parse(given, data.path()).map_err(|error| Failed::new(Exit::Refused, error.to_string()))?;
    // Opening reads and writes files, and may migrate them.
    let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&database, SqliteOptions::default())).await;
    match opened {
        Ok(Ok(store)) => Ok(Arc::new(store)),
        Ok(Err(error)) => Err(error.into()),
        Err(error) => Err(Failed::new(Exit::StoreUnavailable, format!("the store cannot be opened: {error}"))),
    }
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(why) | StoreError::Corrupt(why) => Failed::new(Exit::StoreUnavailable, why),
            error => Failed::new(Exit::StoreUnavailable, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_named_by_its_kind_and_a_refusal_repeats_no_password() {
        let read = |given| StoreAddress::parse(given, Path::new("/data")).map_err(|error| error.to_string());
        let at = |path: &str| Ok(StoreAddress::Sqlite(path.into()));
        assert_eq!(read(None), at("/data/postrider.db"));
        assert_eq!(read(Some("")), at("/data/postrider.db"));
        assert_eq!(read(Some("sqlite:here.db")), at("here.db"));
        assert_eq!(read(Some("sqlite:///var/here.db")), at("/var/here.db"));
        for bad in ["postgres://ada:hunter2@db/x", "mysql://ada:hunter2@db/x", "hunter2", "sqlite:"] {
            let refused = read(Some(bad)).unwrap_err();
            assert!(refused.contains("sqlite:PATH") && !refused.contains("hunter2"), "{refused}");
        }
    }
}
