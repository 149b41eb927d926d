//! `restore`: a data directory from a backup, with every queue paused, since the original may still be at work (D08).
//!
//! The database gets its name last: a restore that is cut off leaves no store that could be started.

use postrider_engine::SystemClock;
use postrider_store::sqlite::backup::Place;
use postrider_store::{SqliteOptions, SqliteStore, Store as _};
use serde_json::json;

use super::backup::{copy, database_in, report};
use crate::args::{GlobalArgs, RestoreArgs};
use crate::exit::{Exit, Failed};
use crate::output;
use crate::serve::data_dir::DataDir;

pub async fn run(global: &GlobalArgs, args: RestoreArgs) -> Result<Exit, Failed> {
    let database = database_in(&global.data);
    if database.exists() {
        let message = format!(
            "{} has a store already, and it is not written over: name an empty directory with --data",
            global.data.display()
        );
        return Err(Failed::new(Exit::Refused, message));
    }
    let data = DataDir::at(&global.data)?;
    let place = Place::take(&database_in(data.path()))?;
    let copied = copy(&args.from, place.unnamed()).await?;
    let held = hold(place.unnamed()).await?;
    place.name()?;
    report(global, &database, &copied, &[("paused", json!(held))]);
    if !global.json {
        output::remark(&format!(
            "all {held} connections are paused: two live copies would deliver twice. Once no other server works on the original, go on with \
             `postrider serve --resume`, or resume them one by one"
        ));
    }
    Ok(Exit::Done)
}

/// Also brings its schema to this version.
async fn hold(database: &std::path::Path) -> Result<usize, Failed> {
    let database = database.to_owned();
    let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&database, SqliteOptions::default())).await;
    let store =
        opened.map_err(|error| Failed::new(Exit::Failure, format!("the store cannot be opened: {error}")))??;
    let held = postrider_engine::hold_all(&store, SystemClock::shared().now()).await?;
    store.close().await?;
    Ok(held)
}
