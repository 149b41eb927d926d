//! Nothing is forgotten: the list against both schemas, and a store that was moved against its source.

use std::collections::BTreeSet;
use std::path::Path;

use super::tables::{SOURCE_ONLY, TABLES, TARGET_ONLY};
use super::*;
use crate::conformance::fixture::{World, at};
use crate::postgres::tests::TestSchema;
use crate::{SqliteOptions, SqliteStore, Store, StoreRead};

fn names(rows: Vec<String>) -> BTreeSet<String> {
    rows.into_iter().collect()
}

fn tables_of_source(file: &Path) -> BTreeSet<String> {
    let connection = rusqlite::Connection::open(file).unwrap();
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
    let mut statement = connection.prepare(sql).unwrap();
    names(statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect())
}

/// Parts of a partitioned table are of their table.
async fn tables_of_target(schema: &TestSchema) -> BTreeSet<String> {
    let client = crate::postgres::way_in(&schema.database()).await.unwrap();
    let sql = "SELECT relname::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') \
         AND NOT relispartition";
    let rows = client.query(sql, &[]).await.unwrap();
    names(rows.iter().map(|row| row.get(0)).collect())
}

async fn source_with_something(file: &Path) {
    let store = SqliteStore::open(file, SqliteOptions::default()).unwrap();
    let world = World::new(&store).await;
    let connection = world.connection("billing", true).await;
    world.stored(&connection, 5).await;
    let topic = world.topic("orders").await;
    world.subscription(&topic, "reader").await;
    world.published(&topic, 0).await;
    world.published(&topic, 1).await;
    store.set_value("odd", Some("a \u{fffd} text".to_owned())).await.unwrap();
    store.close().await.unwrap();
}

// proves: P03 (nothing is left behind)
#[tokio::test]
async fn p03_every_table_of_both_schemas_is_moved_or_left_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.db");
    source_with_something(&file).await;
    let mut listed: BTreeSet<String> = TABLES.iter().map(|table| table.source.to_owned()).collect();
    listed.extend(SOURCE_ONLY.iter().map(|name| (*name).to_owned()));
    assert_eq!(listed, tables_of_source(&file), "the source's tables and those that are moved or left");
    let schema = TestSchema::new();
    let mut listed: BTreeSet<String> = TABLES.iter().map(|table| table.name.to_owned()).collect();
    listed.extend(TARGET_ONLY.iter().map(|name| (*name).to_owned()));
    assert_eq!(listed, tables_of_target(&schema).await, "the target's tables and those that are moved or left");
    // And each of their columns, which `begin` itself looks at.
    Move::begin(&file, &schema.database(), at(0)).await.unwrap();
}

#[test]
fn p03_a_column_that_one_schema_lacks_is_no_move() {
    let table = TABLES.iter().find(|table| table.name == "topic").unwrap();
    let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let wanted = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), "text".to_owned())).collect::<Vec<_>>();
    let refused = |has, to| shape::matched(table, &texts(has), wanted(to)).unwrap_err().to_string();
    assert!(refused(&["id", "name"], &["id"]).contains("`name` of the source would be left behind"));
    assert!(refused(&["id"], &["id", "name"]).contains("`name` has no counterpart"));
    assert!(shape::matched(table, &texts(&["id"]), wanted(&["id"])).is_ok());
}

// proves: P03 (what is moved is what was there), D08
#[tokio::test]
async fn p03_a_moved_store_answers_as_its_source_did_and_the_source_is_not_served_again() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.db");
    source_with_something(&file).await;
    let schema = TestSchema::new();
    let mut moving = Move::begin(&file, &schema.database(), at(0)).await.unwrap();
    let moved = moving.run(&mut |_| ()).await.unwrap();
    let rows = |table: &str| moved.iter().find(|one| one.table == table).unwrap().rows;
    assert_eq!((rows("delivery"), rows("queue"), rows("queue_exit"), rows("topic_message")), (5, 1, 1, 2));
    let refused = PostgresStore::open(&schema.database(), PostgresOptions::default()).await.err().unwrap();
    assert!(refused.to_string().contains("not whole yet"), "{refused}");
    moving.end(at(0)).await.unwrap();

    let store = PostgresStore::open(&schema.database(), PostgresOptions::default()).await.unwrap();
    let counts = store.counts(None).await.unwrap();
    assert!(counts.is_balanced() && counts.pending == 5, "{counts:?}");
    let summary = store.queue_summary(store.all_connections().await.unwrap()[0].id).await.unwrap();
    assert_eq!(summary.waiting, 5);
    assert_eq!(store.value("odd").await.unwrap().unwrap(), "a \u{fffd} text");
    let refused = SqliteStore::open(&file, SqliteOptions::default()).err().unwrap().to_string();
    assert!(refused.contains("it was moved to the postgres database"), "{refused}");
    let refused = Move::begin(&file, &schema.database(), at(0)).await.err().unwrap();
    assert!(matches!(&refused, StoreError::Conflict(why) if why.contains("already")), "{refused}");
    assert!(take_back(&file).unwrap().is_some());
    SqliteStore::open(&file, SqliteOptions::default()).unwrap();
}

// proves: P03 (a move is into an empty store, and verified)
#[tokio::test]
async fn p03_a_target_with_something_in_it_and_one_that_differs_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.db");
    source_with_something(&file).await;
    let schema = TestSchema::new();
    let mut moving = Move::begin(&file, &schema.database(), at(0)).await.unwrap();
    for index in 0..moving.shapes.len() {
        moving.move_table(index, &mut |_| ()).await.unwrap();
    }
    // Behind the mover's back; one row as good as another is not the same row.
    schema.run("UPDATE body SET bytes = 'other' WHERE id = (SELECT id FROM body LIMIT 1)").await.unwrap();
    let refused = moving.run(&mut |_| ()).await.unwrap_err().to_string();
    assert!(refused.contains("`body`") && refused.contains("nothing may be served"), "{refused}");
    drop(moving);
    schema.run("DELETE FROM value WHERE name = 'store.moving'").await.unwrap();
    let refused = Move::begin(&file, &schema.database(), at(0)).await.err().unwrap();
    assert!(
        matches!(&refused, StoreError::Conflict(why) if why.contains("not empty") && why.contains("project")),
        "{refused}"
    );
}

// proves: P03 (a source that went on is not gone on with)
#[tokio::test]
async fn p03_a_source_that_was_served_since_the_move_began_is_not_gone_on_with() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.db");
    source_with_something(&file).await;
    let schema = TestSchema::new();
    let moving = Move::begin(&file, &schema.database(), at(0)).await.unwrap();
    let in_use = Move::begin(&file, &schema.database(), at(0)).await.err().unwrap().to_string();
    assert!(in_use.contains("in use"), "{in_use}");
    drop(moving);
    let again = Move::begin(&file, &schema.database(), at(0)).await.unwrap();
    assert_eq!(again.resumed_rows(), 0);
    drop(again);
    SqliteStore::open(&file, SqliteOptions::default()).unwrap().close().await.unwrap();
    let refused = Move::begin(&file, &schema.database(), at(0)).await.err().unwrap().to_string();
    assert!(refused.contains("opened by a server since"), "{refused}");
}
