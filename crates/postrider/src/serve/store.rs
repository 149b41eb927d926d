//! Opens the store in the data directory. Everything behind this file knows the contract only.

use std::sync::Arc;

use postrider_store::{SqliteOptions, SqliteStore, Store, StoreError};

use super::data_dir::DataDir;
use crate::exit::{Exit, Failed};

/// The database's name in the data directory.
const DATABASE: &str = "postrider.db";

/// Refused when another server has it, when it cannot be written, and when it is no store of ours.
pub async fn open(data: &DataDir) -> Result<Arc<dyn Store>, Failed> {
    let database = data.path().join(DATABASE);
    // Opening reads and writes files, and may migrate them.
    let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&database, SqliteOptions::default())).await;
    match opened {
        Ok(Ok(store)) => Ok(Arc::new(store)),
        Ok(Err(StoreError::Unavailable(why) | StoreError::Corrupt(why))) => {
            Err(Failed::new(Exit::StoreUnavailable, why))
        }
        Ok(Err(error)) => Err(Failed::new(Exit::StoreUnavailable, error.to_string())),
        Err(error) => Err(Failed::new(Exit::StoreUnavailable, format!("the store cannot be opened: {error}"))),
    }
}
