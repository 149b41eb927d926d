//! Which store, and opening it. Everything behind this file knows the contract only.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use postrider_core::SettingError;
use postrider_store::{Database, PostgresOptions, PostgresStore, SqliteOptions, SqliteStore, Store, StoreError};

use super::data_dir::DataDir;
use crate::exit::{Exit, Failed};

/// The database's name in the data directory.
pub const DATABASE: &str = "postrider.db";
/// The option and the variable that name a store.
const SETTING: &str = "store";

/// What may be named.
const ALLOWED: &str = "sqlite:PATH or postgres://USER@HOST/DATABASE";

/// Where a store is. Its text never shows a password.
#[derive(Clone, Debug)]
pub enum StoreAddress {
    Sqlite(PathBuf),
    Postgres(Box<Database>),
}

impl StoreAddress {
    /// `sqlite:PATH`, or a URL of PostgreSQL; nothing is the database in the data directory.
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
            Some(("postgres" | "postgresql", _)) => match Database::parse(given) {
                Ok(database) => Ok(StoreAddress::Postgres(Box::new(database))),
                Err(error) => {
                    Err(SettingError::new(SETTING, "a URL of PostgreSQL that cannot be used", error.to_string()))
                }
            },
            _ => Err(SettingError::new(SETTING, "something else", ALLOWED)),
        }
    }
}

/// A store, and whether other processes may have it too.
pub struct Opened {
    pub store: Arc<dyn Store>,
    pub is_shared: bool,
}

/// Refused when another server has it and it cannot be shared, when it cannot be reached or written, and when it is no store of ours.
pub async fn open(given: Option<&str>, data: &DataDir) -> Result<Opened, Failed> {
    let address =
        StoreAddress::parse(given, data.path()).map_err(|error| Failed::new(Exit::Refused, error.to_string()))?;
    let database = match address {
        StoreAddress::Postgres(database) => {
            let store = PostgresStore::open(&database, PostgresOptions::default()).await?;
            return Ok(Opened { store: Arc::new(store), is_shared: true });
        }
        StoreAddress::Sqlite(database) => database,
    };
    // Opening reads and writes files, and may migrate them.
    let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&database, SqliteOptions::default())).await;
    match opened {
        Ok(Ok(store)) => Ok(Opened { store: Arc::new(store), is_shared: false }),
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
        let shown = |given| format!("{:?}", read(given).unwrap());
        assert_eq!(shown(None), "Sqlite(\"/data/postrider.db\")");
        assert_eq!(shown(Some("")), "Sqlite(\"/data/postrider.db\")");
        assert_eq!(shown(Some("sqlite:here.db")), "Sqlite(\"here.db\")");
        assert_eq!(shown(Some("sqlite:///var/here.db")), "Sqlite(\"/var/here.db\")");
        let database = shown(Some("postgres://ada:hunter2@db/x"));
        assert!(database.contains("`x` on db") && !database.contains("hunter2"), "{database}");
        for bad in ["postgres://ada:hunter2@db/x?sslmode=maybe", "mysql://ada:hunter2@db/x", "hunter2", "sqlite:"] {
            let refused = read(Some(bad)).unwrap_err();
            assert!(!refused.contains("hunter2"), "{refused}");
        }
        assert!(read(Some("mysql://x")).unwrap_err().contains("sqlite:PATH or postgres://"));
    }
}
