//! Opening: one server a file, known schemas only, and clear words for whatever does not work.

use rusqlite::Connection;
use tempfile::TempDir;

use super::InFile;
use crate::StoreError;
use crate::conformance::{LIMITS, TestStore};
use crate::sqlite::{SqliteOptions, SqliteStore};

fn refused(path: &std::path::Path) -> StoreError {
    match SqliteStore::open(path, SqliteOptions::default()) {
        Ok(_) => panic!("the store was opened"),
        Err(error) => error,
    }
}

// proves: D05 (two servers on one file)
#[tokio::test]
async fn d05_a_second_server_is_kept_out_until_the_first_is_gone() {
    let mut first = InFile::new(LIMITS, false);
    let path = first.path();
    let error = refused(&path).to_string();
    assert!(error.contains("store.db") && error.contains("another server has it"), "{error}");
    first.store().set_value("a", Some("1".to_owned())).await.unwrap();
    first.reopen().await;
    assert_eq!(first.store().value("a").await.unwrap().as_deref(), Some("1"));
    first.store().close().await.unwrap();
    assert!(SqliteStore::open(&path, SqliteOptions::default()).is_ok());
}

#[tokio::test]
async fn a_closed_store_leaves_one_file_and_says_that_it_is_closed() {
    for inline in [false, true] {
        let made = InFile::new(LIMITS, inline);
        let store = made.store();
        store.set_value("a", Some("1".to_owned())).await.unwrap();
        store.close().await.unwrap();
        assert_eq!(store.set_value("a", None).await, Err(StoreError::Closed));
        assert_eq!(store.value("a").await, Err(StoreError::Closed));
        assert_eq!(store.close().await, Err(StoreError::Closed));
        assert_eq!(store.check().await, Err(StoreError::Closed));
        assert!(!made.path().with_extension("db-wal").exists());
    }
}

#[tokio::test]
async fn a_newer_schema_is_refused_by_its_version() {
    let made = InFile::new(LIMITS, false);
    made.store().close().await.unwrap();
    Connection::open(made.path()).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    let error = refused(&made.path()).to_string();
    assert!(error.contains("version 99") && error.contains("store.db"), "{error}");
}

#[test]
fn the_database_of_another_program_is_refused_and_left_as_it_is() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("accounts.db");
    let theirs = Connection::open(&path).unwrap();
    theirs.execute_batch("CREATE TABLE account (name TEXT); PRAGMA user_version = 1").unwrap();
    theirs.close().unwrap();
    let before = std::fs::read(&path).unwrap();
    let error = refused(&path);
    assert!(matches!(&error, StoreError::Corrupt(why) if why.contains("accounts.db")), "{error:?}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn what_is_no_store_is_refused_by_its_name() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("notes.txt");
    std::fs::write(&path, "this is not a database, however long it may be".repeat(50)).unwrap();
    let error = refused(&path);
    assert!(matches!(&error, StoreError::Corrupt(why) if why.contains("notes.txt")), "{error:?}");
}

#[test]
fn a_place_that_is_not_there_is_refused_by_its_name() {
    let directory = TempDir::new().unwrap();
    let error = refused(&directory.path().join("missing").join("store.db"));
    assert!(matches!(&error, StoreError::Unavailable(why) if why.contains("store.db")), "{error:?}");
}
